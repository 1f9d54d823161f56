"""What a policy removes, what is exempt, and that no crash leaves a row without its file."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.models import Artifact, Audit, Pin, Pruning, RunArtifact, RunState, Trace, TraceState
from dashboard.services import artifacts, retention, traces
from dashboard.services.artifacts import RemovedError
from dashboard.services.retention import PinError
from dashboard.services.retention_due import holders
from dashboard.services.traces import TraceStateError
from profiler.errors import UserError
from tests.dashboard.old_traces import age_file, left, old_file, old_run, old_trace, path_of
from tests.factories import make_run, make_trace, make_user, store_artifact
from tests.sources import make_comparison

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store_root")]

SUMMARIES = {"report", "flame", "graph"}
COLUMNS = {"columns", "replay", "collectives"}
RAW = {"raw", "redacted"}
ALL = SUMMARIES | COLUMNS | RAW


def policy(raw_days: int | None = 30, columns_days: int | None = None) -> None:
    retention.set_policy(raw_days, columns_days, make_user())


def row_of(artifact: Artifact | None) -> Artifact:
    assert artifact is not None
    return Artifact.objects.get(pk=artifact.pk)


def test_it_removes_raw_files_and_keeps_columns_and_summaries() -> None:
    old, young = old_trace(31), old_trace(29)
    policy()
    done = retention.prune()
    assert left(old) == COLUMNS | SUMMARIES
    assert left(young) == ALL
    gone = [row_of(old.raw), row_of(old.redacted)]
    assert (done.files, done.size_bytes) == (2, sum(row.size_bytes for row in gone))
    assert {row.removal for row in gone} == {"raw traces are kept for 30 days"}


def test_it_removes_columns_later_and_keeps_summaries() -> None:
    older, old = old_trace(91), old_trace(89)
    policy(raw_days=30, columns_days=90)
    retention.prune()
    assert left(older) == SUMMARIES
    assert left(old) == COLUMNS | SUMMARIES
    assert row_of(older.replay).removal == "columns are kept for 90 days"


def test_it_removes_nothing_without_a_policy() -> None:
    trace = old_trace(5000)
    assert retention.prune().files == 0
    policy(raw_days=None)
    assert retention.prune().files == 0
    assert left(trace) == ALL


def test_the_newest_policy_counts() -> None:
    trace = old_trace(31)
    policy(raw_days=30)
    policy(raw_days=60)
    retention.prune()
    assert left(trace) == ALL


def test_it_removes_what_a_run_and_its_trace_both_name() -> None:
    run = old_run(31)
    trace = old_trace(31, run=run)
    log = RunArtifact.objects.create(run=run, attempt=1, name="log.txt", artifact=old_file(31))
    policy()
    retention.prune()
    assert "raw" not in left(trace)
    assert path_of(log.artifact).exists()


def test_it_keeps_the_files_of_what_has_not_ended() -> None:
    raw = old_file(31)
    reading = make_trace(
        TraceState.PENDING, raw=raw, created_at=timezone.now() - timedelta(days=31)
    )
    run = make_run(RunState.RUNNING, created_at=timezone.now() - timedelta(days=31))
    handed_back = RunArtifact.objects.create(
        run=run, attempt=1, name="trace.json.gz", artifact=old_file(31)
    )
    policy()
    retention.prune()
    assert path_of(reading.raw).exists() and path_of(handed_back.artifact).exists()


@pytest.mark.parametrize("what", ["trace", "run"])
def test_a_pin_exempts(what: str) -> None:
    trace = old_trace(31, run=old_run(31))
    assert trace.run is not None
    retention.pin(trace if what == "trace" else trace.run, "for the report", make_user())
    policy()
    retention.prune()
    assert left(trace) == ALL
    retention.unpin(trace if what == "trace" else trace.run, make_user())
    retention.prune()
    assert left(trace) == ALL - RAW


def test_it_keeps_what_a_comparison_refers_to() -> None:
    trace, other = old_trace(31), old_trace(31)
    make_comparison().workloads.update(baseline_trace=trace)
    policy()
    retention.prune()
    assert left(trace) == ALL
    assert left(other) == ALL - RAW


def test_it_keeps_the_day_0_run_of_each_workload() -> None:
    first = old_trace(400, run=old_run(400, first=True))
    later = old_trace(399, run=old_run(399, first=True))
    policy()
    retention.prune()
    assert left(first) == ALL
    assert left(later) == ALL - RAW


def test_a_pin_on_another_trace_changes_nothing() -> None:
    one, other = old_trace(31, run=old_run(31)), old_trace(31, run=old_run(31))
    assert other.run is not None
    retention.pin(other.run, "kept", make_user())
    policy()
    retention.prune()
    assert left(one) == ALL - RAW
    assert left(other) == ALL


def test_it_removes_shared_bytes_only_when_nothing_refers_to_them() -> None:
    shared = old_file(31, b"the same bytes")
    old = old_trace(31, raw=shared)
    young = old_trace(2, raw=shared)
    policy()
    retention.prune()
    assert "raw" in left(old) and "raw" in left(young)
    Trace.objects.filter(pk=young.pk).update(created_at=timezone.now() - timedelta(days=40))
    retention.prune()
    assert "raw" not in left(old) and "raw" not in left(young)


def test_it_keeps_a_raw_file_that_is_also_something_else() -> None:
    shared = old_file(31, b"raw and report alike")
    trace = old_trace(31, raw=shared)
    Trace.objects.filter(pk=old_trace(1).pk).update(report=shared)
    policy()
    retention.prune()
    assert "raw" in left(trace)


def test_it_spares_what_was_just_stored_again() -> None:
    trace = old_trace(31)
    artifacts.store().renew(trace.raw.sha256)
    policy()
    retention.prune()
    assert "raw" in left(trace)


def test_bytes_that_are_stored_again_after_they_went_are_back() -> None:
    raw = old_file(31, b"comes back")
    trace = old_trace(31, raw=raw)
    policy()
    retention.prune()
    assert "raw" not in left(trace)
    assert store_artifact(b"comes back").pk == raw.pk
    assert "raw" in left(trace)
    assert artifacts.read(raw.sha256) == b"comes back"


def test_it_says_when_and_why_a_file_went() -> None:
    trace = old_trace(31)
    policy()
    retention.prune()
    day = f"{timezone.now():%Y-%m-%d}"
    with pytest.raises(RemovedError, match=f"removed on {day} by policy: raw traces are kept"):
        artifacts.read(trace.raw.sha256)
    with pytest.raises(TraceStateError, match="raw traces are kept for 30 days"):
        traces.reingest(trace.pk, make_user())
    with pytest.raises(TraceStateError, match="removed on"):
        traces.redact(trace.pk, make_user())


def test_readings_of_before_are_removed_row_and_file() -> None:
    unused, young, lost = old_file(2), old_file(0.5), old_file(2)
    path_of(lost).unlink()
    done = retention.prune()
    assert set(Artifact.objects.values_list("pk", flat=True)) == {young.pk}
    assert path_of(young).exists() and not path_of(unused).exists()
    assert done.files == 2


class Killed(BaseException):
    """Stands for kill -9: nothing catches it, nothing is cleaned up."""


def test_a_kill_before_the_mark_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = old_trace(31)
    policy()

    def killed(*_: object) -> str:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(retention, "_said", killed)
        retention.prune()
    assert left(trace) == ALL
    retention.prune()
    assert left(trace) == ALL - RAW


def test_a_kill_between_mark_and_removal_leaves_a_file_that_garbage_collection_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = old_trace(31)
    policy()

    def killed(_sha256: str) -> bool:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(artifacts, "drop_file", killed)
        retention.prune()
    marked = [
        row for row in (trace.raw, trace.redacted) if row and row_of(row).removed_at is not None
    ]
    assert len(marked) == 1 and path_of(marked[0]).exists()
    assert artifacts.collect_garbage() == 1
    assert not path_of(marked[0]).exists()
    retention.prune()
    assert left(trace) == ALL - RAW


def test_a_keeper_does_a_bounded_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    old = [old_trace(31) for _ in range(4)]
    policy()
    done = []
    while (part := retention.tick()) is not None:
        done.append(part.files)
    assert done == [3, 3, 2]
    assert all(left(trace) == ALL - RAW for trace in old)
    whole = Pruning.objects.get()
    assert whole.files == 8 and whole.ended_at is not None


def test_a_keeper_looks_once_a_day() -> None:
    policy()
    now = timezone.now()
    assert retention.tick(now) is not None
    assert retention.tick(now + timedelta(hours=23)) is None
    assert retention.tick(now + timedelta(hours=25)) is not None
    assert Pruning.objects.count() == 2


def test_a_file_that_stays_after_all_does_not_hold_up_the_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "BATCH", 1)
    spared, old = old_trace(31), old_trace(31)
    for artifact in (spared.raw, spared.redacted):
        assert artifact is not None
        artifacts.store().renew(artifact.sha256)
    policy()
    retention.prune()
    assert left(old) == ALL - RAW


@pytest.mark.parametrize(("raw", "columns"), [(0, None), (30, 29), (None, 90), (5, 0)])
def test_it_refuses_a_policy_that_cannot_be(raw: int | None, columns: int | None) -> None:
    with pytest.raises(UserError, match=r"day at least|before the raw"):
        policy(raw, columns)


def test_a_pin_needs_a_reason_and_is_set_once() -> None:
    trace, user = old_trace(1), make_user()
    with pytest.raises(PinError, match="needs a reason"):
        retention.pin(trace, "  ", user)
    retention.pin(trace, "kept\u202e", user)
    with pytest.raises(PinError, match=f"Trace {trace.pk} is pinned already"):
        retention.pin(trace, "again", user)
    assert Pin.objects.get().reason == "kept\\u202e"
    retention.unpin(trace, user)
    with pytest.raises(PinError, match="is not pinned"):
        retention.unpin(trace, user)
    deeds = list(Audit.objects.order_by("pk").values_list("action", flat=True))
    assert deeds == ["retention.pin", "retention.unpin"]


def test_whatever_names_a_trace_or_run_holds_it_unless_it_is_a_part() -> None:
    names = {f"{model.__name__}.{field}" for model, field in holders(Trace)}
    assert {"Pin.trace", "ComparedWorkload.baseline_trace"} <= names
    assert "Operator.trace" not in names


def test_an_aged_row_is_as_old_as_its_file() -> None:
    row = age_file(store_artifact(b"x"), 3)
    assert artifacts.store().is_old(row.sha256, timedelta(days=2))
    assert not artifacts.store().is_old(row.sha256, timedelta(days=4))
