"""Communication of steps on traces whose every time is known."""

from __future__ import annotations

import json
from pathlib import Path

from profiler.bench.communication import Talk, talk_metrics, talk_of

MAIN, GLOO, STREAM = 1, 2, 7


def event(name: str, start_us: int, dur_us: int, **fields: object) -> dict[str, object]:
    where: dict[str, object] = {"ph": "X", "cat": "cpu_op", "pid": 5, "tid": MAIN, "args": {}}
    return where | {"name": name, "ts": start_us, "dur": dur_us} | fields


def step(number: int, start_us: int, dur_us: int) -> dict[str, object]:
    return event(f"ProfilerStep#{number}", start_us, dur_us, cat="user_annotation")


def gloo(start_us: int, dur_us: int) -> dict[str, object]:
    return event("gloo:all_reduce", start_us, dur_us, cat="user_annotation", tid=GLOO)


def kernel(name: str, start_us: int, dur_us: int, stream: int = STREAM) -> dict[str, object]:
    args = {"device": 0, "stream": stream, "correlation": start_us}
    return event(name, start_us, dur_us, cat="kernel", pid=0, tid=stream, args=args)


def talk(folder: Path, *events: dict[str, object]) -> list[Talk]:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return talk_of(path)


def test_it_takes_what_no_operator_hides_as_exposed(tmp_path: Path) -> None:
    found = talk(
        tmp_path,
        *(step(1, 0, 100), step(2, 100, 100)),
        *(event("c10d::allreduce_", 10, 2), gloo(12, 30), event("aten::mm", 20, 15)),
        *(gloo(110, 20), gloo(120, 20), event("aten::add", 125, 50)),
    )
    assert found == [Talk(30_000, 15_000), Talk(30_000, 15_000)]


def test_it_takes_no_operator_that_waits_for_a_collective_as_work(tmp_path: Path) -> None:
    found = talk(
        tmp_path,
        step(1, 0, 100),
        *(event("aten::embedding", 10, 60), event("_c10d_functional::all_reduce", 15, 2)),
        *(gloo(20, 40), event("autograd::engine::evaluate_function: X", 5, 80)),
        event("RegisterPostBackwardFunctionBackward", 5, 80),
    )
    assert found == [Talk(40_000, 40_000)]


def test_it_cuts_a_collective_at_the_borders_of_its_steps(tmp_path: Path) -> None:
    found = talk(tmp_path, step(1, 0, 100), step(2, 100, 100), gloo(80, 50))
    assert found == [Talk(20_000, 20_000), Talk(30_000, 30_000)]


def test_it_looks_at_the_kernels_of_a_device(tmp_path: Path) -> None:
    found = talk(
        tmp_path,
        *(step(1, 0, 100), kernel("gemm", 10, 30)),
        kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20, 40, 20),
    )
    assert found == [Talk(40_000, 20_000)]


def test_it_says_nothing_where_no_collective_is_seen(tmp_path: Path) -> None:
    silent = talk(tmp_path, step(1, 0, 100), event("aten::mm", 20, 15))
    assert talk_metrics([[Talk(5, 5)], silent]) == ()
    assert not silent


def test_it_keeps_the_rank_with_most_of_each_step() -> None:
    first, second = [Talk(9, 2), Talk(4, 1)], [Talk(5, 3), Talk(6, 6)]
    total, exposed = talk_metrics([first, second])
    assert list(total.samples) == [9, 6]
    assert list(exposed.samples) == [3, 6]
    assert total.phase == exposed.phase == "profiled"
    assert "least of any: 4 ns" in total.method
