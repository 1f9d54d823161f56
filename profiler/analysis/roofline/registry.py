"""Which formula belongs to which operator. Adding one is a line here and a function beside it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from profiler.analysis.roofline import attention, convolution, elements, matmul
from profiler.analysis.roofline.calls import OperatorCall
from profiler.analysis.roofline.cost import Cost

Formula = Callable[[OperatorCall], Cost | None]

_MATRIX: dict[str, Formula] = {
    "aten::mm": matmul.mm,
    "aten::addmm": matmul.addmm,
    "aten::addmv": partial(matmul.mv, first=1),
    "aten::mv": matmul.mv,
    "aten::_addmm_activation": matmul.addmm,
    "aten::linear": matmul.linear,
    "aten::mkldnn_linear": matmul.linear,
    "mkldnn::_linear_pointwise": matmul.linear,
    "aten::matmul": matmul.matmul,
    "aten::bmm": matmul.bmm,
    "aten::baddbmm": matmul.baddbmm,
    "aten::_scaled_mm": matmul.scaled_mm,
    "aten::_int_mm": matmul.mm,
    "aten::_weight_int8pack_mm": matmul.packed_mm,
    "aten::_weight_int4pack_mm": matmul.packed_mm,
    "aten::_weight_int4pack_mm_for_cpu": matmul.packed_mm,
    "aten::_grouped_mm": matmul.grouped_mm,
    "aten::_scaled_grouped_mm": matmul.grouped_mm,
    "_C::cutlass_scaled_mm": partial(matmul.mm, first=1),
    "aten::scaled_dot_product_attention": attention.sdpa,
    "aten::_scaled_dot_product_attention_math": attention.math_sdpa,
    "aten::_scaled_dot_product_flash_attention": attention.flash,
    "aten::_scaled_dot_product_flash_attention_for_cpu": attention.flash,
    "aten::_scaled_dot_product_efficient_attention": attention.efficient,
    "aten::_scaled_dot_product_cudnn_attention": attention.efficient,
    "aten::_scaled_dot_product_fused_attention_overrideable": attention.overrideable,
    "aten::_flash_attention_forward": attention.inner_flash,
    "aten::_scaled_dot_product_flash_attention_backward": partial(attention.backward, causal_at=11),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": partial(
        attention.backward, causal_at=7
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": partial(
        attention.backward, causal_at=11
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": partial(attention.backward, causal_at=14),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": partial(
        attention.backward, causal_at=13
    ),
    "_flashmla_C::fwd_kvcache_mla": attention.latent_decode,
    "sgl_kernel::cutlass_mla_decode": attention.latent_decode,
    "aten::convolution": partial(convolution.convolution, at=convolution.CONV),
    "aten::_convolution": partial(convolution.convolution, at=convolution.CONV),
    "aten::conv1d": partial(convolution.convolution, at=convolution.CONV),
    "aten::conv2d": partial(convolution.convolution, at=convolution.CONV),
    "aten::conv3d": partial(convolution.convolution, at=convolution.CONV),
    "aten::cudnn_convolution": partial(convolution.convolution, at=convolution.CUDNN),
    "aten::miopen_convolution": partial(convolution.convolution, at=convolution.MKLDNN),
    "aten::mkldnn_convolution": partial(convolution.convolution, at=convolution.MKLDNN),
    "aten::thnn_conv2d": partial(convolution.convolution, at=convolution.THNN),
    "aten::_slow_conv2d_forward": partial(convolution.convolution, at=convolution.THNN),
    "aten::convolution_backward": convolution.convolution_backward,
}

_ONE = "add sub rsub mul div neg abs maximum minimum relu threshold_backward where lerp"
_ONE += " bitwise_and bitwise_or eq ne lt le gt ge masked_fill clamp addcmul addcdiv"
_MANY = "exp log sigmoid tanh sqrt rsqrt pow silu gelu sin cos erf reciprocal hardswish mish"
_MANY += " silu_backward gelu_backward tanh_backward sigmoid_backward"


def _elementwise() -> dict[str, Formula]:
    out: dict[str, Formula] = {}
    for names, flops in ((_ONE, 1), (_MANY, 8)):
        for name in names.split():
            out[f"aten::{name}"] = partial(elements.elementwise, flops=flops)
            out[f"aten::{name}_"] = partial(elements.elementwise, flops=flops, in_place=True)
    return out


_TRAFFIC: dict[str, Formula] = {
    **_elementwise(),
    "_C::silu_and_mul": elements.gated,
    "sgl_kernel::silu_and_mul": elements.gated,
    "aten::_fused_rms_norm": partial(elements.norm, flops=4),
    "aten::rms_norm": partial(elements.norm, flops=4),
    "_C::rms_norm": partial(elements.norm, flops=4),
    "aten::native_layer_norm": partial(elements.norm, flops=8),
    "aten::layer_norm": partial(elements.norm, flops=8),
    "aten::native_batch_norm": partial(elements.norm, flops=8),
    "aten::cudnn_batch_norm": partial(elements.norm, flops=8),
    "aten::native_group_norm": partial(elements.norm, flops=8),
    "aten::native_layer_norm_backward": elements.norm_backward,
    "aten::cudnn_batch_norm_backward": elements.norm_backward,
    "aten::native_batch_norm_backward": elements.norm_backward,
    "aten::_softmax": elements.softmax,
    "aten::_log_softmax": elements.softmax,
    "aten::_softmax_backward_data": elements.softmax,
    "aten::_log_softmax_backward_data": elements.softmax,
    "aten::sum": elements.reduction,
    "aten::mean": elements.reduction,
    "aten::amax": elements.reduction,
    "aten::argmax": elements.reduction,
    "aten::embedding": elements.embedding,
    "aten::index_select": elements.index_rows,
    "aten::index": elements.index_rows,
    "aten::gather": elements.gather,
    "aten::scatter": elements.scatter,
    "aten::scatter_": elements.scatter,
    "aten::scatter_add_": elements.scatter,
    "aten::index_put_": elements.scatter,
    "aten::index_add_": elements.scatter,
    "aten::topk": elements.latency,
    "aten::sort": elements.latency,
    "aten::cumsum": elements.latency,
    "aten::histc": elements.latency,
    "aten::copy_": elements.copy,
    "aten::clone": elements.duplicate,
    "aten::contiguous": elements.duplicate,
    "aten::_to_copy": elements.cast,
    "aten::repeat": elements.duplicate,
    "aten::cat": elements.cat,
    "aten::stack": elements.cat,
    "aten::fill_": elements.fill,
    "aten::zero_": elements.fill,
}

_ELEMENTWISE_NAMES = frozenset(f"{_ONE} {_MANY}".split())
_LIST_PREFIXES = ("aten::_foreach_", "aten::_fused_")


def is_matrix(name: str) -> bool:
    """Whether an operator of this name is counted as a whole, whatever it calls inside."""
    return name in _MATRIX


def is_elementwise(name: str) -> bool:
    """Whether each output element depends on the same element of the inputs alone."""
    return name.removeprefix("aten::").rstrip("_") in _ELEMENTWISE_NAMES


def has_formula(name: str) -> bool:
    """Whether there is a formula for operators of this name."""
    return name in _MATRIX or name in _TRAFFIC or name.startswith(_LIST_PREFIXES)


def cost_of(call: OperatorCall) -> Cost | None:
    """FLOPs and bytes of one call; None without a formula or where its inputs do not say enough."""
    formula = _MATRIX.get(call.name) or _TRAFFIC.get(call.name)
    if formula is None and call.name.startswith(_LIST_PREFIXES):
        formula = elements.foreach
    return formula(call) if formula is not None else None
