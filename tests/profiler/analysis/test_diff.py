"""Two traces compared: the changed operator comes first and no nanosecond is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.changes import OperatorChange
from profiler.analysis.diff import Diff, DiffSide, apportion, diff, usual
from profiler.analysis.stepprofile import (
    StepProfile,
    dump_profile,
    load_profile,
    profile_of_trace,
)
from profiler.analysis.waterfall import UNEVEN, waterfall
from profiler.errors import TraceError
from tests.profiler.analysis.layered import Layered
from tests.profiler.trace.shared import TRACES, needs_traces

SILU = [20.0, 20.5, 19.8, 20.2]


def compare(
    folder: Path, baseline: Layered, candidate: Layered, *, fold_layers: bool = True
) -> Diff:
    one, other = baseline.profile(folder, "baseline"), candidate.profile(folder, "candidate")
    return diff(one, other, fold_layers=fold_layers)


def measured(side: object, measure: str = "device") -> int:
    """Time of a side of a row, 0 without one."""
    found: int = getattr(side, f"{measure}_ns", 0)
    return found


def check_sums(found: Diff) -> None:
    """Everything that must add up, on both sides."""
    for name in ("baseline", "candidate"):
        side: DiffSide = getattr(found, name)
        rows = [getattr(row, name) for row in found.rows]
        linked = sum(measured(row, found.measure) for row in rows)
        assert linked == side.matched_ns + side.unmatched_ns
        assert side.total_ns == linked + side.opaque_ns + side.outside_ns + side.unlinked_ns
        parts = sum(part.total_ns for part in side.parts)
        assert side.step_ns == parts + sum(row.shown_ns for row in rows if row)
    steps = waterfall(found)
    assert steps.candidate_ns - steps.baseline_ns == found.change_ns
    assert sum(bar.change_ns for bar in steps.bars) == found.change_ns


def test_it_names_the_changed_operator_first(tmp_path: Path) -> None:
    slower = Layered(device_us={"aten::silu": [v * 1.5 for v in SILU]})
    found = compare(tmp_path, Layered(device_us={"aten::silu": SILU}), slower)
    first = found.rows[0]
    assert (first.operator, first.module, first.how) == ("aten::silu", "model.layers.*.mlp", "same")
    assert first.change_ns == pytest.approx(2 * 10_000, rel=0.05)
    assert first.significant
    assert not any(row.significant for row in found.rows[1:])
    assert waterfall(found).bars[0].name == "aten::silu"
    check_sums(found)


def test_it_is_not_misled_by_a_step_in_which_something_came_in_between(tmp_path: Path) -> None:
    steady = {"aten::silu": SILU, "aten::mul": [20.0] * 4}
    slower = {"aten::silu": [v * 1.5 for v in SILU], "aten::mul": [20.0, 320.0, 20.0, 20.0]}
    found = compare(tmp_path, Layered(device_us=steady), Layered(device_us=slower))
    assert found.rows[0].operator == "aten::silu"
    mul = next(row for row in found.rows if row.operator == "aten::mul")
    assert (mul.change_ns, mul.usual_change_ns) == (150_000, 0)
    bars = waterfall(found).bars
    assert next(bar.name for bar in bars if bar.kind == "operator") == "aten::silu"
    assert bars[-1].name == UNEVEN
    assert bars[-1].change_ns == pytest.approx(150_000, rel=0.02)
    check_sums(found)


def test_it_takes_the_mean_of_an_operator_that_not_every_step_calls() -> None:
    assert usual(30, []) == 30
    assert usual(30, [0, 0, 90]) == 0
    assert usual(31, [10, 30, 53]) == 30


def test_it_says_in_which_module_the_host_was_between_operators(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(device=False), Layered(device=False))
    parts = {part.name: part.total_ns for part in found.baseline.parts}
    # A layer leaves 3 µs around an operator that calls another, 5 µs around one alone, 1 µs last.
    assert parts["model.layers.*.mlp: between operators"] == 2 * (3 + 2 * 5 + 1) * 1000
    assert set(parts) == {"model.layers.*.mlp: between operators", "between operators"}
    check_sums(found)


def test_it_finds_no_change_in_equal_traces(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(), Layered())
    assert found.change_ns == 0
    assert all(row.change_ns == 0 and not row.significant for row in found.rows)
    assert found.baseline.matched_share == 1
    assert all(bar.change_ns == 0 for bar in waterfall(found).bars)


def test_it_shows_each_layer_when_asked(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(), Layered(), fold_layers=False)
    assert {row.module for row in found.rows} == {"model.layers.0.mlp", "model.layers.1.mlp"}


def test_it_groups_what_was_fused_by_its_module(tmp_path: Path) -> None:
    fused = Layered(operators=("aten::linear>aten::addmm", "my::silu_mul"))
    found = compare(tmp_path, Layered(), fused)
    (change,) = found.modules
    assert (change.kind, change.module) == ("fused", "model.layers.*.mlp")
    assert (set(change.vanished), change.appeared) == (
        {"aten::silu", "aten::mul"},
        ("my::silu_mul",),
    )
    assert (change.baseline_ns, change.candidate_ns) == (80_000, 40_000)
    bars = {bar.name: bar.change_ns for bar in waterfall(found).bars}
    assert bars["model.layers.*.mlp: aten::mul + aten::silu → my::silu_mul"] == -40_000
    check_sums(found)


@pytest.mark.parametrize(
    ("operators", "kind"),
    [
        (("aten::linear>aten::addmm", "my::silu", "aten::mul"), "renamed"),
        (("aten::linear>aten::addmm", "aten::mul"), "vanished"),
        (("aten::linear>aten::addmm", "aten::silu", "aten::mul", "my::check"), "appeared"),
        (("aten::linear>aten::addmm", "my::a", "my::b"), "replaced"),
        (("aten::linear>aten::addmm", "my::a", "my::b", "aten::mul"), "split"),
    ],
)
def test_it_says_what_became_of_operators(
    tmp_path: Path, operators: tuple[str, ...], kind: str
) -> None:
    found = compare(tmp_path, Layered(), Layered(operators=operators))
    assert [change.kind for change in found.modules] == [kind]
    check_sums(found)


def test_it_matches_another_implementation_by_the_operator_around(tmp_path: Path) -> None:
    flash = Layered(operators=("aten::attention>aten::_flash",))
    found = compare(tmp_path, Layered(operators=("aten::attention>aten::_math",)), flash)
    inner = next(row for row in found.rows if measured(row.baseline))
    assert (inner.how, inner.operator) == ("other implementation", "aten::attention")
    assert inner.baseline is not None
    assert inner.baseline.names == ("aten::_math",)
    assert found.baseline.matched_share == 1


def test_it_matches_an_operator_that_moved(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(), Layered(modules=False))
    assert {row.how for row in found.rows} == {"moved"}
    check_sums(found)


def test_it_lists_opaque_and_unlinked_time_as_such(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(unlinked=True), Layered(graph=True))
    assert (found.baseline.unlinked_ns, found.baseline.opaque_ns) == (7_000, 0)
    assert (found.candidate.unlinked_ns, found.candidate.opaque_ns) == (0, 50_000)
    bars = {bar.name: bar.change_ns for bar in waterfall(found).bars}
    assert bars["inside graph launches"] == 50_000
    assert bars["launch not recorded"] == -7_000
    check_sums(found)


def test_it_compares_host_time_without_a_device(tmp_path: Path) -> None:
    slower = Layered(device=False, host_us={"aten::mul": 60.0})
    found = compare(tmp_path, Layered(device=False), slower)
    assert (found.measure, found.rows[0].operator, found.rows[0].change_ns) == (
        "host", "aten::mul", 60_000,
    )  # fmt: skip
    assert waterfall(found).bars[0].change_ns in (60_000, -60_000)
    check_sums(found)


def test_it_compares_host_time_when_one_side_has_no_device(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(), Layered(device=False))
    assert found.measure == "host"
    assert "only one side has device work, so host times are compared" in found.notes
    check_sums(found)


def test_it_compares_across_vendors_by_canonical_names(tmp_path: Path) -> None:
    other = Layered(operators=("npu::npu_linear", "aten::silu"), launch="hipLaunchKernel")
    found = compare(tmp_path, Layered(operators=("aten::linear", "aten::silu")), other)
    assert found.candidate.matched_share == 1
    linear = next(row for row in found.rows if row.operator == "aten::linear")
    assert linear.candidate is not None
    assert linear.candidate.names == ("npu::npu_linear",)


def test_it_shows_kernels_as_detail_per_step(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(), Layered())
    silu = next(row for row in found.rows if row.operator == "aten::silu")
    assert silu.baseline is not None
    (kernel,) = silu.baseline.kernels
    assert (kernel.name, kernel.count, kernel.device_ns) == ("kernel of aten::silu", 2, 40_000)


def test_it_tests_nothing_with_too_few_steps(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(steps=2), Layered(steps=4))
    assert (found.tested, found.baseline.steps) == (0, 2)
    assert "nothing is tested: that takes 3 steps on both sides" in found.notes


def test_it_counts_a_trace_without_steps_as_one(tmp_path: Path) -> None:
    found = compare(tmp_path, Layered(marked=False, steps=1), Layered(marked=False, steps=1))
    assert (found.baseline.steps, found.change_ns) == (1, 0)
    assert "the baseline has no steps: the whole trace counts as one" in found.notes


def test_it_leaves_small_operators_untested(tmp_path: Path) -> None:
    tiny = {"aten::silu": [0.05, 0.051, 0.049, 0.05]}
    found = compare(tmp_path, Layered(device_us=tiny), Layered(device_us=tiny))
    tested = {row.operator for row in found.rows if row.p_value is not None}
    assert tested == {"aten::addmm", "aten::mul"}


@given(st.lists(st.integers(-(10**12), 10**12), max_size=30), st.integers(1, 50))
def test_it_shares_out_whole_nanoseconds(totals: list[int], steps: int) -> None:
    shares = apportion(totals, steps)
    assert abs(sum(shares) - sum(totals) / steps) <= 0.5
    assert all(abs(share - total / steps) <= 1 for share, total in zip(shares, totals, strict=True))


def test_it_keeps_profiles(tmp_path: Path) -> None:
    profile = Layered(graph=True).profile(tmp_path)
    assert load_profile(dump_profile(profile)) == profile
    with pytest.raises(TraceError, match="damaged"):
        load_profile(b"{}")


def shared(name: str) -> StepProfile:
    return profile_of_trace(TRACES / f"{name}.json.gz")


def recorded(folder: Path, size: int) -> StepProfile:
    """A program of torch that multiplies matrices of this size, recorded by torch."""
    left, other = torch.ones(size, size), torch.ones(64)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recording:
        for step in range(4):
            with torch.profiler.record_function(f"ProfilerStep#{step}"):
                torch.mm(left, left)
                other.exp().sum()
    path = folder / f"{size}.json"
    recording.export_chrome_trace(str(path))
    return profile_of_trace(path)


def test_it_names_what_a_real_program_changed(tmp_path: Path) -> None:
    found = diff(recorded(tmp_path, 32), recorded(tmp_path, 768))
    assert (found.measure, found.rows[0].operator) == ("host", "aten::mm")
    assert waterfall(found).bars[0].name == "aten::mm"
    assert {row.how for row in found.rows} <= {"same", "unpaired", "vanished", "appeared"}
    check_sums(found)


@needs_traces
@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [("diff-control-a100", "diff-test-v100"), ("qwen-h100", "qwen-mi300x")],
)
def test_it_matches_real_traces_by_canonical_operator(baseline: str, candidate: str) -> None:
    found = diff(shared(baseline), shared(candidate))
    check_sums(found)
    for side in (found.baseline, found.candidate):
        assert side.matched_share is not None
        assert side.matched_share >= 0.9
        assert side.total_ns > 0


@needs_traces
def test_it_lists_the_graphs_and_unlinked_work_of_a_real_trace() -> None:
    found = diff(shared("diff-control-a100"), shared("diff-test-v100"))
    assert found.baseline.opaque_ns == found.baseline.unlinked_ns == 0
    assert found.candidate.opaque_ns > 40_000_000
    assert found.candidate.unlinked_ns > 5_000_000


def rows_of(found: Diff, how: str) -> list[OperatorChange]:
    return [row for row in found.rows if row.how == how]


def test_it_tells_lost_calls_from_lost_operators(tmp_path: Path) -> None:
    twice = Layered(operators=("aten::silu", "aten::mul"), layers=1)
    once = Layered(operators=("aten::silu",), layers=1)
    found = compare(tmp_path, twice, once)
    assert [row.operator for row in rows_of(found, "vanished")] == ["aten::mul"]
    assert found.baseline.unmatched_ns == 20_000
