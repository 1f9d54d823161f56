"""The report of every shared trace against values computed by an independent script.

Times of the golden files are µs with three decimals, so equality is to the
nanosecond. Where our definition differs on purpose, `INTENDED` says why and
the test checks that the difference is there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from profiler.analysis.ingest import ingest
from profiler.analysis.report import DeviceTimeline, Report
from tests.profiler.trace.shared import TRACES, golden, golden_names, needs_traces

pytestmark = needs_traces

TIMELINE = {
    "span_ns": "total",
    "busy_ns": "busy",
    "idle_ns": "idle",
    "compute_ns": "computation",
    "comm_ns": "communication",
    "copy_ns": "memcpy_memset",
    "exposed_comm_ns": "exposed_comm",
    "exposed_copy_ns": "exposed_memcpy",
}
ASCEND = "timeline from the vendor's own overlap rows: there waits are no work"
INTENDED: dict[str, tuple[str, set[str]]] = {
    "ascend-level1-r0": (ASCEND, set(TIMELINE)),
    "ascend-level1-r1": (ASCEND, set(TIMELINE)),
    "b200-eager": (
        "multimem_all_reduce and other custom collectives count as communication",
        {"compute_ns", "comm_ns", "exposed_comm_ns"},
    ),
    "mtia-inference": (
        "event_wait is waiting, not work",
        {"span_ns", "busy_ns", "idle_ns", "compute_ns"},
    ),
}
LINKED_OTHERWISE = {
    "ascend-level1-r0": "linked by connection_id, which the golden script does not read",
    "ascend-level1-r1": "linked by connection_id, which the golden script does not read",
    "mtia-inference": "linked by flow arrows or the runtime call's own correlation",
}


def ns(us: float) -> int:
    return round(us * 1000)


@cache
def report_of(name: str) -> Report:
    return ingest([TRACES / f"{name}.json.gz"], None)


@cache
def values_of(name: str) -> Any:  # noqa: ANN401  a golden file, JSON of many shapes
    return golden(name)


@pytest.fixture(params=golden_names() if TRACES.is_dir() else [])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_counts_the_same_events(name: str) -> None:
    report, values = report_of(name), values_of(name)
    assert report.trace.events == values["n_events"]
    assert report.trace.events_by_category == values["complete_by_cat_raw"]
    assert report.span_ns == ns(values["wall_span_us"]["all_complete"])


def test_it_measures_the_same_streams(name: str) -> None:
    rows = {(s.device, s.stream, s.events, s.total_ns, s.union_ns) for s in report_of(name).streams}
    assert rows == {
        (s["device"], s["stream"], s["n"], ns(s["sum_us"]), ns(s["union_us"]))
        for s in values_of(name)["device_stream_all_cats"]
    }


def test_it_splits_the_device_time_the_same_way(name: str) -> None:
    report, values = report_of(name), values_of(name).get("gpu_timeline_us")
    if not report.timeline:
        assert not values
        return
    (row,) = report.timeline
    differing = {
        ours for ours, theirs in TIMELINE.items() if value(row, ours) != ns(values[theirs])
    }
    reason, allowed = INTENDED.get(name, ("", set()))
    assert differing <= allowed, reason
    assert bool(differing) == bool(allowed)


def value(row: DeviceTimeline, field: str) -> int:
    return int(getattr(row, field))


def test_it_adds_up_idle_causes_to_the_idle_time(name: str) -> None:
    report = report_of(name)
    for row in report.timeline:
        assert sum(i.total_ns for i in report.idle if i.device == row.device) == row.idle_ns


def test_it_finds_the_same_kernels(name: str) -> None:
    found: dict[str, tuple[int, int]] = {}
    for row in report_of(name).kernels:
        count, total = found.get(row.name, (0, 0))
        found[row.name] = (count + row.count, total + row.total_ns)
    for row in values_of(name)["top_kernels"]:
        assert found[row["name"]] == (row["count"], ns(row["total_us"]))


def test_it_finds_the_same_operators(name: str) -> None:
    found = {row.name: row for row in report_of(name).operators}
    for row in values_of(name)["top_cpu_ops_self"]:
        ours = found[row["name"]]
        assert (ours.count, ours.host_total_ns) == (row["count"], ns(row["total_us"]))
        assert ours.host_self_ns == ns(row["self_us"])
    total = sum(row.host_self_ns for row in found.values())
    assert total == ns(values_of(name)["cpu_op_self_total_us"])


def test_it_adds_up_self_times_to_the_union_of_each_thread(name: str) -> None:
    report = report_of(name)
    assert len(report.threads) == values_of(name)["n_cpu_op_threads"]
    assert all(row.union_ns == row.operators_self_ns for row in report.threads)


def test_it_links_the_same_launches(name: str) -> None:
    launches, values = report_of(name).launches, values_of(name)["correlation"]
    same = (launches.linked, launches.unlinked) == (
        values["device_events_linked"],
        values["device_events_orphan"],
    )
    assert same or name in LINKED_OTHERWISE
    assert launches.calls_with_work == values["launches_linked"] or name in LINKED_OTHERWISE


def test_it_pairs_the_same_flows(name: str) -> None:
    quality, values = report_of(name).quality, values_of(name)["flow_pairs"]
    assert quality.flows_paired == values.get("both", 0)
    assert quality.flows_unpaired == values.get("f_only", 0) + values.get("s_only", 0)


def test_it_keeps_all_device_time(name: str) -> None:
    report = report_of(name)
    everything = sum(row.total_ns for row in report.streams)
    quality = report.quality
    assert quality.attributed_device_ns + quality.unattributed_device_ns == everything
    assert sum(row.total_ns for row in report.kernels) == everything


def test_it_sees_the_same_steps(name: str) -> None:
    expected = values_of(name)["profiler_steps"]
    if expected:
        assert [row.name for row in report_of(name).steps] == expected


@pytest.mark.parametrize("rank", [0, 1])
def test_it_agrees_with_the_vendors_step_times(rank: int) -> None:
    name = f"ascend-level1-r{rank}"
    vendor: Any = golden(name, "vendor")
    (step,) = vendor["step_trace_time"]
    (row,) = report_of(name).timeline
    assert row.compute_ns == ns(float(step["Computing"]))
    assert row.comm_ns == ns(float(step["Communication"]))
    assert row.exposed_comm_ns == ns(float(step["Communication(Not Overlapped)"]))
    assert row.idle_ns == ns(float(step["Free"]))


def test_it_names_the_straggler_of_eight_ranks() -> None:
    report = ingest([TRACES / f"dlrm-v100-8rank-r{n}.json.gz" for n in range(8)], None)
    assert report.ranks is not None
    assert report.ranks.straggler == 7
    assert [row.rank for row in report.ranks.ranks] == list(range(8))


def test_it_counts_a_multimem_all_reduce_as_communication() -> None:
    classes = {row.name: row.device_class for row in report_of("b200-eager").kernels}
    (found,) = {kind for name, kind in classes.items() if "multimem_all_reduce" in name}
    assert found == "communication"


def test_it_shows_work_launched_before_the_recording() -> None:
    report = report_of("qwen-h100")
    share = report.launches.before_window_ns / sum(row.total_ns for row in report.streams)
    assert report.launches.before_window == 509
    assert share == pytest.approx(0.30, abs=0.005)
    assert any("before the recording began" in text for text in report.quality.warnings)


def test_it_says_how_much_of_a_graph_replay_is_opaque() -> None:
    report = report_of("sglang-decode-mi300x")
    assert report.launches.graph_events == 544
    assert any("graph launches" in text for text in report.quality.warnings)


def test_it_says_that_kernels_are_missing() -> None:
    report = report_of("zoology-a100-nokernels")
    assert report.timeline == []
    assert any(text.startswith("kernels missing") for text in report.quality.warnings)
