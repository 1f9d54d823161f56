"""A run from the queue to its result, through real processes."""

from __future__ import annotations

import pytest

from dashboard.models import RunState
from tests.workers.system import System, assert_invariants, wait_for_end

pytestmark = pytest.mark.fault


def test_it_takes_a_run_from_the_queue_to_its_result(system: System) -> None:
    run = system.queue()
    system.start_all()
    ended = wait_for_end(run)
    assert ended.state == RunState.SUCCEEDED, system.logs()
    assert ended.result.metrics.get().value == 2.0
    assert_invariants(system.var_dir)
