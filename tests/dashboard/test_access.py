"""Who may what: every address x role x method, from the address list itself.

An address that is missing from the table fails, so that nobody adds one
without saying who may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.models import (
    Bisect,
    Change,
    Comparison,
    Note,
    Role,
    Run,
    RunArtifact,
    RunState,
    Trace,
    TraceSet,
    User,
)
from dashboard.services.accounts import new_sign_in_link
from dashboard.urls import urlpatterns
from profiler.analysis.flame_document import pack
from tests.automation import (
    make_announcement,
    make_endpoint,
    make_firing,
    make_schedule,
    make_subscription,
)
from tests.bisects import make_bisect
from tests.factories import (
    make_group,
    make_note,
    make_ready_trace,
    make_result,
    make_run,
    make_set,
    make_user,
    store_artifact,
)
from tests.graphs import make_graph
from tests.histories import make_change
from tests.sources import make_comparison, make_explained
from tests.tunings import make_iteration, make_tuning

ROLES = ("anonymous", *Role.values)
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
SIGN_IN = 302


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

LATE: Mapping[str, Callable[[User], int]] = {
    "schedule": lambda _: make_schedule().pk,
    "firing": lambda _: make_firing().pk,
    "announcement": lambda _: make_announcement().pk,
    "subscription": lambda person: make_subscription(person).pk,
    "endpoint": lambda _: make_endpoint().pk,
    "tuning": lambda _: make_tuning().pk,
    "iteration": lambda _: make_iteration(make_tuning()).pk,
}
"""Rows that only their own addresses need, made when one is asked for."""

NAMES = [pattern.name or str(pattern.pattern) for pattern in urlpatterns]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One of everything, and the person who asks."""

    run: Run
    queued: Run
    trace: Trace
    set: TraceSet
    note: Note
    change: Change
    bisect: Bisect
    comparison: Comparison
    user: User | None
    person: User

    def address(self, name: str) -> str:
        """A link is new each time: using it ends it."""
        values = {
            "run": str(self.run.pk),
            "queued": str(self.queued.pk),
            "trace": str(self.trace.pk),
            "file": "log.txt",
            "set": str(self.set.pk),
            "template": "quick",
            "group": str(self.run.group_id),
            "platform": self.run.platform.slug,
            "model": self.run.workload.model.name,
            "change": str(self.change.pk),
            "bisect": str(self.bisect.pk),
            "comparison": str(self.comparison.pk),
            "position": "0",
            "repository": str(self.comparison.repository_id),
            "panel": "kernels",
            "note": str(self.note.pk),
            "token": new_sign_in_link(self.person),
            "user": str(self.person.pk),
        }
        found = {
            key: values[what] if what in values else str(LATE[what](self.person))
            for key, what in RULES[name].path.items()
        }
        return reverse(name, kwargs=found)


@pytest.fixture
def scene_for(db: None) -> Iterator[Callable[[str], Scene]]:
    """A scene whose runs belong to the person who asks."""

    def build(role: str) -> Scene:
        user = None if role == "anonymous" else make_user(role, role=role)
        run = make_run(RunState.SUCCEEDED, created_by=user, group=make_group())
        make_result(run)
        log = store_artifact(b"a line\n")
        RunArtifact.objects.create(run=run, attempt=1, name="log.txt", artifact=log)
        queued = make_run(RunState.QUEUED, created_by=user)
        trace = make_ready_trace(run=run)
        graph = store_artifact(pack(make_graph()))
        Trace.objects.filter(pk=trace.pk).update(redacted=store_artifact(b"clean"), graph=graph)
        person = user or make_user()
        whole = make_set(make_ready_trace(), make_ready_trace())
        return Scene(
            run=run,
            queued=queued,
            trace=trace,
            set=whole,
            note=make_note(author=person),
            bisect=make_bisect(),
            comparison=make_explained(make_comparison()),
            change=make_change(),
            user=user,
            person=person,
        )

    yield build


def expected(rule: Rule, role: str, method: str) -> set[int]:
    """Every answer that is right."""
    known = {"get": rule.get, "head": rule.get, "post": rule.post}.get(method)
    if role == "anonymous":
        if not rule.open:
            return {SIGN_IN}
        return {405} if known is None else {200 if method != "post" else known}
    if known is None:
        # Whether a role or the method is looked at first does not matter: both refuse.
        return {405} if role in rule.roles else {403, 405}
    return {known} if role in rule.roles else {403}


def test_it_has_a_rule_for_every_address() -> None:
    assert sorted(NAMES) == sorted(RULES)


@pytest.mark.parametrize(("name", "role"), list(product(RULES, ROLES)))
def test_it_answers_each_role_as_the_table_says(
    name: str, role: str, scene_for: Callable[[str], Scene]
) -> None:
    scene = scene_for(role)
    got: dict[str, int] = {}
    for method in METHODS:
        client = Client()
        if scene.user:
            client.force_login(scene.user)
        response = getattr(client, method)(scene.address(name))
        got[method] = response.status_code
        response.close()
    wrong = {m: s for m, s in got.items() if s not in expected(RULES[name], role, m)}
    assert not wrong


@pytest.mark.parametrize(
    "name", [name for name, rule in RULES.items() if rule.post and not rule.signed]
)
def test_it_refuses_a_post_without_a_token(name: str, scene_for: Callable[[str], Scene]) -> None:
    scene = scene_for("admin")
    client = Client(enforce_csrf_checks=True)
    assert scene.user is not None
    client.force_login(scene.user)
    response = client.post(scene.address(name))
    assert response.status_code == 403
    assert "no longer valid" in response.content.decode()


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.open])
def test_it_asks_for_a_sign_in_and_comes_back(name: str, scene_for: Callable[[str], Scene]) -> None:
    address = scene_for("anonymous").address(name)
    response = Client().get(address)
    assert response.headers["Location"] == f"/sign-in/?next={address}"


NUMBERS = {"note_id", "run_id", "trace_id", "set_id", "group_id", "user_id"}
NUMBERS |= {"repository_id", "comparison_id", "bisect_id"}
NUMBERS |= {"tuning_id", "iteration_id"}
NUMBERS |= {"schedule_id", "firing_id", "announcement_id", "subscription_id", "endpoint_id"}
NUMBERED = [name for name, rule in RULES.items() if NUMBERS & set(rule.path)]


@pytest.mark.parametrize("number", [987_654, 2**63, 10**30])
@pytest.mark.parametrize("name", NUMBERED)
def test_it_says_not_found_for_what_does_not_exist(
    name: str, number: int, admin_client: Client
) -> None:
    rule = RULES[name]
    words = {"file": "log.txt", "panel": "kernels", "position": "0"}
    values = {key: words.get(what, number) for key, what in rule.path.items()}
    ask = admin_client.get if rule.get else admin_client.post
    assert ask(reverse(name, kwargs=values)).status_code == 404


def test_it_lets_operators_cancel_only_their_own_runs(
    operator_client: Client, admin_client: Client
) -> None:
    run = make_run(RunState.QUEUED, created_by=make_user("owner"))
    address = reverse("run-cancel", args=[run.pk])
    assert operator_client.post(address).status_code == 403
    assert admin_client.post(address).status_code == 302
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED


def test_it_ends_with_the_role(operator: User, operator_client: Client) -> None:
    assert operator_client.get("/runs/new/").status_code == 200
    User.objects.filter(pk=operator.pk).update(role=Role.VIEWER)
    assert operator_client.get("/runs/new/").status_code == 403
