"""Bottlenecks to plant in a program, each with what the program would do without it."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.findings import Context, PastOperator
from profiler.analysis.report import RankRow, RankSet
from tests.profiler.analysis.findings.program import Case, Hook, Program, Size
from tests.profiler.trace.build import Json


def slow_mm(factor: float) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        p.mm(p.size.tokens, p.size.hidden, 2 * p.size.hidden, 1.0 if fixed else factor)

    return hook


def slow_attention(factor: float) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        p.attention(1.0 if fixed else factor)

    return hook


def custom(ns: int, slower: float) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        t, h = p.size.tokens, p.size.hidden
        p.op("custom::mix", [[t, h]], ["c10::BFloat16"], ns if fixed else int(ns * slower))

    return hook


def past_of(size: Size, ns: int) -> Context:
    shapes = f"[[{size.tokens}, {size.hidden}]]"
    key = ("custom::mix", shapes, '["c10::BFloat16"]')
    return Context(past={key: PastOperator(median_ns=ns, noise_ns=ns // 100, run="best")})


def thinking(ns: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        p.sim.think(0 if fixed else ns)

    return hook


def tiny_kernels(count: int) -> Hook:
    """A decode step of tiny kernels, one launch each against one capture."""

    def hook(p: Program, _: int, fixed: bool) -> None:
        for number in range(count):
            shape = {"Input Dims": [[1, 1024]], "Input type": ["c10::BFloat16"]}
            own, cost = (0, 1_500) if fixed else (3_000, 4_000)
            with p.sim.frame(f"custom::tiny{number % 5}", own_ns=own, args=shape):
                p.sim.launch("tiny", 1_200, cost_ns=cost)

    return hook


def item(every: int = 1) -> Hook:
    def hook(p: Program, layer: int, fixed: bool) -> None:
        if layer % every:
            return
        with p.sim.frame("aten::item", own_ns=800), p.sim.frame("aten::_local_scalar_dense"):
            if fixed:
                p.sim.launch("Memcpy DtoH (Device -> Pinned)", 1_500, cat="gpu_memcpy")
            else:
                p.sim.blocking_copy("Memcpy DtoH (Device -> Pinned)", 1_500)
        p.sim.think(60_000)

    return hook


def stream_sync(p: Program, _: int, fixed: bool) -> None:
    if not fixed:
        with p.sim.frame("check_finite", "user_annotation"):
            p.sim.sync("cudaStreamSynchronize", stream=7)
    p.sim.think(50_000)


def loader(ns: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        with p.sim.frame(name, own_ns=0 if fixed else ns):
            pass

    return hook


def all_reduce(ns: int) -> Hook:
    def hook(p: Program, layer: int, fixed: bool) -> None:
        sim = p.sim
        sim.record(f"a{p.step_number}.{layer}", stream=7)
        sim.wait(f"a{p.step_number}.{layer}", stream=20)
        with sim.frame("c10d::allreduce_", own_ns=2_000):
            sim.launch("ncclDevKernel_AllReduce_Sum_bf16", 0 if fixed else ns, stream=20)
        sim.record(f"b{p.step_number}.{layer}", stream=20)
        sim.wait(f"b{p.step_number}.{layer}", stream=7)

    return hook


def pageable_copy(ns: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        name = "Memcpy HtoD (Pageable -> Device)"
        with p.sim.frame("aten::copy_", own_ns=2_000):
            if fixed:
                p.sim.launch(name, 0, cat="gpu_memcpy", call="cudaMemcpyAsync")
            else:
                p.sim.blocking_copy(name, ns, size_bytes=ns * 12)

    return hook


def chain(names: Sequence[str]) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        shape = [p.size.tokens, 4 * p.size.hidden]
        if not fixed:
            for name in names:
                p.elementwise(name, shape)
            return
        types = ["c10::BFloat16"]
        p.op("custom::fused", [shape], types, p.ns(0, 2 * shape[0] * shape[1] * 2))

    return hook


def cast_both_ways(p: Program, _: int, fixed: bool) -> None:
    if fixed:
        return
    shape = [p.size.tokens, 4 * p.size.hidden]
    ns = p.ns(0, 6 * shape[0] * shape[1])
    for target, source in (("float", "c10::BFloat16"), ("c10::BFloat16", "float")):
        with p.sim.frame("aten::to", own_ns=1_000), p.sim.frame("aten::_to_copy", own_ns=1_000):
            p.op("aten::copy_", [shape, shape], [target, source], ns)


def contiguous(p: Program, _: int, fixed: bool) -> None:
    if fixed:
        return
    shape = [p.size.tokens, 8 * p.size.hidden]
    args = {"Input Dims": [shape], "Input type": ["c10::BFloat16"]}
    with (
        p.sim.frame("aten::contiguous", args=args),
        p.sim.frame("aten::clone", own_ns=1_000, args=args),
    ):
        types = ["c10::BFloat16"] * 2
        p.op("aten::copy_", [shape, shape], types, p.ns(0, 4 * shape[0] * shape[1]))


def growing_cat(p: Program, _: int, fixed: bool) -> None:
    length, wide = 1024 + p.step_number, 16 * p.size.hidden
    shapes = [[[1, length, wide], [1, 1, wide]], []]
    moved = 4 * wide * (1 if fixed else length + 1)
    p.op("aten::cat", shapes, ["TensorList", "Scalar"], p.ns(0, moved))


def wide_mm(p: Program, _: int, fixed: bool) -> None:
    p.mm(p.size.tokens, p.size.hidden, p.size.hidden, fp32=not fixed)


def optimizer(parameters: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        with p.sim.frame("Optimizer.step#AdamW.step", "user_annotation"):
            if fixed:
                with p.sim.frame("aten::_fused_adamw_", own_ns=2_000):
                    p.sim.launch("fused_adamw", parameters * 8 * 2_500)
                return
            for _number in range(parameters):
                for name in ("custom::decay", "custom::lerp", "custom::square", "custom::root") * 2:
                    with p.sim.frame(name, own_ns=8_000):
                        p.sim.launch("state_kernel", 2_500)

    return hook


def fallback(host_ns: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        size_bytes = 2 * p.size.tokens * p.size.hidden
        if fixed:
            with p.sim.frame("custom::rope", own_ns=2_000):
                p.sim.launch("rope", int(2 * size_bytes / p.size.device.bandwidth * 1e9))
            return
        with p.sim.frame("custom::rope", own_ns=1_000):
            down, up = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"
            p.sim.blocking_copy(down, 80_000, size_bytes=size_bytes)
            p.sim.think(host_ns)
            p.sim.blocking_copy(up, 80_000, size_bytes=size_bytes)

    return hook


def compiling(ns: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        if not fixed:
            name = "_compile.compile_inner (dynamo_timed)"
            with p.sim.frame(name, "user_annotation", own_ns=ns):
                pass

    return hook


def broken_graph(python_ns: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        for part in range(4):
            with p.sim.frame(f"Torch-Compiled Region: {part}/0", own_ns=3_000):
                for _layer in range(2):
                    p.mm(p.size.tokens, p.size.hidden, p.size.hidden)
            p.sim.think(0 if fixed or part == 3 else python_ns)

    return hook


def mallocs(ns: int) -> Hook:
    def hook(p: Program, _: int, fixed: bool) -> None:
        if not fixed:
            with p.sim.frame("aten::empty", own_ns=1_000):
                begin = p.sim.now
                p.sim.think(ns)
                p.sim.emit("cuda_runtime", "cudaMalloc", begin, p.sim.now - begin, tid=p.sim.tid)

    return hook


def graph_replay(p: Program, _: int, fixed: bool) -> None:
    del fixed
    p.sim.graph([("gemm", 40_000), ("norm", 6_000)] * 8)


def python_loop(rows: int) -> Hook:
    """A CPU run whose norm loops over rows instead of working on all of them at once."""

    def hook(p: Program, _: int, fixed: bool) -> None:
        for layer in range(p.size.layers):
            with p.sim.module(f"layers.{layer}.norm"):
                for _row in range(1 if fixed else rows):
                    for name in ("aten::pow", "aten::mean", "aten::rsqrt", "aten::mul"):
                        here = rows if fixed else 1
                        args: Json = {"Input Dims": [[here, 300]], "Input type": ["float"]}
                        with p.sim.frame(name, own_ns=3_000 + 300 * here, args=args):
                            pass
                        p.sim.think(1_000)
            with p.sim.module(f"layers.{layer}.mlp"):
                for _mm in range(3):
                    wide: Json = {"Input Dims": [[64, 1024], [1024, 1024]]}
                    with p.sim.frame("aten::mm", own_ns=400_000, args=wide):
                        pass
                    p.sim.think(1_000)

    return hook


def rank_row(rank: int, compute_ns: int, waited_ns: int) -> RankRow:
    return RankRow(
        rank=rank,
        path="",
        span_ns=0,
        busy_ns=0,
        comm_ns=0,
        exposed_comm_ns=0,
        compute_ns=compute_ns,
        clock_shift_ns=0,
        late_ns=0,
        waited_ns=waited_ns,
    )


def imbalanced(size: Size, wait_ns: int) -> Case:
    """Rank 0 of four waits `wait_ns` per collective for rank 3."""
    waits = wait_ns * size.layers * size.steps
    rows = [rank_row(n, 50_000_000, waits) for n in range(3)]
    rows.append(rank_row(3, 50_000_000 + waits * 4 // 3, 0))
    ranks = RankSet(
        ranks=rows, straggler=3, matched_collectives=9, skew_ns=None, explanation="planted"
    )
    reduce = all_reduce(wait_ns + 20_000)

    def hook(p: Program, layer: int, fixed: bool) -> None:
        if not fixed:
            reduce(p, layer, False)
        else:
            all_reduce(20_000)(p, layer, False)

    return Case("imbalance", f"{wait_ns // 1000} us", size, hook, context=Context(ranks=ranks))
