"""Parts of steps and phases add up to them, to the nanosecond."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.bounds import SplitRow
from profiler.analysis.ingest import ingest
from tests.profiler.trace.build import TraceBuilder, busy, small

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "traces"
REAL = (
    "alexnet-a100-cudasync",
    "ascend-level1-r0",
    "dlrm-v100-8rank-r1",
    "qwen-h100",
    "mi210-gpuonly",
)


def splits(path: Path) -> list[SplitRow]:
    return ingest([path], None).splits


def whole(row: SplitRow) -> int:
    return row.compute_ns + row.exposed_comm_ns + row.exposed_copy_ns + sum(row.idle.values())


def test_it_splits_a_step_by_what_the_device_did(tmp_path: Path) -> None:
    first, second = splits(small().write(tmp_path / "t.json"))
    assert (first.kind, first.name, first.device, first.count) == ("step", "ProfilerStep#0", "0", 1)
    # A step of 90 µs: the device works from 20 to 45.5 and from 80 to 84 in each.
    assert (first.span_ns, first.compute_ns, first.exposed_copy_ns) == (90_000, 25_500, 4_000)
    assert first.idle == {"host": 40_500, "edge": 20_000}
    assert second.idle == {"host": 34_500 + 20_000, "edge": 6_000}


def test_it_adds_up_the_stretches_of_a_phase(tmp_path: Path) -> None:
    made = busy(steps=2)
    for step in range(2):
        made.mark("phase: forward", 10_000.0 + 1100 * step, 490)
        made.mark("phase: backward", 10_490.0 + 1100 * step, 510)
    rows = {row.name: row for row in splits(made.write(tmp_path / "t.json")) if row.kind == "phase"}
    assert rows["forward"].count == rows["backward"].count == 2
    assert rows["forward"].compute_ns == 2 * 12 * 17_250
    assert rows["backward"].compute_ns == 2 * 12 * 21_500
    assert all(whole(row) == row.span_ns for row in rows.values())


def test_it_takes_phases_from_the_device_where_they_are_marked_there(tmp_path: Path) -> None:
    made = small()
    made.mark("phase: prefill", 1000, 15)
    made.event("gpu_user_annotation", "phase: prefill", 1020, 26, pid=0, tid=7)
    (row,) = [row for row in splits(made.write(tmp_path / "t.json")) if row.kind == "phase"]
    assert (row.span_ns, row.compute_ns) == (26_000, 25_500)


def test_it_splits_the_host_where_there_is_no_device(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.mark("ProfilerStep#0", 1000, 100)
    made.op("aten::mm", 1010, 30)
    made.op("gloo:all_reduce", 1030, 40, tid=2)
    (row,) = splits(made.write(tmp_path / "t.json"))
    assert (row.device, row.compute_ns, row.exposed_comm_ns) == ("", 30_000, 30_000)
    assert row.idle == {"between_operators": 40_000}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.skipif(not SHARED.is_dir(), reason="there are no shared traces beside the repository")
def test_real_steps_add_up(name: str) -> None:
    for row in splits(SHARED / f"{name}.json.gz"):
        assert whole(row) == row.span_ns
        assert min(row.compute_ns, row.exposed_comm_ns, row.exposed_copy_ns) >= 0
        assert min(row.idle.values(), default=0) >= 0
