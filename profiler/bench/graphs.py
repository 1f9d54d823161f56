"""Compiling the model, and a report of what the compiler made of it.

The compiler itself is a third of what torch takes to load: only runs that compile load it.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from profiler.errors import CompileError, SpecError, printable
from profiler.spec import BACKEND_PREFIX, EAGER
from profiler.types import GraphBreak, GraphReport

BREAKS_LOG = "torch._dynamo.symbolic_convert.__graph_breaks"
_BREAK = re.compile(r"in user code at (?P<where>\S+:\d+)\s+Graph Break Reason: (?P<why>[^\n]*)")
_DETAIL = re.compile(r"to trace [^\n]*:\s+(?P<why>\S[^\n]*)")


class Breaks(logging.Handler):
    """Counts graph breaks by reason and source line as the compiler logs them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[str, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        match = _BREAK.search(text)
        if match is None:
            return
        reason = match["why"]
        detail = _DETAIL.search(text) if reason.endswith(":") else None
        shown = detail["why"] if detail else reason
        self.found[printable(shown, 300), printable(match["where"], 300)] += 1


@dataclass(slots=True)
class Compiler:
    """The compile mode of one run and what has been seen of it."""

    mode: str
    breaks: Breaks
    fell_back: str = ""

    @property
    def active(self) -> bool:
        """Whether the model runs compiled."""
        return self.mode != EAGER and not self.fell_back

    def apply(self, model: torch.nn.Module) -> None:
        """Make `model` compile itself at its next call; nothing in mode `eager`."""
        if self.mode == EAGER:
            return
        if self.mode.startswith(BACKEND_PREFIX):
            model.compile(backend=self.mode.removeprefix(BACKEND_PREFIX))
        else:
            model.compile(mode=self.mode)

    def undo(self, model: torch.nn.Module, reason: str) -> None:
        """Run `model` uncompiled from now on, and remember why."""
        model._compiled_call_impl = None
        self.fell_back = reason

    def warnings(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        return (f"ran eager after all: {self.fell_back}",) if self.fell_back else ()

    def report(self) -> GraphReport | None:
        """Graphs, breaks, recompilations and compile time so far; None in mode `eager`."""
        if self.mode == EAGER:
            return None
        from torch._dynamo import utils as dynamo

        compiled = dynamo.get_compilation_metrics()
        reasons = (metric.recompile_reason for metric in compiled)
        seconds = sum(metric.entire_frame_compile_time_s or 0.0 for metric in compiled)
        return GraphReport(
            mode=self.mode,
            graphs=int(dynamo.counters["stats"]["unique_graphs"]),
            breaks=tuple(
                GraphBreak(reason=reason, where=where, count=count)
                for (reason, where), count in self.breaks.found.most_common()
            ),
            recompilations=tuple(printable(reason, 500) for reason in reasons if reason),
            fused_kernels=_generated_kernels(self.mode),
            compile_ns=round(seconds * 1e9),
            fell_back=self.fell_back,
        )


@contextlib.contextmanager
def compiler(mode: str) -> Iterator[Compiler]:
    """A compiler for one run, with fresh counters; compile errors inside become `CompileError`."""
    breaks = Breaks()
    log = logging.getLogger(BREAKS_LOG)
    if mode != EAGER:
        from torch._dynamo import utils as dynamo
        from torch._logging._internal import set_logs

        torch._dynamo.reset()
        dynamo.counters.clear()
        dynamo.clear_compilation_metrics()
        _forget_kernels(mode)
        set_logs(graph_breaks=True, recompiles=True)
        log.addHandler(breaks)
    try:
        yield Compiler(mode, breaks)
    finally:
        log.removeHandler(breaks)


@contextlib.contextmanager
def compile_errors(mode: str) -> Iterator[None]:
    """Turn an error of the compiler into the `UserError` it means."""
    if mode == EAGER:
        yield
        return
    from torch._dynamo.exc import InvalidBackend, TorchDynamoException

    try:
        yield
    except InvalidBackend as error:
        backends = ", ".join(torch._dynamo.list_backends())
        raise SpecError(
            f"spec.compile {mode!r}: {_first_line(error)}", f"backends here: {backends}"
        ) from error
    except TorchDynamoException as error:
        raise CompileError(
            f"compile mode {mode} failed: {_first_line(error)}",
            "see the log, run eager, or set compile_fallback",
        ) from error


def _forget_kernels(mode: str) -> None:
    """Count inductor's kernels from 0 on."""
    if not mode.startswith(BACKEND_PREFIX):
        from torch._inductor import metrics

        metrics.reset()


def _generated_kernels(mode: str) -> int | None:
    """Kernels inductor generated, or None for another back-end, which does not count."""
    if mode.startswith(BACKEND_PREFIX):
        return None
    from torch._inductor import metrics

    return int(metrics.generated_kernel_count)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])[:300] or type(error).__name__
