"""What it took to have the model: construction, and reading the weights of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.bench.checkpoint import Checkpoint
from profiler.bench.devices import Device
from profiler.bench.summary import summarise
from profiler.types import Metric


@dataclass(frozen=True, slots=True)
class Loading:
    """Times of one construction; `load_ns` is None for a model without a checkpoint.

    Without a checkpoint `build_ns` ends with seeded weights on the device. With
    one it is the empty model's alone, and `load_ns` spans a second construction
    with the weights streamed into it.
    """

    build_ns: int
    load_ns: int | None = None


def loading_metrics(
    loading: Loading, checkpoint: Checkpoint | None, device: Device
) -> tuple[Metric, ...]:
    """`build_time`, and for a checkpoint `load_time` and `load_rate`."""
    clock = device.timing_method
    what = "built once" if checkpoint is None else "the empty model, built once"
    build = summarise("build_time", [loading.build_ns], phase="load", method=f"{clock}; {what}")
    if checkpoint is None or loading.load_ns is None:
        return (build,)
    size = checkpoint.weight_bytes
    read = (
        f"{len(checkpoint.shards)} safetensors shards of {size} bytes, once, page cache as found, "
        "construction of the empty model included"
    )
    rate = size / (loading.load_ns * 1e-9)
    return (
        build,
        summarise("load_time", [loading.load_ns], phase="load", method=f"{clock}; {read}"),
        summarise("load_rate", [rate], phase="load", method=f"bytes / load time; {read}"),
    )
