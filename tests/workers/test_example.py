"""Two commits of a real model, compared by the real benchmark through the real worker."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.models import ComparedWorkload
from dashboard.queries.differences import difference_of
from dashboard.services import catalog
from dashboard.services.comparisons import NewComparison, create_comparison
from dashboard.services.repositories import NewRepository, register_repository
from profiler.analysis.ladder import Settings
from tests.sources import make_pair
from tests.workers import example_repository as example
from tests.workers.bench import Bench
from workers.fetch import Fetcher

pytestmark = pytest.mark.fault

SHORT = replace(example.SPEC, output_tokens=9, iterations=2, warmup=1)
LOST = 5
"""Pairs that are lost before, so that one real pair fills the first rung: a launch takes long."""


def asked(made: example.Example) -> ComparedWorkload:
    """A comparison of the faster commit, one pair before its first and only rung."""
    wanted = NewRepository(
        slug="example",
        address=str(made.upstream.folder),
        build_command=example.BUILD,
        factory=example.FACTORY,
    )
    row = register_repository(wanted, None)
    comparison = create_comparison(
        NewComparison(
            repository=row,
            baseline=made.base,
            candidate=made.faster,
            platform=catalog.ensure_platform(),
            specs=(SHORT,),
            settings=Settings(rungs=(LOST + 1,)),
        ),
        None,
    )
    compared = comparison.workloads.get()
    for _ in range(LOST):
        make_pair(compared, None, None)
    Fetcher(threading.Event()).step()
    return compared


def test_it_compares_and_names_the_operator_that_changed(bench: Bench, tmp_path: Path) -> None:
    compared = asked(example.make_example(tmp_path / "example"))
    waiting = bench.duty().next()
    assert waiting is not None and bench.duty().handle(*waiting)
    compared.refresh_from_db()
    session = compared.sessions.get()
    assert session.state == "succeeded", session.failure_message
    launches = compared.pairs.get(number=LOST).launches.all()
    assert [launch.message for launch in launches] == ["", ""]
    assert all(launch.values["tpot"] > 0 for launch in launches)
    assert len({launch.comparable_hash for launch in launches}) == 1
    assert compared.state == "settled"
    found = difference_of(compared)
    assert found is not None
    first = found.diff.rows[0]
    assert (first.module, first.operator) == (example.MODULE, example.OPERATOR)
    assert first.baseline is not None and first.candidate is not None
    assert (first.baseline.calls, first.candidate.calls) == (16, 8)
    assert found.waterfall.bars[0].name == example.OPERATOR
