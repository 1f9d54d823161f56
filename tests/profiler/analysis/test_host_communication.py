"""Collectives that threads of the host run, as gloo does."""

from __future__ import annotations

from pathlib import Path

from profiler.analysis.ingest import ingest
from tests.profiler.trace.build import TraceBuilder


def recorded(*, computing: bool) -> TraceBuilder:
    """Two all-reduces of 100 µs on a thread of gloo; with `computing` half of one is covered."""
    made = TraceBuilder()
    for call in range(2):
        at = 1000.0 + 200 * call
        made.op("c10d::allreduce_", at, 110)
        made.op("gloo:all_reduce", at + 5, 100, tid=2)
    if computing:
        made.op("aten::mm", 1055, 50, tid=3)
    return made


def test_it_counts_collectives_of_the_host(tmp_path: Path) -> None:
    (row,) = ingest([recorded(computing=False).write(tmp_path / "t.json")], None).collectives
    assert (row.name, row.count, row.total_ns) == ("all_reduce", 2, 200_000)
    assert row.exposed_ns == 200_000
    assert row.bytes is None


def test_what_runs_beside_an_operator_is_not_exposed(tmp_path: Path) -> None:
    (row,) = ingest([recorded(computing=True).write(tmp_path / "t.json")], None).collectives
    assert row.exposed_ns == 150_000


def test_ranks_on_processors_are_aligned_by_them(tmp_path: Path) -> None:
    late = recorded(computing=False)
    for event in late.events:
        if event["name"] == "gloo:all_reduce":
            event["ts"], event["dur"] = float(str(event["ts"])) + 60, 40
    paths = [
        recorded(computing=False).write(tmp_path / "rank0.json"),
        late.write(tmp_path / "rank1.json"),
    ]
    ranks = ingest(paths, None).ranks
    assert ranks is not None
    assert (ranks.straggler, ranks.matched_collectives) == (1, 2)
    assert ranks.ranks[0].waited_ns == 120_000
