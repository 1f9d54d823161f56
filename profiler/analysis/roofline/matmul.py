"""Matrix products. A product of (M, K) and (K, N) takes 2MKN FLOPs; the bias of `addmm` is
not counted as arithmetic, as in torch's own counter, but moves N (or MN) elements."""

from __future__ import annotations

from math import prod

from profiler.analysis.roofline.calls import OperatorCall, Tensor
from profiler.analysis.roofline.cost import Cost


def _product(
    a: Tensor, b: Tensor, sizes: tuple[int, int, int], *, batch: int = 1, extra: int = 0
) -> Cost:
    m, k, n = sizes
    moved = a.size_bytes + b.size_bytes + batch * m * n * out_width(a, b)
    return Cost(flops=2 * batch * m * k * n, size_bytes=moved + extra, unit="matrix", dtype=a.dtype)


def out_width(a: Tensor, b: Tensor) -> int:
    """Bytes of an output element: quantised products accumulate to at least two bytes."""
    return max(a.width_bytes, b.width_bytes, 2)


def mm(call: OperatorCall, first: int = 0, extra_bytes: int = 0) -> Cost | None:
    """(M, K)(K, N) at arguments `first` and `first + 1`: 2MKN, w(MK + KN + MN)."""
    a, b = call.tensor(first), call.tensor(first + 1)
    if a is None or b is None or len(a.shape) != 2 or len(b.shape) != 2:
        return None
    if a.shape[1] != b.shape[0]:
        return None
    return _product(a, b, (a.shape[0], a.shape[1], b.shape[1]), extra=extra_bytes)


def addmm(call: OperatorCall) -> Cost | None:
    """Bias, (M, K), (K, N): as `mm` and the bias read once."""
    bias = call.tensor(0)
    return mm(call, 1, bias.size_bytes if bias is not None else 0)


def linear(call: OperatorCall) -> Cost | None:
    """Input (..., K), weight (N, K), perhaps a bias: 2MKN with M all leading sizes."""
    a, w, bias = call.tensor(0), call.tensor(1), call.tensor(2)
    if a is None or w is None or not a.shape or len(w.shape) != 2 or a.shape[-1] != w.shape[1]:
        return None
    m = prod(a.shape[:-1])
    extra = bias.size_bytes if bias is not None else 0
    return _product(a, w, (m, a.shape[-1], w.shape[0]), extra=extra)


def matmul(call: OperatorCall) -> Cost | None:
    """(..., M, K)(..., K, N) with broadcast batch sizes; each operand read once."""
    a, b = call.tensor(0), call.tensor(1)
    if a is None or b is None or not a.shape or not b.shape:
        return None
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        return None
    batch = prod(_broadcast(left[:-2], right[:-2]))
    return _product(a, b, (left[-2], left[-1], right[-1]), batch=batch)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    size = max(len(a), len(b))
    padded = ((1,) * (size - len(x)) + x for x in (a, b))
    return tuple(max(x, y) for x, y in zip(*padded, strict=True))


def bmm(call: OperatorCall, first: int = 0) -> Cost | None:
    """(B, M, K)(B, K, N): 2BMKN, wB(MK + KN + MN)."""
    a, b = call.tensor(first), call.tensor(first + 1)
    if a is None or b is None or len(a.shape) != 3 or len(b.shape) != 3:
        return None
    if a.shape[2] != b.shape[1]:
        return None
    return _product(a, b, (a.shape[1], a.shape[2], b.shape[2]), batch=a.shape[0])


def baddbmm(call: OperatorCall) -> Cost | None:
    """As `bmm`, with an addend before the factors."""
    return bmm(call, 1)


def mv(call: OperatorCall, first: int = 0) -> Cost | None:
    """(M, K)(K): 2MK, w(MK + K + M)."""
    a, x = call.tensor(first), call.tensor(first + 1)
    if a is None or x is None or len(a.shape) != 2 or len(x.shape) != 1:
        return None
    return _product(a, x, (a.shape[0], a.shape[1], 1))


def scaled_mm(call: OperatorCall) -> Cost | None:
    """fp8 or int8 (M, K)(K, N) with scales: 2MKN at that type's peak, operands at their widths."""
    cost = mm(call)
    if cost is None:
        return None
    operands = {id(call.tensor(0)), id(call.tensor(1))}
    scales = sum(t.size_bytes for t in call.tensors() if id(t) not in operands)
    return Cost(
        flops=cost.flops, size_bytes=cost.size_bytes + scales, unit="matrix", dtype=cost.dtype
    )


def packed_mm(call: OperatorCall) -> Cost | None:
    """A product with a weight of 8 or 4 bits: (M, K) and (N, K) or packed (N/8, K/..., ...).

    K comes from the activation, N from the scales' or weight's sizes; the
    weight moves at the bytes it really has. Arithmetic runs in the activation's type.
    """
    a, w = call.tensor(0), call.tensor(1)
    if a is None or w is None or len(a.shape) != 2:
        return None
    m, k = a.shape
    # int8 weights are (N, K); int4 tiles (N/8, K/(16 t), 32, t/2) hold eight values per int32.
    values = w.elements * (8 if w.dtype == "int32" else 1)
    if w.dtype == "int8" and len(w.shape) == 2 and w.shape[1] * 2 == k:
        values = w.elements * 2
    if not k or values % k:
        return None
    n = values // k
    scales = sum(t.size_bytes for t in call.tensors()[2:])
    moved = a.size_bytes + w.size_bytes + scales + m * n * a.width_bytes
    return Cost(flops=2 * m * k * n, size_bytes=moved, unit="matrix", dtype=a.dtype)


def grouped_mm(call: OperatorCall) -> Cost | None:
    """T routed rows against E experts: (T, K)(E, K, N) or (E, M, K)(E, K, N).

    2TKN FLOPs, w(TK + TN) + the weights of the experts. The routing is not
    recorded, so every expert counts as hit, or one per row if rows are fewer.
    """
    a, b = call.tensor(0), call.tensor(1)
    if a is None or b is None:
        return None
    if len(a.shape) == 3 and len(b.shape) == 3:
        return bmm(call)
    if len(a.shape) != 2 or len(b.shape) != 3 or a.shape[1] not in b.shape[1:]:
        return None
    rows, k = a.shape
    n = b.shape[2] if b.shape[1] == k else b.shape[1]
    hit = min(b.shape[0], rows)
    moved = a.size_bytes + hit * k * n * b.width_bytes + rows * n * out_width(a, b)
    return Cost(flops=2 * rows * k * n, size_bytes=moved, unit="matrix", dtype=a.dtype)
