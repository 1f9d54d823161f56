"""Traces from a known schedule: a program runs against a simple device and writes what happened.

A launched piece of work starts when its launch arrived (`LATENCY_NS` after the
call began), the work before it on its stream has ended (`GAP_NS` ago) and
everything it was told to wait for has ended. Running the same program with
other numbers gives the trace that a change would have produced.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from profiler.trace.link import Structure, link
from profiler.trace.model import Trace
from profiler.trace.normalise import normalise
from profiler.trace.read import read
from tests.profiler.trace.build import Json, TraceBuilder

LATENCY_NS = 4_000
GAP_NS = 1_000
RETURN_NS = 2_000
LAUNCH_NS = 4_000
SYNC_NS = 2_000
MAIN = 1


@dataclass
class Device:
    """What the simulated device has accepted so far."""

    free: dict[int, int] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)
    records: dict[str, tuple[int, int, int]] = field(default_factory=dict)


class Simulator:
    """One host with several threads and one device; times in ns."""

    def __init__(
        self, device_name: str = "", start_ns: int = 1_000_000, noise: float = 0.0
    ) -> None:
        self.now = start_ns
        self.noise = noise
        self.random = random.Random(device_name)
        self.tid = MAIN
        self.build = TraceBuilder()
        self.device = Device()
        self.correlation = 100
        if device_name:
            self.build.header["deviceProperties"] = [{"id": 0, "name": device_name}]

    def noisy(self, ns: int) -> int:
        """`ns` with the noise of a real machine: some times a little more, never much less."""
        if not self.noise:
            return ns
        return int(ns * max(0.9, self.random.gauss(1.0, self.noise)))

    def think(self, ns: int) -> None:
        """Host time outside of anything recorded."""
        self.now += self.noisy(ns)

    @contextmanager
    def frame(
        self, name: str, cat: str = "cpu_op", own_ns: int = 0, args: Json | None = None
    ) -> Iterator[None]:
        """A host event around what happens inside; `own_ns` before and after it together."""
        begin, tid = self.now, self.tid
        own_ns = self.noisy(own_ns)
        self.now += own_ns // 2
        yield
        self.now += own_ns - own_ns // 2
        self.emit(cat, name, begin, self.now - begin, tid=tid, args=dict(args or {}))

    def emit(self, cat: str, name: str, ts: int, dur: int, **more: object) -> Json:
        """One complete event."""
        if cat == "cpu_op":
            args = more.setdefault("args", {})
            assert isinstance(args, dict)
            args.setdefault("External id", self.build.next_id)
            self.build.next_id += 1
        return self.build.event(cat, name, ts / 1000, dur / 1000, **more)

    def step(self, number: int) -> AbstractContextManager[None]:
        """The mark of a step."""
        return self.frame(f"ProfilerStep#{number}", "user_annotation")

    def module(self, path: str) -> AbstractContextManager[None]:
        """The mark of a module."""
        return self.frame(f"module: {path}", "user_annotation")

    def launch(
        self,
        kernel: str,
        ns: int,
        *,
        stream: int = 7,
        call: str = "cudaLaunchKernel",
        cat: str = "kernel",
        cost_ns: int = LAUNCH_NS,
    ) -> int:
        """Launch one piece of work; its end."""
        self.correlation += 1
        begin, cost_ns = self.now, self.noisy(cost_ns)
        self.now += cost_ns
        self.emit(
            "cuda_runtime",
            call,
            begin,
            cost_ns,
            tid=self.tid,
            args={"correlation": self.correlation},
        )
        return self._work(kernel, ns, begin, stream=stream, cat=cat, args={})

    def _work(self, kernel: str, ns: int, issued: int, *, stream: int, cat: str, args: Json) -> int:
        device = self.device
        ns = self.noisy(ns)
        start = max(issued + self.noisy(LATENCY_NS), device.waits.pop(stream, 0))
        if stream in device.free:
            start = max(start, device.free[stream] + self.noisy(GAP_NS))
        self.build.kernel(
            kernel,
            start / 1000,
            ns / 1000,
            cat=cat,
            stream=stream,
            correlation=self.correlation,
            **args,
        )
        device.free[stream] = start + ns
        return start + ns

    def graph(self, kernels: Sequence[tuple[str, int]], *, stream: int = 7) -> None:
        """One call that starts many kernels."""
        self.correlation += 1
        begin = self.now
        self.now += 3 * LAUNCH_NS
        self.emit(
            "cuda_runtime",
            "cudaGraphLaunch",
            begin,
            3 * LAUNCH_NS,
            tid=self.tid,
            args={"correlation": self.correlation},
        )
        for name, ns in kernels:
            self._work(name, ns, begin, stream=stream, cat="kernel", args={})

    def sync(self, call: str = "cudaDeviceSynchronize", *, stream: int | None = None) -> None:
        """Wait until the device (or one stream) has finished."""
        free = self.device.free
        done = max(free.values(), default=0) if stream is None else free.get(stream, 0)
        begin = self.now
        self.now = max(begin + SYNC_NS, done + RETURN_NS if done > begin else 0)
        self.correlation += 1
        self.emit(
            "cuda_runtime",
            call,
            begin,
            self.now - begin,
            tid=self.tid,
            args={"correlation": self.correlation},
        )

    def blocking_copy(self, name: str, ns: int, *, stream: int = 7, size_bytes: int = 4) -> None:
        """A copy whose call returns when the copy is done."""
        self.correlation += 1
        begin = self.now
        end = self._work(
            name, ns, begin, stream=stream, cat="gpu_memcpy", args={"bytes": size_bytes}
        )
        self.now = end + RETURN_NS
        self.emit(
            "cuda_runtime",
            "cudaMemcpyAsync",
            begin,
            self.now - begin,
            tid=self.tid,
            args={"correlation": self.correlation},
        )

    def record(self, event: str, *, stream: int) -> None:
        """Record an event after the work launched so far on a stream."""
        self.correlation += 1
        self.emit(
            "cuda_runtime",
            "cudaEventRecord",
            self.now,
            1_000,
            tid=self.tid,
            args={"correlation": self.correlation},
        )
        self.device.records[event] = (self.device.free.get(stream, 0), stream, self.correlation)
        self.now += 1_000

    def wait(self, event: str, *, stream: int, told: bool = True) -> None:
        """Let a stream wait for an event; `told`: the trace states it."""
        done, source, recorded = self.device.records[event]
        self.correlation += 1
        self.emit(
            "cuda_runtime",
            "cudaStreamWaitEvent",
            self.now,
            1_000,
            tid=self.tid,
            args={"correlation": self.correlation},
        )
        if told:
            args = {
                "device": 0,
                "stream": stream,
                "correlation": self.correlation,
                "wait_on_stream": source,
                "wait_on_cuda_event_record_corr_id": recorded,
            }
            self.emit("cuda_sync", "Stream Wait Event", self.now, 0, tid=stream, pid=0, args=args)
        waits = self.device.waits
        waits[stream] = max(waits.get(stream, 0), done + GAP_NS)
        self.now += 1_000

    @contextmanager
    def thread(self, tid: int) -> Iterator[None]:
        """Let another thread work while this one waits for it."""
        own, self.tid = self.tid, tid
        self.now += 3_000
        yield
        self.now += 3_000
        self.tid = own

    def trace(self) -> Trace:
        """What was recorded, read back through the engine."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            path.write_text(json.dumps(self.build.data()))
            return normalise(read(path))

    def linked(self) -> tuple[Trace, Structure]:
        """The trace with its host side linked to the device."""
        trace = self.trace()
        return trace, link(trace)
