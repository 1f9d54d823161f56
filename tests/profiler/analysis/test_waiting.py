"""Idle causes, launches, collectives, critical path and ranks on schedules that are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.collectives import collective_kind, traffic_factor
from profiler.analysis.ingest import ingest
from profiler.analysis.report import Report
from tests.profiler.trace.build import TraceBuilder, busy


def report_of(made: TraceBuilder, tmp_path: Path) -> Report:
    return ingest([made.write(tmp_path / "t.json")], None)


def gap(launch_ts: float, *, between: str = "", start: float = 200.0) -> TraceBuilder:
    """Two kernels with a gap from 20 to `start`; the second launched at `launch_ts`."""
    made = TraceBuilder()
    made.launch(1, 1.0, 2.0)
    made.kernel("first", 10.0, 10.0, correlation=1)
    if between == "loader":
        made.op("enumerate(DataLoader)#_SingleProcess.__next__", 15.0, launch_ts - 16.0)
    elif between:
        made.event("cuda_runtime", between, 15.0, launch_ts - 16.0, args={"correlation": 7})
    made.launch(2, launch_ts, 2.0)
    made.kernel("second", start, 10.0, correlation=2)
    return made


@pytest.mark.parametrize(
    ("made", "cause"),
    [
        (gap(190.0), "host"),
        (gap(190.0, between="loader"), "input_wait"),
        (gap(190.0, between="cudaStreamSynchronize"), "sync"),
        (gap(5.0), "dependency"),
        (gap(5.0, start=30.0), "launch_latency"),
    ],
)
def test_it_names_the_cause_of_a_gap(made: TraceBuilder, cause: str, tmp_path: Path) -> None:
    (row,) = report_of(made, tmp_path).idle
    assert (row.cause, row.count) == (cause, 1)


def test_it_does_not_guess_the_cause_without_a_launch(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.kernel("a", 1.0, 1.0)
    made.kernel("b", 9.0, 1.0)
    (row,) = report_of(made, tmp_path).idle
    assert (row.cause, row.total_ns) == ("unknown", 7_000)


def test_it_takes_gaps_of_the_device_not_of_a_stream(tmp_path: Path) -> None:
    made = gap(190.0)
    made.kernel("cover", 15.0, 190.0, stream=8)
    assert report_of(made, tmp_path).idle == []


def test_it_measures_delays_from_the_end_of_the_call(tmp_path: Path) -> None:
    launches = report_of(gap(190.0), tmp_path).launches
    assert launches.delay_ns is not None
    assert (launches.delay_ns.p50, launches.delay_ns.p99) == (7_000, 8_000)
    assert (launches.calls, launches.calls_with_work, launches.linked) == (2, 2, 2)


def test_it_counts_the_queue_at_each_launch(tmp_path: Path) -> None:
    made = TraceBuilder()
    for n in range(4):
        made.launch(n, 1.0 + n, 0.5)
        made.kernel("k", 10.0 + 10 * n, 9.0, correlation=n)
    assert report_of(made, tmp_path).launches.queue_depth_max == 4


def test_it_leaves_graph_launches_out_of_the_delays(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.launch(1, 1.0, 2.0, name="cudaGraphLaunch")
    for n in range(3):
        made.kernel("k", 10.0 + 10 * n, 9.0, correlation=1)
    launches = report_of(made, tmp_path).launches
    assert (launches.graph_calls, launches.graph_events) == (1, 3)
    assert launches.graph_device_ns == 27_000
    assert launches.delay_ns is None


def test_it_tells_work_launched_before_the_recording(tmp_path: Path) -> None:
    made = gap(190.0)
    made.kernel("early", 2.0, 3.0, correlation=0)
    launches = report_of(made, tmp_path).launches
    assert (launches.before_window, launches.before_window_ns) == (1, 3_000)
    assert launches.unlinked == 1


def test_it_links_by_flow_and_by_external_id_where_ids_are_missing(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.op("aten::mm", 1.0, 20.0)
    made.event("cuda_runtime", "launch", 5.0, 2.0, args={})
    made.kernel("by_flow", 10.0, 5.0)
    made.kernel("by_id", 20.0, 5.0, **{"External id": 1})
    arrow = {"cat": "ac2g", "name": "ac2g", "id": 4}
    made.events.append({"ph": "s", "pid": 1, "tid": 1, "ts": 5.0} | arrow)
    made.events.append({"ph": "f", "pid": 0, "tid": 7, "ts": 10.0} | arrow)
    report = report_of(made, tmp_path)
    assert report.launches.by_rule == {"flow": 1, "external_id": 1}
    assert report.operators[0].device_self_ns == 10_000


def collective(made: TraceBuilder, ts: float, dur: float, **args: object) -> None:
    values = {
        "Collective name": "allreduce",
        "In msg nelems": 1000,
        "Out msg nelems": 1000,
        "dtype": "BFloat16",
        "Group size": 4,
    }
    made.kernel("ncclDevKernel_AllReduce", ts, dur, **(values | args))


def test_it_computes_bandwidths_of_a_collective(tmp_path: Path) -> None:
    made = TraceBuilder()
    collective(made, 10.0, 2.0)
    made.kernel("gemm", 11.0, 5.0, stream=9)
    (row,) = report_of(made, tmp_path).collectives
    assert (row.name, row.group_size, row.bytes) == ("all_reduce", 4, 2000)
    assert (row.total_ns, row.exposed_ns) == (2_000, 1_000)
    assert row.algbw == pytest.approx(1e9)
    assert row.busbw == pytest.approx(1.5e9)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllGather_RING_LL", "all_gather"),
        ("ncclKernel_SendRecv_RING_SIMPLE", "send_recv"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("multimem_all_reduce_", "all_reduce"),
        ("hcom_broadcast__1", "broadcast"),
        ("mystery", "mystery"),
    ],
)
def test_it_names_collectives_in_one_word(name: str, kind: str) -> None:
    assert collective_kind(name) == kind


@pytest.mark.parametrize(
    ("kind", "factor"), [("all_reduce", 1.75), ("all_gather", 0.875), ("broadcast", 1.0)]
)
def test_it_knows_the_traffic_of_a_collective(kind: str, factor: float) -> None:
    assert traffic_factor(kind, 8) == factor
    assert traffic_factor(kind, 1) == 1.0


def test_it_follows_the_critical_path_and_adds_up_to_the_step(tmp_path: Path) -> None:
    path = report_of(busy(3), tmp_path).critical_path
    assert path is not None
    assert path.step == "ProfilerStep#1"
    assert sum(part.total_ns for part in path.parts) == path.total_ns


def test_it_charges_a_device_bound_step_to_its_kernels(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.mark("ProfilerStep#0", 0.0, 1000.0)
    for n in range(9):
        made.launch(n + 1, 1.0 + n, 0.5)
        made.kernel("gemm", 10.0 + 100 * n, 100.0, correlation=n + 1)
    made.event("cuda_runtime", "cudaDeviceSynchronize", 20.0, 895.0, args={"correlation": 99})
    path = report_of(made, tmp_path).critical_path
    assert path is not None
    parts = {part.name: part.total_ns for part in path.parts}
    assert parts["gemm"] == 900_000
    assert parts["cudaDeviceSynchronize"] == 5_000
    assert sum(parts.values()) == path.total_ns == 1_000_000


def two_streams(*, told: bool, gap: float = 1.0) -> TraceBuilder:
    """A kernel of stream 9 that waits for one of stream 7, which the trace states or not."""
    made = TraceBuilder()
    made.mark("ProfilerStep#0", 0.0, 400.0)
    made.launch(1, 1.0, 2.0)
    made.kernel("producer", 10.0, 100.0, correlation=1)
    made.event("cuda_runtime", "cudaEventRecord", 4.0, 1.0, args={"correlation": 2})
    made.event("cuda_runtime", "cudaStreamWaitEvent", 6.0, 1.0, args={"correlation": 3})
    if told:
        said = {"correlation": 3, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2}
        args = {"device": 0, "stream": 9, **said}
        made.event("cuda_sync", "Stream Wait Event", 6.0, 0.0, pid=0, tid=9, args=args)
    made.launch(4, 8.0, 2.0)
    made.kernel("consumer", 110.0 + gap, 289.0, correlation=4, stream=9)
    return made


@pytest.mark.parametrize(
    ("told", "gap", "recorded", "inferred"),
    [(True, 1.0, 2, 0), (True, 20.0, 2, 0), (False, 1.0, 1, 1), (False, 20.0, 1, 0)],
)
def test_it_follows_waits_between_streams(
    tmp_path: Path, told: bool, gap: float, recorded: int, inferred: int
) -> None:
    path = report_of(two_streams(told=told, gap=gap), tmp_path).critical_path
    assert path is not None
    assert (path.recorded_edges, path.inferred_edges) == (recorded, inferred)
    assert ("producer" in {part.name for part in path.parts}) == bool(told or inferred)
    assert sum(part.total_ns for part in path.parts) == path.total_ns


def test_it_names_operators_as_other_vendors_do(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.op("npu::npu_linear", 0.0, 9.0)
    made.op("aten::add", 10.0, 9.0)
    names = {row.name: row.canonical for row in report_of(made, tmp_path).operators}
    assert names == {"npu::npu_linear": "aten::linear", "aten::add": "aten::add"}


def rank_file(folder: Path, rank: int, arrivals: list[float], clock: float) -> Path:
    """One rank: collectives that all end together, `arrivals` says when this rank came."""
    made = TraceBuilder()
    made.header["distributedInfo"] = {"rank": rank, "world_size": 3}
    for n, arrival in enumerate(arrivals):
        end = 1000.0 * (n + 1)
        collective(made, clock + arrival + 1000.0 * n, end - arrival - 1000.0 * n)
    return made.write(folder / f"rank{rank}.json")


def test_it_aligns_clocks_and_names_the_straggler(tmp_path: Path) -> None:
    paths = [
        rank_file(tmp_path, 0, [100.0, 200.0], 5000.0),
        rank_file(tmp_path, 1, [900.0, 950.0], 9000.0),
        rank_file(tmp_path, 2, [300.0, 100.0], 5000.0),
    ]
    report = ingest(list(reversed(paths)), tmp_path / "out")
    ranks = report.ranks
    assert ranks is not None and ranks.straggler == 1
    assert [row.rank for row in ranks.ranks] == [0, 1, 2]
    assert [row.clock_shift_ns for row in ranks.ranks] == [0, 4_000_000, 0]
    assert ranks.skew_ns is not None and ranks.skew_ns.p99 == 850_000
    assert ranks.ranks[1].waited_ns == 0
    assert "rank 1 arrived last" in ranks.explanation


def test_it_stores_every_rank_of_a_set(tmp_path: Path) -> None:
    paths = [rank_file(tmp_path, n, [10.0], 0.0) for n in range(2)]
    ingest(paths, tmp_path / "out")
    stored = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*"))
    assert "rank-1/events.parquet" in stored and "report.json" in stored


def test_it_numbers_ranks_by_name_or_place_where_nothing_records_them(tmp_path: Path) -> None:
    paths = [busy(1).write(tmp_path / f"worker{n}.json") for n in (3, 1)]
    ranks = ingest(paths, None).ranks
    assert ranks is not None
    assert [row.rank for row in ranks.ranks] == [1, 3]
    assert ranks.straggler is None
    assert ranks.explanation == "no collective was found on every rank"
