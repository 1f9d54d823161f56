"""Convolutions: 2 b C_out (prod out) (C_in / groups) (prod kernel) FLOPs; input, weight, output.

A transposed one swaps the roles of input and output: 2 b C_in (prod in) (C_out / groups)
(prod kernel), its weight being (C_in, C_out / groups, *kernel).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from profiler.analysis.roofline.calls import OperatorCall, Tensor
from profiler.analysis.roofline.cost import Cost


@dataclass(frozen=True, slots=True)
class Places:
    """Where a call keeps its list arguments; None where it has no such argument."""

    stride: int
    padding: int
    dilation: int | None


CONV = Places(stride=3, padding=4, dilation=5)
"""conv1d/2d/3d and convolution: input, weight, bias, stride, padding, dilation, ..."""

CUDNN = Places(stride=3, padding=2, dilation=4)
"""cudnn_convolution: input, weight, padding, stride, dilation, ..."""

THNN = Places(stride=4, padding=5, dilation=None)
"""_slow_conv2d_forward and thnn_conv2d: input, weight, kernel, bias, stride, padding."""

MKLDNN = Places(stride=4, padding=3, dilation=5)
"""mkldnn_convolution: input, weight, bias, padding, stride, dilation, ..."""


_TRANSPOSED, _EXTRA, _GROUPS = 6, 7, 8
"""Where convolution and _convolution keep `transposed`, `output_padding` and `groups`."""


def is_transposed(call: OperatorCall, at: Places) -> bool:
    """Whether the call says so; operators of fewer arguments never are."""
    return at == CONV and call.scalar(_TRANSPOSED) == "True"


def _sized(values: tuple[int, ...] | None, dims: int) -> tuple[int, ...] | None:
    if values is None:
        return None
    if len(values) == 1:
        return values * dims
    return values if len(values) == dims else None


def output_size(call: OperatorCall, at: Places) -> tuple[int, ...] | None:
    """Spatial output sizes; None where strides and padding are not recorded.

    A kernel of one with sizes unrecorded would still need the stride, so it is not guessed.
    A transposed convolution gives (size - 1) s - 2 p + d (k - 1) + extra + 1.
    """
    x, w = call.tensor(0), call.tensor(1)
    if x is None or w is None or len(x.shape) < 3 or len(w.shape) != len(x.shape):
        return None
    dims = len(x.shape) - 2
    stride = _sized(call.numbers(at.stride), dims)
    padding = _sized(call.numbers(at.padding), dims)
    dilation = (1,) * dims if at.dilation is None else _sized(call.numbers(at.dilation), dims)
    if stride is None or padding is None or dilation is None or 0 in stride:
        return None
    extra = _sized(call.numbers(_EXTRA), dims) if is_transposed(call, at) else None
    sizes = zip(x.shape[2:], w.shape[2:], stride, padding, dilation, strict=True)
    if extra is not None:
        each = zip(sizes, extra, strict=True)
        return tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for (n, k, s, p, d), e in each)
    return tuple((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in sizes)


def convolution(call: OperatorCall, at: Places) -> Cost | None:
    """Forward; the weight is (C_out, C_in / groups, *kernel)."""
    x, w = call.tensor(0), call.tensor(1)
    out = output_size(call, at)
    if x is None or w is None or out is None:
        return None
    swapped = is_transposed(call, at)
    wide = w.shape[1] * (call.numbers(_GROUPS) or (1,))[0] if swapped else w.shape[0]
    result = Tensor((x.shape[0], wide, *out), x.dtype)
    flops = 2 * (x if swapped else result).elements * prod(w.shape[1:])
    moved = x.size_bytes + w.size_bytes + result.size_bytes
    return Cost(flops=flops, size_bytes=moved, unit="matrix", dtype=x.dtype)


def convolution_backward(call: OperatorCall) -> Cost | None:
    """Gradient of the output, input, weight: one product each for input and weight gradients.

    FLOPs of each equal the forward's, which the sizes of the output gradient
    give without strides. Input gradients count unless the mask says they are not wanted.
    """
    grad, x, w = (call.tensor(place) for place in range(3))
    if grad is None or x is None or w is None or len(grad.shape) < 3:
        return None
    mask = call.scalar(10) or "[True, True, True]"
    wanted = mask.strip("[]").replace(" ", "").split(",")[:2].count("True")
    swapped = call.scalar(7) == "True"
    forward = 2 * (x if swapped else grad).elements * prod(w.shape[1:])
    moved = grad.size_bytes * wanted + 2 * (x.size_bytes + w.size_bytes)
    return Cost(flops=forward * wanted, size_bytes=moved, unit="matrix", dtype=x.dtype)
