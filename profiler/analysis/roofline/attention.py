"""Attention. Query (b, a, s_q, d_qk), key (b, k, s_k, d_qk), value (b, k, s_k, d_v).

Forward: 2 b a pairs (d_qk + d_v) FLOPs, where pairs = s_q s_k, or of a causal
mask aligned bottom right s_q (s_k - s_q) + s_q (s_q + 1) / 2. Backward of a
fused kernel does five products instead of two: 2.5 times the forward.
"""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.roofline.calls import OperatorCall, Tensor
from profiler.analysis.roofline.cost import Cost


def attended_pairs(s_q: int, s_k: int, *, causal: bool) -> int:
    """Query-key pairs that are computed: all, or those of a bottom-right causal mask."""
    if not causal or s_q > s_k:
        return s_q * s_k
    return s_q * (s_k - s_q) + s_q * (s_q + 1) // 2


def _is_causal(call: OperatorCall, place: int) -> bool:
    """Unrecorded counts as no mask: that bound is the one that promises less."""
    return call.scalar(place) == "True"


def _cost(q: Tensor, k: Tensor, v: Tensor, pairs: int, *, fused: bool) -> Cost | None:
    if not len(q.shape) == len(k.shape) == len(v.shape) == 4:
        return None
    batch, heads, s_q, d_qk = q.shape
    d_v = v.shape[3]
    scores = 0 if fused else 4 * batch * heads * s_q * k.shape[2] * q.width_bytes
    out = batch * heads * s_q * d_v * q.width_bytes
    return Cost(
        flops=2 * batch * heads * pairs * (d_qk + d_v),
        size_bytes=q.size_bytes + k.size_bytes + v.size_bytes + out + scores,
        unit="matrix",
        dtype=q.dtype,
    )


def _forward(call: OperatorCall, causal_at: int, *, fused: bool = True) -> Cost | None:
    q, k, v = call.tensor(0), call.tensor(1), call.tensor(2)
    if q is None or k is None or v is None or len(q.shape) != 4 or len(k.shape) != 4:
        return None
    pairs = attended_pairs(q.shape[2], k.shape[2], causal=_is_causal(call, causal_at))
    return _cost(q, k, v, pairs, fused=fused)


def sdpa(call: OperatorCall) -> Cost | None:
    """scaled_dot_product_attention(q, k, v, mask, dropout, is_causal, ...), fused."""
    return _forward(call, 5)


def math_sdpa(call: OperatorCall) -> Cost | None:
    """The unfused form: scores are written and read twice, 4 b a s_q s_k w bytes more."""
    return _forward(call, 5, fused=False)


def flash(call: OperatorCall) -> Cost | None:
    """_scaled_dot_product_flash_attention(q, k, v, dropout, is_causal, ...), also for_cpu."""
    return _forward(call, 4)


def efficient(call: OperatorCall) -> Cost | None:
    """_scaled_dot_product_efficient_attention(q, k, v, bias, lse, dropout, is_causal, ...)."""
    return _forward(call, 6)


def overrideable(call: OperatorCall) -> Cost | None:
    """_scaled_dot_product_fused_attention_overrideable(q, k, v, bias, dropout, is_causal, ...)."""
    return _forward(call, 5)


def _headed(tensor: Tensor | None) -> Tensor | None:
    """(b, s, a, d), the layout of the inner flash kernels, as (b, a, s, d)."""
    if tensor is None or len(tensor.shape) != 4:
        return None
    b, s, a, d = tensor.shape
    return Tensor((b, a, s, d), tensor.dtype)


def inner_flash(call: OperatorCall) -> Cost | None:
    """_flash_attention_forward(q, k, v, ..., is_causal, ...) with (b, s, a, d) tensors."""
    q, k, v = (_headed(call.tensor(place)) for place in range(3))
    if q is None or k is None or v is None:
        return None
    pairs = attended_pairs(q.shape[2], k.shape[2], causal=_is_causal(call, 8))
    return _cost(q, k, v, pairs, fused=True)


def backward(call: OperatorCall, causal_at: int) -> Cost | None:
    """Gradient of the output, then q, k, v, out: five products, 2.5 times the forward FLOPs.

    Reads q, k, v, the output and its gradient, writes the gradients of q, k and v.
    """
    q, k, v = (call.tensor(place) for place in (1, 2, 3))
    if q is None or k is None or v is None or len(q.shape) != 4 or len(k.shape) != 4:
        return None
    pairs = attended_pairs(q.shape[2], k.shape[2], causal=_is_causal(call, causal_at))
    forward = _cost(q, k, v, pairs, fused=True)
    if forward is None:
        return None
    out = q.shape[0] * q.shape[1] * q.shape[2] * v.shape[3] * q.width_bytes
    moved = 2 * (q.size_bytes + k.size_bytes + v.size_bytes) + 2 * out
    return Cost(flops=forward.flops * 5 // 2, size_bytes=moved, unit="matrix", dtype=forward.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Sizes of latent attention (MLA): heads a, cache rank r, head sizes d_r, d_n and d_v."""

    heads: int
    rank: int
    rope: int
    nope: int
    value: int


def latent_decode_cost(sizes: Latent, tokens: int, context: int, width_bytes: int) -> Cost:
    """Absorbed decode of `tokens` queries over `context` entries each.

    Per token 2 a s (2 r + d_r) for scores and values in the latent space and
    2 a r (d_n + d_v) to absorb; the cache (r + d_r) is read once for all heads.
    """
    scores = 2 * sizes.heads * context * (2 * sizes.rank + sizes.rope)
    absorbing = 2 * sizes.heads * sizes.rank * (sizes.nope + sizes.value)
    cache = tokens * context * (sizes.rank + sizes.rope) * width_bytes
    return Cost(
        flops=tokens * (scores + absorbing), size_bytes=cache, unit="matrix", dtype="bfloat16"
    )


def latent_decode(call: OperatorCall) -> Cost | None:
    """A fused MLA decode kernel: q (b, a, r + d_r) or (b, s, a, r + d_r), cache (..., r + d_r).

    Recorded are the absorbed query and the paged cache; the length used of
    it is not, so the whole cache counts. The rope part is 64 wide in every
    published model of this kind. Absorption runs in products of its own.
    """
    q, cache = call.tensor(0), call.tensor(1)
    if q is None or cache is None or len(q.shape) not in (3, 4) or not cache.shape:
        return None
    wide = q.shape[-1]
    if wide != cache.shape[-1] or wide <= 64:
        return None
    tokens, heads = q.elements // (q.shape[-2] * wide), q.shape[-2]
    entries = cache.elements // wide
    rank = wide - 64
    return Cost(
        flops=2 * heads * entries * (2 * rank + 64) * max(1, tokens // q.shape[0]),
        size_bytes=q.size_bytes + cache.size_bytes + tokens * heads * rank * q.width_bytes,
        unit="matrix",
        dtype=q.dtype,
    )
