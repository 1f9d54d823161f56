"""Which software stacks are noticed: new versions, not what a workload chose for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.models import Run, RunState, Stack
from dashboard.services.stacks import note_stack
from tests.dashboard.services.scene import ENVIRONMENT
from tests.factories import make_result, make_run
from tests.sources import make_commit, make_repository

pytestmark = pytest.mark.django_db


def note(run: Run | None = None, /, **fields: str) -> None:
    told = replace(ENVIRONMENT, fields={"torch": "2.13.0", **fields})
    note_stack(run or make_run(RunState.SUCCEEDED), told)


def stacks() -> list[tuple[bool, str]]:
    return list(Stack.objects.order_by("id").values_list("is_change", "difference"))


def test_the_first_stack_is_no_change() -> None:
    note()
    note()
    assert stacks() == [(False, "")]


def test_another_version_is_one() -> None:
    note(driver="570")
    note(torch="2.14.0", driver="570", triton="4")
    assert stacks()[1] == (True, "torch 2.13.0 -> 2.14.0, triton none -> 4")


@pytest.mark.parametrize(
    "field", ["torch_threads", "env.WORLD_SIZE", "host", "git_commit", "deterministic_algorithms"]
)
def test_what_a_run_or_host_sets_for_itself_is_none(field: str) -> None:
    note(**{field: "1"})
    note(**{field: "2"})
    assert len(stacks()) == 1


def test_a_version_that_comes_back_is_known() -> None:
    note()
    note(torch="2.14.0")
    note()
    assert len(stacks()) == 2


def test_results_from_before_stacks_were_kept_count() -> None:
    make_result(make_run(RunState.SUCCEEDED))  # torch 2.13.0, cpu test
    note(torch="2.14.0", cpu="test")
    assert stacks() == [(True, "torch 2.13.0 -> 2.14.0")]


def test_every_repository_has_stacks_of_its_own() -> None:
    note()
    commit = make_commit(make_repository())
    note(make_run(RunState.SUCCEEDED, commit=commit), torch="9")
    note(make_run(RunState.SUCCEEDED, commit=commit), torch="10")
    assert stacks() == [(False, ""), (False, ""), (True, "torch 9 -> 10")]
