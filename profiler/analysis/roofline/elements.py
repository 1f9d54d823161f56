"""Element-wise arithmetic, norms, softmax, look-ups and copies: bounded by traffic."""

from __future__ import annotations

from math import prod

from profiler.analysis.roofline.calls import OperatorCall, Tensor, scalar_type
from profiler.analysis.roofline.cost import Cost, Unit


def _largest(call: OperatorCall) -> Tensor | None:
    return max(call.tensors(), key=lambda t: t.elements, default=None)


def _broadcast(tensors: tuple[Tensor, ...]) -> tuple[int, ...]:
    size = max(len(t.shape) for t in tensors)
    padded = [(1,) * (size - len(t.shape)) + t.shape for t in tensors]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True))


def elementwise(call: OperatorCall, flops: int = 1, *, in_place: bool = False) -> Cost | None:
    """`flops` per output element; inputs (a broadcast operand once) and the output moved.

    In place, the output is the first operand.
    """
    tensors = call.tensors()
    if not tensors:
        return None
    shape = tensors[0].shape if in_place else _broadcast(tensors)
    widest = tensors[0] if in_place else max(tensors, key=lambda t: t.width_bytes)
    out = Tensor(shape, widest.dtype)
    moved = sum(t.size_bytes for t in tensors) + out.size_bytes
    return Cost(flops=flops * out.elements, size_bytes=moved, unit="vector", dtype=out.dtype)


def gated(call: OperatorCall) -> Cost | None:
    """silu_and_mul and its like: (..., 2d) in, (..., d) out."""
    x = _largest(call)
    if x is None or not x.shape:
        return None
    moved = x.size_bytes + x.size_bytes // 2
    return Cost(flops=5 * x.elements // 2, size_bytes=moved, unit="vector", dtype=x.dtype)


def norm(call: OperatorCall, flops: int) -> Cost | None:
    """RMSNorm (about 4 FLOPs per element) and LayerNorm (8): 2wN and the weights once."""
    x = call.tensor(0)
    if x is None:
        return None
    others = sum(t.size_bytes for t in call.tensors()[1:])
    return Cost(
        flops=flops * x.elements, size_bytes=2 * x.size_bytes + others, unit="vector", dtype=x.dtype
    )


def norm_backward(call: OperatorCall) -> Cost | None:
    """Gradient and input read, input gradient written; about 12 FLOPs per element."""
    x = _largest(call)
    if x is None:
        return None
    moved = sum(t.size_bytes for t in call.tensors()) + x.size_bytes
    return Cost(flops=12 * x.elements, size_bytes=moved, unit="vector", dtype=x.dtype)


def softmax(call: OperatorCall) -> Cost | None:
    """About 5 FLOPs per element, 2wN."""
    return elementwise(call, 5)


def reduction(call: OperatorCall) -> Cost | None:
    """One FLOP per input element; the input read, the small output not counted."""
    x = call.tensor(0)
    if x is None:
        return None
    return Cost(flops=x.elements, size_bytes=x.size_bytes, unit="vector", dtype=x.dtype)


def _moved(size_bytes: int, dtype: str) -> Cost:
    unit: Unit = "move"
    return Cost(flops=0, size_bytes=size_bytes, unit=unit, dtype=dtype)


def latency(call: OperatorCall) -> Cost | None:
    """topk, sort, cumsum, histc: no FLOPs worth counting, at least 2wN moved."""
    x = call.tensor(0)
    return None if x is None else _moved(2 * x.size_bytes, x.dtype)


def embedding(call: OperatorCall) -> Cost | None:
    """Rows of a table: 2 w tokens h + 8 tokens bytes, the table itself not read."""
    table, index = call.tensor(0), call.tensor(1)
    if table is None or index is None or len(table.shape) != 2:
        return None
    row = table.shape[1] * table.width_bytes
    return _moved(2 * row * index.elements + index.size_bytes, table.dtype)


def index_rows(call: OperatorCall) -> Cost | None:
    """index_select(x, dim, index): as many elements of x as the index picks, read and written."""
    x, index = call.tensor(0), call.tensor(2) or call.tensor(1)
    if x is None or index is None or not x.shape:
        return None
    row = prod(x.shape[1:]) * x.width_bytes
    return _moved(2 * row * index.elements + index.size_bytes, x.dtype)


def gather(call: OperatorCall) -> Cost | None:
    """gather(x, dim, index): one element read and written per index."""
    x, index = call.tensor(0), call.tensor(2)
    if x is None or index is None:
        return None
    return _moved(2 * index.elements * x.width_bytes + index.size_bytes, x.dtype)


def scatter(call: OperatorCall) -> Cost | None:
    """scatter and index_put: the source read and written into place, the index read."""
    tensors = call.tensors()
    if len(tensors) < 3:
        return None
    x, index, source = tensors[0], tensors[1], tensors[-1]
    return _moved(2 * source.elements * x.width_bytes + index.size_bytes, x.dtype)


def copy(call: OperatorCall) -> Cost | None:
    """copy_(target, source): w_in N + w_out N."""
    target, source = call.tensor(0), call.tensor(1)
    if target is None or source is None:
        return None
    return _moved(source.size_bytes + target.size_bytes, target.dtype)


def duplicate(call: OperatorCall) -> Cost | None:
    """clone and contiguous: 2wN."""
    x = call.tensor(0)
    return None if x is None else _moved(2 * x.size_bytes, x.dtype)


def cast(call: OperatorCall) -> Cost | None:
    """_to_copy(x, dtype, ...): w_in N + w_out N; the type kept where no other is recorded."""
    x = call.tensor(0)
    if x is None:
        return None
    out = Tensor(x.shape, scalar_type(call.scalar(1)) or x.dtype)
    return _moved(x.size_bytes + out.size_bytes, out.dtype)


def cat(call: OperatorCall) -> Cost | None:
    """All parts read and written once."""
    total = sum(t.size_bytes for t in call.tensors())
    first = call.tensors()
    return _moved(2 * total, first[0].dtype) if first else None


def fill(call: OperatorCall) -> Cost | None:
    """zero_ and fill_: wN written."""
    x = call.tensor(0)
    return None if x is None else _moved(x.size_bytes, x.dtype)


def foreach(call: OperatorCall) -> Cost | None:
    """A list operator or fused optimiser: every tensor of every list read, the first list written.

    A fused Adam reads parameters, gradients and two states and writes three
    of the four; the lists are counted once each and the written ones again.
    """
    lists = [a for a in call.arguments if isinstance(a, tuple)]
    if not lists:
        return None
    read = sum(t.size_bytes for one in lists for t in one)
    written = sum(t.size_bytes for one in lists[: max(1, len(lists) - 1)] for t in one)
    elements = sum(t.elements for t in lists[0])
    return Cost(
        flops=2 * elements * len(lists),
        size_bytes=read + (written if len(lists) > 2 else sum(t.size_bytes for t in lists[0])),
        unit="vector",
        dtype=lists[0][0].dtype,
    )
