"""Marks for the profiler: every module call by its full path, every phase by its name.

They exist only inside the profiled phase; the contexts remove every hook they add.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch.autograd.profiler import record_function
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle


def phase_mark(name: str) -> record_function:
    """A span `phase: <name>` in the trace."""
    return record_function(f"phase: {name}")


@contextlib.contextmanager
def module_marks(model: torch.nn.Module) -> Iterator[None]:
    """Span each forward call as `module: model.layers.3.self_attn`; the root by its class name."""
    open_spans: list[record_function] = []
    handles: list[RemovableHandle] = []
    try:
        # What data parallel wraps keeps the paths it has without the wrapper.
        inner = model.module if isinstance(model, DistributedDataParallel) else model
        for path, module in inner.named_modules():
            name = f"module: {path or type(module).__name__}"
            before, after = _hooks(name, open_spans)
            handles.append(module.register_forward_pre_hook(before, prepend=True))
            handles.append(module.register_forward_hook(after, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hooks(
    name: str, open_spans: list[record_function]
) -> tuple[Callable[..., None], Callable[..., None]]:
    """The pair of hooks that opens and closes a span; calls nest, so one stack serves all."""

    def before(module: torch.nn.Module, inputs: tuple[object, ...]) -> None:
        span = record_function(name)
        span.__enter__()  # type: ignore[no-untyped-call]
        open_spans.append(span)

    def after(module: torch.nn.Module, inputs: tuple[object, ...], output: object) -> None:
        open_spans.pop().__exit__(None, None, None)

    return before, after
