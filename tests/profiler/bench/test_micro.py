from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from profiler.bench import complete, micro
from profiler.bench.devices import Device
from profiler.bench.output import Reporter
from profiler.errors import SpecError
from profiler.spec import check
from profiler.types import MicroReport, MicroRow, Result
from tests.profiler.bench.scene import cpu, small_spec

QUIET = Reporter(None)


class WorkClock(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A clock that only operators move: a product by its multiplications, a flush by its size."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now_ns = 0
        self.flushed_bytes: list[int] = []

    def __call__(self) -> int:
        return self.now_ns

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: tuple[type, ...],
        args: tuple[torch.Tensor, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if func is torch.ops.aten.mm.default:
            self.now_ns += args[0].shape[0] * args[0].shape[1] * args[1].shape[1]
        if func is torch.ops.aten.zero_.default:
            self.now_ns += 1_000
            self.flushed_bytes.append(args[0].numel() * args[0].element_size())
        return func(*args, **(kwargs or {}))


def recorded(path: Path, work: Callable[[], object]) -> Path:
    """The trace of `work` as the runner records it."""
    profile = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    )
    with profile, torch.inference_mode():
        work()
    profile.export_chrome_trace(str(path))
    return path


def products() -> None:
    for size in (64, 128):
        torch.mm(torch.ones(size, size), torch.ones(size, size).t())


def thrice() -> None:
    for _ in range(3):
        products()


def by_shapes(report: MicroReport, name: str) -> dict[str, MicroRow]:
    return {row.shapes: row for row in report.rows if row.name == name}


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro, "BUDGET_NS", 3_000_000)
    monkeypatch.setattr(micro, "flush_bytes", lambda device: 1 << 20)


def measured(trace: Path, device: Device) -> MicroReport:
    return micro.measure(small_spec(micro=50), trace, device, QUIET)


def test_it_times_products_by_their_size_and_no_flush(tmp_path: Path, brief: None) -> None:
    trace = recorded(tmp_path / "trace.json.gz", products)
    clock = WorkClock()
    with clock:
        rows = by_shapes(measured(trace, cpu(clock)), "aten::mm")
    small, large = rows["[[64, 64], [64, 64]]"], rows["[[128, 128], [128, 128]]"]
    assert small.cold is not None
    assert large.cold is not None
    assert small.cold.median_ns == 64**3
    assert large.cold.median_ns == 8 * small.cold.median_ns
    assert set(large.cold.samples) == {128**3}
    assert large.warm == large.cold


def test_it_flushes_before_each_cold_call_only(tmp_path: Path, brief: None) -> None:
    trace = recorded(tmp_path / "trace.json.gz", lambda: torch.mm(torch.ones(4, 4), torch.eye(4)))
    clock = WorkClock()
    with clock:
        report = measured(trace, cpu(clock))
    flushes = [size for size in clock.flushed_bytes if size == 1 << 20]
    timed = [row.cold.n for row in report.rows if row.cold]
    assert len(flushes) == sum(timed) > 0


def test_it_ranks_by_self_time_and_counts_calls(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "trace.json.gz", thrice)
    rows = micro.hottest(trace, 50)
    assert [row.host_self_ns for row in rows] == sorted(
        (r.host_self_ns for r in rows), reverse=True
    )
    assert {row.count for row in rows if row.name == "aten::mm"} == {3}
    assert micro.hottest(trace, 1) == rows[:1]


def test_it_times_what_the_real_clock_says(tmp_path: Path, brief: None) -> None:
    trace = recorded(tmp_path / "trace.json.gz", products)
    for row in by_shapes(measured(trace, cpu()), "aten::mm").values():
        assert row.overload == "aten::mm.default"
        for timing in (row.cold, row.warm):
            assert timing is not None
            assert timing.n == len(timing.samples) >= micro.FEWEST_SAMPLES
            assert 0 < timing.minimum_ns <= timing.median_ns


def test_it_lists_what_it_cannot_rebuild_with_the_reason(tmp_path: Path, brief: None) -> None:
    chosen = torch.tensor([0, 2])
    trace = recorded(tmp_path / "trace.json.gz", lambda: torch.ones(4)[chosen])
    (row,) = by_shapes(measured(trace, cpu()), "aten::index").values()
    assert (row.cold, row.warm) == (None, None)
    assert row.reason == "argument indices was not recorded"


def test_it_goes_on_when_an_operator_fails_alone(tmp_path: Path, brief: None) -> None:
    work = lambda: torch.arange(5, out=torch.empty(0, dtype=torch.long))  # noqa: E731
    rows = measured(recorded(tmp_path / "trace.json.gz", work), cpu()).rows
    failed = [row.reason for row in rows if row.name == "aten::arange"]
    assert failed
    assert all("it failed with rebuilt inputs" in reason for reason in failed if reason)


def test_it_refuses_what_does_not_fit(
    tmp_path: Path, brief: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro, "available_bytes", lambda device: 10_000)
    trace = recorded(tmp_path / "trace.json.gz", products)
    reasons = {row.reason for row in by_shapes(measured(trace, cpu()), "aten::mm").values()}
    assert reasons == {
        "it needs 64.0 KiB, 9.77 KiB are free",
        "it needs 256 KiB, 9.77 KiB are free",
    }


def test_it_flushes_more_than_the_last_level_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for level, size in (("index0", "32K"), ("index3", "48M")):
        (tmp_path / level).mkdir()
        (tmp_path / level / "size").write_text(size + "\n")
    monkeypatch.setattr(micro, "CACHES", tmp_path)
    assert micro.flush_bytes(cpu()) == 96 << 20
    monkeypatch.setattr(micro, "CACHES", tmp_path / "nothing")
    assert micro.flush_bytes(cpu()) == micro.DEFAULT_FLUSH_BYTES


def test_it_is_part_of_a_run_and_no_metric(tmp_path: Path, brief: None) -> None:
    spec = small_spec("decode", micro=4)
    result = complete.run(spec, tmp_path, reporter=QUIET)
    stored = msgspec.json.decode((tmp_path / "result.json").read_bytes(), type=Result)
    plain = complete.run(replace(spec, micro=0), tmp_path / "plain", reporter=QUIET)
    assert stored.micro is not None
    assert stored.micro == result.micro
    assert len(stored.micro.rows) == 4
    assert "cold: 1.00 MiB written before each call" in stored.micro.method
    assert {m.name for m in stored.metrics} == {m.name for m in plain.metrics}
    assert sorted(file.name for file in tmp_path.iterdir() if file.is_file()) == [
        "env.json",
        "result.json",
        "trace.json.gz",
    ]


@pytest.mark.parametrize(
    "fields", [{"profiled_steps": 0}, {"profile": ["flops"]}, {"micro": 51}, {"ranks": 2}]
)
def test_it_needs_recorded_shapes_of_one_rank(fields: dict[str, object]) -> None:
    asked = {"micro": 1, "parallel": "data" if "ranks" in fields else "none"} | fields
    with pytest.raises(SpecError, match=r"spec\.micro is"):
        check(small_spec("training", **asked))
