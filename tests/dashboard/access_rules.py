"""The table of who may what; `test_access.py` asks every address as it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dashboard.models import Role


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What each role gets for GET (and HEAD) and for an empty POST; other methods are refused.

    `get` and `post` are the answers to those who may; None means that nobody
    may use the method. Everybody else signed in gets 403, nobody signed in 302.
    """

    get: int | None = 200
    post: int | None = None
    roles: tuple[str, ...] = tuple(Role.values)
    open: bool = False
    signed: bool = False
    path: Mapping[str, str] = field(default_factory=dict)


OPERATORS = ("operator", "admin")
PAGE = Rule()
RUN = Rule(path={"run_id": "run"})
TRACE = Rule(path={"trace_id": "trace"})
SET = Rule(path={"set_id": "set"})
TEMPLATE = Rule(path={"name": "template"})
GROUP = Rule(path={"group_id": "group"})
PLATFORM = Rule(path={"slug": "platform"})
MODEL = Rule(path={"name": "model", "platform": "platform"})
CHANGE = Rule(path={"change_id": "change"})
BISECT = Rule(path={"bisect_id": "bisect"})
COMPARISON = Rule(path={"comparison_id": "comparison"})
COMPARED = Rule(path={"comparison_id": "comparison", "position": "position"})
REPOSITORY = Rule(path={"repository_id": "repository"})
SCHEDULE = Rule(path={"schedule_id": "schedule"})
TUNING = Rule(path={"tuning_id": "tuning"})
ITERATION = Rule(path={"iteration_id": "iteration"})

RULES: dict[str, Rule] = {
    "overview": PAGE,
    "run-list": PAGE,
    "run-list-csv": PAGE,
    "run-new": Rule(post=422, roles=OPERATORS),
    "run-detail": RUN,
    "run-status": RUN,
    "run-log": RUN,
    "run-metrics-csv": RUN,
    "run-file": Rule(path={"run_id": "run", "name": "file"}),
    "run-ranks": RUN,
    "run-ranks-csv": RUN,
    "run-cancel": Rule(post=302, roles=OPERATORS, path={"run_id": "queued"}),
    "run-again": Rule(get=None, post=302, roles=OPERATORS, path={"run_id": "run"}),
    "template-list": PAGE,
    "template-new": Rule(post=422, roles=OPERATORS),
    "template-detail": TEMPLATE,
    "template-file": TEMPLATE,
    "template-edit": Rule(post=422, roles=OPERATORS, path={"name": "template"}),
    "template-run": Rule(post=422, roles=OPERATORS, path={"name": "template"}),
    "group-detail": GROUP,
    "group-status": GROUP,
    "platform-list": PAGE,
    "platform-detail": PLATFORM,
    "platform-calibrate": Rule(post=422, roles=OPERATORS, path={"slug": "platform"}),
    "platform-noise": Rule(post=422, roles=OPERATORS, path={"slug": "platform"}),
    "trace-list": PAGE,
    "trace-upload": Rule(post=422, roles=OPERATORS),
    "trace-set": SET,
    "trace-set-status": SET,
    "trace-set-csv": SET,
    "trace-detail": TRACE,
    "trace-status": TRACE,
    "trace-operators": TRACE,
    "trace-operators-csv": TRACE,
    "trace-panel": Rule(path={"trace_id": "trace", "name": "panel"}),
    "trace-operators-json": TRACE,
    "trace-panel-json": Rule(path={"trace_id": "trace", "name": "panel"}),
    "trace-panel-csv": Rule(path={"trace_id": "trace", "name": "panel"}),
    "trace-what-if": TRACE,
    "trace-graph": TRACE,
    "trace-graph-csv": TRACE,
    # A trace without steps has none to hand out; test_cuts hands out one that has.
    "trace-step": Rule(get=404, path={"trace_id": "trace", "number": "run"}),
    "trace-graph-data": TRACE,
    "trace-flame": TRACE,
    "trace-report": TRACE,
    "trace-raw": TRACE,
    "trace-redacted": TRACE,
    "trace-redact": Rule(get=None, post=302, roles=OPERATORS, path={"trace_id": "trace"}),
    "trace-again": Rule(get=None, post=302, roles=OPERATORS, path={"trace_id": "trace"}),
    "change-list": PAGE,
    "change-list-csv": PAGE,
    "change-detail": CHANGE,
    "change-points-csv": CHANGE,
    "change-confirm": replace(CHANGE, get=None, post=302, roles=OPERATORS),
    "change-acknowledge": replace(CHANGE, get=None, post=302, roles=OPERATORS),
    "bisect-list": PAGE,
    "bisect-new": Rule(post=422, roles=OPERATORS),
    "bisect-detail": BISECT,
    "bisect-live": BISECT,
    "bisect-csv": BISECT,
    "bisect-cancel": replace(BISECT, get=None, post=302, roles=OPERATORS),
    "comparison-runs": PAGE,
    "comparison-traces": PAGE,
    # Files of nothing: test_compare_runs and test_compare_traces name what they are of.
    "comparison-runs-csv": Rule(get=404),
    "comparison-runs-markdown": Rule(get=404),
    "comparison-traces-csv": Rule(get=404),
    "comparison-traces-markdown": Rule(get=404),
    "comparison-list": PAGE,
    "comparison-new": Rule(post=422, roles=OPERATORS),
    "comparison-detail": COMPARISON,
    "comparison-live": COMPARISON,
    "comparison-pairs-csv": COMPARISON,
    "comparison-markdown": COMPARISON,
    "comparison-difference": COMPARED,
    "comparison-operators-csv": COMPARED,
    "comparison-more": replace(COMPARISON, get=None, post=302, roles=OPERATORS),
    "comparison-cancel": replace(COMPARISON, get=None, post=302, roles=OPERATORS),
    "tuning-list": PAGE,
    "tuning-new": Rule(post=422, roles=OPERATORS),
    "tuning-start": Rule(get=302, roles=OPERATORS),
    "tuning-calibration-csv": PAGE,
    "tuning-detail": TUNING,
    "tuning-close": replace(TUNING, post=422, roles=OPERATORS),
    "tuning-markdown": TUNING,
    "tuning-report": TUNING,
    "tuning-ladder-csv": TUNING,
    "tuning-iterations-csv": TUNING,
    "iteration-new": replace(TUNING, post=422, roles=OPERATORS),
    "iteration-detail": ITERATION,
    "iteration-measure": replace(ITERATION, get=None, post=302, roles=OPERATORS),
    "iteration-attach": replace(ITERATION, get=None, post=302, roles=OPERATORS),
    "iteration-decide": replace(ITERATION, get=None, post=422, roles=OPERATORS),
    "repository-list": PAGE,
    "repository-new": Rule(post=422, roles=("admin",)),
    "repository-detail": REPOSITORY,
    "repository-status": REPOSITORY,
    "repository-fetch": Rule(
        get=None, post=302, roles=OPERATORS, path={"repository_id": "repository"}
    ),
    "model-list": PAGE,
    "model-detail": MODEL,
    "model-history-csv": MODEL,
    "model-operators": MODEL,
    "model-operators-csv": MODEL,
    "model-annotate": replace(MODEL, post=422, roles=OPERATORS),
    # Without a number nothing is removed; it leads back and says so.
    "model-unannotate": replace(MODEL, get=None, post=302, roles=OPERATORS),
    "operator": PAGE,
    "note-list": PAGE,
    # Without a subject it leads to the list.
    "note-about": Rule(get=302),
    "note-new": Rule(post=422, roles=OPERATORS),
    "note-edit": Rule(post=422, roles=OPERATORS, path={"note_id": "note"}),
    "note-delete": Rule(get=None, post=302, roles=OPERATORS, path={"note_id": "note"}),
    "retention": PAGE,
    "retention-policy": Rule(post=302, roles=("admin",)),
    "retention-plan-csv": PAGE,
    "retention-disk": PAGE,
    "retention-disk-csv": PAGE,
    "run-pin": Rule(get=None, post=302, roles=OPERATORS, path={"run_id": "run"}),
    "run-unpin": Rule(get=None, post=302, roles=OPERATORS, path={"run_id": "run"}),
    "trace-pin": Rule(get=None, post=302, roles=OPERATORS, path={"trace_id": "trace"}),
    "trace-unpin": Rule(get=None, post=302, roles=OPERATORS, path={"trace_id": "trace"}),
    "automation-list": PAGE,
    "schedule-new": Rule(post=422, roles=OPERATORS),
    "schedule-detail": SCHEDULE,
    "schedule-firings-csv": SCHEDULE,
    "schedule-change": replace(SCHEDULE, get=None, post=302, roles=OPERATORS),
    "firing-drop": Rule(get=None, post=302, roles=OPERATORS, path={"firing_id": "firing"}),
    # An empty budget takes the limit away.
    "platform-budget": Rule(post=302, roles=OPERATORS, path={"slug": "platform"}),
    # Signed by the host of the repository; nobody's session lets a call in.
    "hook-push": Rule(get=None, post=403, open=True, signed=True, path={"slug": "template"}),
    "repository-hook": Rule(post=422, roles=("admin",), path={"repository_id": "repository"}),
    "announcement-list": PAGE,
    "announcement-unread": PAGE,
    "announcement-read": Rule(get=None, post=302),
    "announcement-detail": Rule(path={"announcement_id": "announcement"}),
    "subscription-list": Rule(post=422),
    # The form stands on the page of subscriptions, and an empty address takes it away.
    "subscription-address": Rule(get=302, post=302),
    "subscription-end": Rule(get=None, post=302, path={"subscription_id": "subscription"}),
    "endpoint-list": Rule(roles=("admin",)),
    "endpoint-new": Rule(post=422, roles=("admin",)),
    "endpoint-detail": Rule(post=422, roles=("admin",), path={"endpoint_id": "endpoint"}),
    "status": PAGE,
    "glossary": PAGE,
    # Whoever is signed in is sent on to the overview.
    "sign-in": Rule(get=302, post=422, open=True),
    "sign-in-link": Rule(post=302, open=True, path={"token": "token"}),
    "sign-out": Rule(get=None, post=302),
    "account": Rule(post=422),
    "user-list": Rule(roles=("admin",)),
    "user-new": Rule(post=422, roles=("admin",)),
    "user-detail": Rule(post=422, roles=("admin",), path={"user_id": "user"}),
    "healthz": Rule(open=True),
}
