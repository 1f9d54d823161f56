"""A pass of retention that is killed anywhere: a keeper finishes it, nothing dangles."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from dashboard.models import Artifact, Pruning, Trace
from dashboard.services import retention
from tests.dashboard.old_traces import old_file, old_trace
from tests.factories import make_user
from tests.workers.system import System, wait_for

pytestmark = pytest.mark.fault


def stored(var_dir: Path) -> set[str]:
    return {path.name for path in (var_dir / "artifacts").rglob("*") if path.is_file()}


def dangling(var_dir: Path) -> set[str]:
    """Rows that are not marked and have no file."""
    rows = Artifact.objects.filter(removed_at__isnull=True)
    return set(rows.values_list("sha256", flat=True)) - stored(var_dir)


def orphans(var_dir: Path) -> set[str]:
    """Files that no row wants."""
    rows = Artifact.objects.filter(removed_at__isnull=True)
    return stored(var_dir) - set(rows.values_list("sha256", flat=True))


@pytest.mark.parametrize(
    ("where", "left_over"),
    [("before the mark", 0), ("before the removal", 1), ("after the removal", 0)],
)
def test_it_ends_well_wherever_it_is_killed(system: System, where: str, left_over: int) -> None:
    trace = old_trace(40)
    old_file(2)
    retention.set_policy(30, None, make_user())
    killed = system.start("-m", "tests.workers.killed_prune", where)
    assert killed.wait(60) == -signal.SIGKILL, system.logs()
    assert dangling(system.var_dir) == set()
    assert len(orphans(system.var_dir)) == left_over
    system.start_keeper()
    wait_for(lambda: Pruning.objects.filter(open=False).exists())
    wait_for(lambda: not orphans(system.var_dir))
    assert dangling(system.var_dir) == set()
    trace = Trace.objects.select_related("raw", "redacted", "columns").get(pk=trace.pk)
    assert trace.raw.removed_at and trace.redacted and trace.redacted.removed_at
    assert trace.columns and trace.columns.removed_at is None
