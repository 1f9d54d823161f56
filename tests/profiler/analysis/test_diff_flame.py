"""Both call trees in one: widths nest, what only one side has is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.diffflame import DiffFlame, diff_flame
from profiler.analysis.stepprofile import profile_of_trace
from tests.profiler.analysis.layered import Layered
from tests.profiler.trace.shared import TRACES, needs_traces

FUSED = Layered(operators=("aten::linear>aten::addmm", "my::silu_mul"), unlinked=True)


def merged(folder: Path, candidate: Layered = FUSED, *, most: int = 100) -> DiffFlame:
    one, other = Layered().profile(folder, "baseline"), candidate.profile(folder, "candidate")
    return diff_flame(one, other, most=most)


def check_nesting(found: DiffFlame) -> None:
    """Totals are own time plus the totals inside, parents come first."""
    inside = [[f.baseline_self_ns, f.candidate_self_ns] for f in found.frames]
    for at in range(len(found.frames) - 1, -1, -1):
        frame = found.frames[at]
        assert inside[at] == [frame.baseline_ns, frame.candidate_ns]
        assert frame.parent < at
        if frame.parent >= 0:
            inside[frame.parent][0] += frame.baseline_ns
            inside[frame.parent][1] += frame.candidate_ns


def test_it_merges_both_trees_by_path(tmp_path: Path) -> None:
    found = merged(tmp_path)
    check_nesting(found)
    names = [frame.name for frame in found.frames]
    assert names[0] == "model.layers.*.mlp"
    assert names.count("aten::addmm") == 1
    assert found.frames[0].baseline_ns == found.baseline_ns == 120_000
    assert found.frames[0].candidate_ns == found.candidate_ns == 80_000


def test_it_lists_what_vanished_and_what_appeared(tmp_path: Path) -> None:
    found = merged(tmp_path)
    assert {found.frames[at].name for at in found.vanished} == {"aten::silu", "aten::mul"}
    assert [found.frames[at].name for at in found.appeared] == ["my::silu_mul"]
    assert found.unmatched == pytest.approx((80 / 120, 40 / 80))
    assert found.without_frames == (0, 7_000)


def test_it_has_no_frames_for_runtime_calls(tmp_path: Path) -> None:
    found = merged(tmp_path, Layered(launch="hipLaunchKernel"))
    assert (found.vanished, found.appeared) == ((), ())
    assert not any("Launch" in frame.name for frame in found.frames)


def test_it_shows_host_time_too(tmp_path: Path) -> None:
    profile = Layered(device=False).profile(tmp_path)
    found = diff_flame(profile, profile, "host")
    check_nesting(found)
    assert found.baseline_ns == found.candidate_ns > 0


def test_it_merges_small_frames_into_those_around_them(tmp_path: Path) -> None:
    found = merged(tmp_path, most=2)
    check_nesting(found)
    assert (len(found.frames), found.merged) == (2, 4)
    assert found.frames[0].baseline_ns == 120_000


@needs_traces
def test_it_merges_real_traces_across_vendors() -> None:
    one, other = (profile_of_trace(TRACES / f"qwen-{name}.json.gz") for name in ("h100", "mi300x"))
    found = diff_flame(one, other)
    check_nesting(found)
    assert max(share or 0 for share in found.unmatched) < 0.1
