"""Every vendor's way of writing the same thing is read the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.ingest import ingest
from profiler.analysis.report import Report
from profiler.trace.kinds import Kind
from profiler.trace.vendors import rules
from tests.profiler.trace.build import TraceBuilder

VENDORS = {
    "cuda": ("cuda_runtime", "cudaLaunchKernel", "kernel", "gpu_memcpy", "NVIDIA H100"),
    "rocm": ("cuda_runtime", "hipLaunchKernel", "kernel", "gpu_memcpy", "AMD Instinct MI300X"),
    "xpu": ("xpu_runtime", "urEnqueueKernelLaunch", "kernel", "gpu_memcpy", "Intel GPU Max 1550"),
    "musa": ("musa_runtime", "musaLaunchKernel", "kernel", "gpu_memcpy", "MTT S4000"),
    "mlu": ("mlu_runtime", "cnInvokeKernel", "kernel", "mlu_memcpy", "MLU590"),
    "hpu": ("privateuse1_runtime", "synLaunch", "hpu_kernel", "hpu_memcpy", "Gaudi2"),
    "privateuse1": ("privateuse1_runtime", "myLaunch", "privateuse1_kernel", "gpu_memcpy", "X"),
}


def report_of(vendor: str, tmp_path: Path) -> Report:
    runtime, call, kernel, copy, name = VENDORS[vendor]
    made = TraceBuilder()
    made.header["deviceProperties"] = [{"id": 0, "name": name}]
    made.op("aten::mm", 10.0, 50.0)
    made.event(runtime, call, 20.0, 5.0, args={"correlation": 3})
    made.kernel("gemm", 40.0, 30.0, cat=kernel, correlation=3)
    made.kernel("copy HtoD", 80.0, 10.0, cat=copy)
    return ingest([made.write(tmp_path / "t.json")], None)


@pytest.mark.parametrize("vendor", VENDORS)
def test_it_reads_a_launch_of_every_vendor(vendor: str, tmp_path: Path) -> None:
    report = report_of(vendor, tmp_path)
    (row,) = report.timeline
    assert (row.compute_ns, row.copy_ns, row.busy_ns) == (30_000, 10_000, 40_000)
    assert report.launches.by_rule == {"correlation": 1}
    assert report.launches.unlinked == 1
    (op,) = report.operators
    assert op.device_self_ns == 30_000


@pytest.mark.parametrize("vendor", VENDORS)
def test_it_recognises_the_vendor(vendor: str, tmp_path: Path) -> None:
    assert report_of(vendor, tmp_path).trace.device_kind == vendor


def test_it_gives_queues_without_numbers_a_stream(tmp_path: Path) -> None:
    made = TraceBuilder()
    for queue, ts in (("0x55aa", 10.0), ("0x66bb", 12.0)):
        args = {"device": 0, "sycl queue": queue}
        made.event("kernel", "gemm", ts, 5.0, pid=0, tid=0, args=args)
    report = ingest([made.write(tmp_path / "t.json")], None)
    assert [row.stream for row in report.streams] == ["0x55aa", "0x66bb"]


def test_it_takes_the_track_where_nothing_names_device_and_stream(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.event("Kernel", "gemm", 10, 5, pid=3, tid="stream 7", args={})
    (row,) = ingest([made.write(tmp_path / "t.json")], None).streams
    assert (row.device, row.stream) == ("3", "7")


@pytest.mark.parametrize(
    "impostor",
    [
        {"cat": "cuda_sync", "name": "Stream Sync"},
        {"cat": "gpu_user_annotation", "name": "ProfilerStep#1"},
        {"cat": "cpu_op", "name": "triton_launcher"},
    ],
)
def test_it_does_not_take_looks_for_device_work(impostor: dict[str, str], tmp_path: Path) -> None:
    made = TraceBuilder()
    made.kernel("gemm", 10.0, 5.0)
    args = {"device": 0, "stream": 7}
    made.event(impostor["cat"], impostor["name"], 11.0, 500.0, pid=0, tid=7, args=args)
    report = ingest([made.write(tmp_path / "t.json")], None)
    assert report.timeline[0].busy_ns == 5_000
    assert [row.name for row in report.kernels] == ["gemm"]


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "multimem_all_reduce_kernel",
        "rcclGenericKernel",
        "hcom_allReduce__586_0_1",
        "cncl_allreduce",
    ],
)
def test_it_knows_communication_by_kernel_name(name: str, tmp_path: Path) -> None:
    made = TraceBuilder()
    made.kernel(name, 10.0, 5.0)
    (row,) = ingest([made.write(tmp_path / "t.json")], None).timeline
    assert row.comm_ns == row.busy_ns == 5_000


@pytest.mark.parametrize(
    "name", ["hipblasLt_gemm", "Cijk_Alik_Bljk_HHS_BH", "triton_poi_fused_add_0", "reduce_kernel"]
)
def test_it_does_not_take_arithmetic_for_communication(name: str, tmp_path: Path) -> None:
    made = TraceBuilder()
    made.kernel(name, 10.0, 5.0)
    assert ingest([made.write(tmp_path / "t.json")], None).timeline[0].comm_ns == 0


def test_it_knows_communication_by_operator_and_by_argument(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.op("symm_mem::one_shot", 1.0, 20.0)
    made.launch(5, 5.0, 2.0)
    made.kernel("plain_kernel", 10.0, 5.0, correlation=5)
    made.kernel("other_kernel", 20.0, 6.0, **{"Collective name": "allreduce"})
    (row,) = ingest([made.write(tmp_path / "t.json")], None).timeline
    assert row.comm_ns == 11_000


def test_its_rules_name_only_known_kinds() -> None:
    assert set(rules().kinds.values()) <= set(Kind)
    assert {vendor.name for vendor in rules().vendors} >= set(VENDORS) | {"npu", "mtia"}
