"""Builds traces event by event, so that a test can state what must come out."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path

Json = dict[str, object]


@dataclass
class TraceBuilder:
    """Collects events; times are µs as Kineto writes them."""

    events: list[Json] = field(default_factory=list)
    header: Json = field(default_factory=lambda: {"schemaVersion": 1, "deviceProperties": []})
    next_id: int = 1

    def event(self, cat: str | None, name: str, ts: object, dur: object, **more: object) -> Json:
        """One complete event; `pid`, `tid` and `args` by keyword."""
        made: Json = {"ph": "X"}
        if cat is not None:
            made["cat"] = cat
        made |= {"name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur} | more
        self.events.append(made)
        return made

    def op(self, name: str, ts: float, dur: float, *, tid: int = 1, **args: object) -> Json:
        """A host operator with the next external id."""
        args = {"External id": self.next_id} | args
        self.next_id += 1
        return self.event("cpu_op", name, ts, dur, tid=tid, args=args)

    def mark(self, name: str, ts: float, dur: float, *, tid: int = 1) -> Json:
        """A user annotation."""
        self.next_id += 1
        return self.event(
            "user_annotation", name, ts, dur, tid=tid, args={"External id": self.next_id - 1}
        )

    def launch(self, correlation: int, ts: float, dur: float, **more: object) -> Json:
        """A launching runtime call."""
        name = str(more.pop("name", "cudaLaunchKernel"))
        args = {"correlation": correlation}
        return self.event("cuda_runtime", name, ts, dur, args=args, **more)

    def kernel(self, name: str, ts: float, dur: float, **args: object) -> Json:
        """A kernel on device 0, stream 7 unless said otherwise."""
        cat = str(args.pop("cat", "kernel"))
        args = {"device": 0, "stream": 7} | args
        return self.event(cat, name, ts, dur, pid=args["device"], tid=args["stream"], args=args)

    def data(self) -> Json:
        """The document."""
        return {**self.header, "traceEvents": self.events}

    def write(self, path: Path) -> Path:
        """Write as JSON, compressed when the name ends in .gz."""
        text = json.dumps(self.data()).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        return path


def small() -> TraceBuilder:
    """Two steps: a module with a linear operator that launches one kernel each, and a copy."""
    made = TraceBuilder()
    for step in range(2):
        at = 1000.0 + step * 100
        made.mark(f"ProfilerStep#{step}", at, 90)
        made.mark("module: net", at + 1, 60)
        made.mark("module: net.fc", at + 2, 40)
        made.op("aten::linear", at + 3, 30)
        made.op("aten::addmm", at + 5, 20)
        made.launch(10 + 2 * step, at + 10, 5)
        made.kernel("gemm", at + 20, 25.5, correlation=10 + 2 * step)
        made.op("aten::to", at + 65, 20)
        made.launch(11 + 2 * step, at + 70, 3, name="cudaMemcpyAsync")
        made.kernel("Memcpy DtoH", at + 80, 4, cat="gpu_memcpy", correlation=11 + 2 * step)
    return made


def busy(steps: int = 3) -> TraceBuilder:
    """Training-like steps: modules, forward and backward on two threads, copies, collectives."""
    made = TraceBuilder()
    at = 10_000.0
    correlation = 1
    for step in range(steps):
        made.mark(f"ProfilerStep#{step}", at, 1000)
        for layer in range(12):
            start = at + 5 + layer * 40
            made.mark(f"module: model.layers.{layer}", start, 38)
            made.op("aten::linear", start + 1, 30, **{"Sequence number": step * 100 + layer})
            made.op("aten::addmm", start + 3, 24, **{"Sequence number": step * 100 + layer})
            made.launch(correlation, start + 8, 4)
            made.kernel("gemm", start + 20, 17.25, correlation=correlation)
            correlation += 1
            back = at + 500 + layer * 40
            node = {"Sequence number": step * 100 + layer, "Fwd thread id": 1}
            made.op("autograd::engine::evaluate_function: AddmmBackward0", back, 36, tid=2, **node)
            made.op("aten::mm", back + 2, 30, tid=2)
            made.launch(correlation, back + 10, 4, tid=2)
            made.kernel("gemm_grad", back + 18, 21.5, correlation=correlation)
            correlation += 1
        made.launch(correlation, at + 985, 4, name="cudaMemcpyAsync")
        made.kernel("Memcpy DtoH", at + 992, 3, cat="gpu_memcpy", correlation=correlation)
        correlation += 1
        at += 1100
    return made
