"""Formulas against torch's own counter where that counts, else against closed forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from profiler.analysis.roofline.attention import Latent, attended_pairs, latent_decode_cost
from profiler.analysis.roofline.calls import dtype_name, parse_call
from profiler.analysis.roofline.cost import Cost
from profiler.analysis.roofline.registry import cost_of, is_matrix

A = torch.ones
Run = Callable[[], object]


def counted(run: Run) -> int:
    """FLOPs by torch's counter."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run()
    return int(counter.get_total_flops())


def recorded(run: Run, tmp_path_name: str) -> int:
    """FLOPs by our formulas over the outermost matrix operators of a real trace."""
    with (
        profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording,
        torch.no_grad(),
    ):
        run()
    recording.export_chrome_trace(tmp_path_name)
    with open(tmp_path_name) as file:
        events = json.load(file)["traceEvents"]
    calls = [e for e in events if e.get("cat") == "cpu_op" and is_matrix(e["name"])]
    calls.sort(key=lambda e: (e["ts"], -e["dur"]))
    total, until = 0, 0.0
    for event in calls:
        cost = cost_of_event(event)
        if event["ts"] >= until and cost is not None:
            total, until = total + cost.flops, event["ts"] + event["dur"]
    return total


def cost_of_event(event: dict[str, object]) -> Cost | None:
    args = event["args"]
    assert isinstance(args, dict)
    texts = [json.dumps(args.get(k, [])) for k in ("Input Dims", "Input type", "Concrete Inputs")]
    return cost_of(parse_call(str(event["name"]), *texts))


RUNS: dict[str, Run] = {
    "mm": lambda: A(5, 7) @ A(7, 3),
    "addmm": lambda: torch.addmm(A(3), A(5, 7), A(7, 3)),
    "linear": lambda: functional.linear(A(2, 5, 7), A(3, 7), A(3)),
    "linear without bias": lambda: functional.linear(A(2, 5, 7), A(3, 7)),
    "bmm": lambda: torch.bmm(A(4, 5, 7), A(4, 7, 3)),
    "baddbmm": lambda: torch.baddbmm(A(4, 5, 3), A(4, 5, 7), A(4, 7, 3)),
    "broadcast matmul": lambda: A(2, 1, 5, 7) @ A(3, 7, 4),
    "conv2d": lambda: functional.conv2d(A(2, 3, 17, 15), A(8, 3, 3, 3), stride=2, padding=1),
    "grouped conv2d": lambda: functional.conv2d(A(2, 4, 9, 9), A(8, 2, 3, 3), groups=2),
    "dilated conv1d": lambda: functional.conv1d(A(2, 3, 30), A(5, 3, 3), dilation=2),
    "conv3d": lambda: functional.conv3d(A(1, 2, 6, 6, 6), A(3, 2, 2, 2, 2)),
    "transposed conv2d": lambda: functional.conv_transpose2d(
        A(2, 4, 5, 7), A(4, 3, 3, 3), stride=2, padding=1, output_padding=1, groups=2
    ),
    "unfused attention": lambda: torch.softmax(A(2, 4, 6, 8) @ A(2, 4, 8, 6), -1) @ A(2, 4, 6, 8),
}


@pytest.mark.parametrize("name", RUNS)
def test_it_agrees_with_torchs_counter(name: str, tmp_path: object) -> None:
    expected = counted(RUNS[name])
    assert expected > 0
    assert recorded(RUNS[name], f"{tmp_path}/trace.json") == expected


@pytest.mark.parametrize("causal", [False, True])
def test_it_counts_the_cpus_fused_attention(causal: bool, tmp_path: object) -> None:
    q, k, v = A(2, 4, 6, 8), A(2, 4, 6, 8), A(2, 4, 6, 8)

    def run() -> object:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    pairs = 6 * 7 // 2 if causal else 36
    assert recorded(run, f"{tmp_path}/trace.json") == 2 * 2 * 4 * pairs * (8 + 8)


def cost(
    name: str, shapes: Sequence[object], types: list[str], scalars: list[str] | None = None
) -> Cost:
    call = parse_call(name, json.dumps(shapes), json.dumps(types), json.dumps(scalars or []))
    found = cost_of(call)
    assert found is not None
    return found


BF16 = "c10::BFloat16"


def test_it_counts_the_bytes_of_a_product() -> None:
    found = cost("aten::mm", [[4, 8], [8, 16]], [BF16, BF16])
    assert (found.flops, found.size_bytes) == (2 * 4 * 8 * 16, 2 * (32 + 128 + 64))


def test_it_counts_a_quantised_product_at_its_own_widths() -> None:
    types = ["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float", "float"]
    found = cost("aten::_scaled_mm", [[4, 8], [8, 16], [], []], types)
    assert (found.flops, found.dtype) == (2 * 4 * 8 * 16, "float8")
    assert found.size_bytes == 32 + 128 + 4 * 16 * 2 + 4 + 4


def test_it_counts_int8_and_packed_weights() -> None:
    assert cost("aten::_int_mm", [[32, 64], [64, 16]], ["signed char"] * 2).dtype == "int8"
    packed = cost(
        "aten::_weight_int8pack_mm", [[4, 64], [32, 64], [32]], [BF16, "signed char", BF16]
    )
    assert (packed.flops, packed.size_bytes) == (
        2 * 4 * 64 * 32,
        4 * 64 * 2 + 2048 + 64 + 4 * 32 * 2,
    )
    tiles = [[4, 64], [4, 1, 32, 2], [32, 2]]
    assert cost("aten::_weight_int4pack_mm", tiles, [BF16, "int", BF16]).flops == 2 * 4 * 64 * 32


def test_it_reads_only_the_experts_that_can_be_hit() -> None:
    found = cost("aten::_grouped_mm", [[3, 8], [16, 8, 4]], [BF16, BF16])
    assert found.flops == 2 * 3 * 8 * 4
    assert found.size_bytes == 2 * (3 * 8 + 3 * 8 * 4 + 3 * 4)


def test_it_aligns_a_causal_mask_bottom_right() -> None:
    for s_q, s_k in ((4, 4), (2, 7), (1, 9)):
        mask = torch.ones(s_q, s_k).tril(s_k - s_q)
        assert attended_pairs(s_q, s_k, causal=True) == int(mask.sum())


FLASH = "aten::_scaled_dot_product_flash_attention"


def test_it_halves_causal_attention_only_when_the_trace_says_so() -> None:
    shapes: list[object] = [[1, 2, 8, 4]] * 3
    full = cost(FLASH, shapes, [BF16] * 3)
    causal = cost(FLASH, [*shapes, [], []], [BF16] * 3, ["", "", "", "0.", "True"])
    assert full.flops == 2 * 2 * 64 * 8
    assert causal.flops == 2 * 2 * 36 * 8


def test_it_counts_grouped_heads_once_in_bytes() -> None:
    found = cost(FLASH, [[1, 8, 16, 4], [1, 2, 16, 4], [1, 2, 16, 4]], [BF16] * 3)
    assert found.size_bytes == 2 * 16 * 4 * (8 + 2 + 2 + 8)


def test_it_counts_five_products_in_the_backward_pass() -> None:
    shapes = [[1, 2, 8, 4]] * 4
    forward = cost(FLASH, shapes[:3], [BF16] * 3).flops
    assert cost(f"{FLASH}_backward", shapes, [BF16] * 4).flops == forward * 5 // 2


@pytest.mark.parametrize(
    ("name", "place"),
    [("flash_attention", 11), ("flash_attention_for_cpu", 7), ("efficient_attention", 11)],
)
def test_it_halves_the_backward_pass_of_causal_attention(name: str, place: int) -> None:
    shapes = [[1, 2, 8, 4]] * 4
    backward = f"aten::_scaled_dot_product_{name}_backward"
    arguments = getattr(torch.ops.aten, backward.removeprefix("aten::")).default._schema.arguments
    assert arguments[place].name == "is_causal"
    causal = cost(backward, shapes, [BF16] * 4, [*[""] * place, "True"])
    assert causal.flops * 64 == cost(backward, shapes, [BF16] * 4).flops * 36


def test_it_moves_a_cast_at_both_widths() -> None:
    found = cost("aten::_to_copy", [[4, 8], []], [BF16, "Scalar"], ["", "6", "", "", "", "False"])
    assert (found.size_bytes, found.dtype) == (32 * (2 + 4), "float32")
    kept = cost("aten::_to_copy", [[4, 8], []], [BF16, ""], ["", "", "", "cpu"])
    assert kept.size_bytes == 32 * (2 + 2)


def test_it_reads_a_latent_cache_once_for_all_heads() -> None:
    sizes = Latent(heads=128, rank=512, rope=64, nope=128, value=128)
    found = latent_decode_cost(sizes, 3, 4096, 2)
    assert found.size_bytes == 3 * 4096 * 576 * 2
    assert found.flops == 3 * (2 * 128 * 4096 * 1088 + 2 * 128 * 512 * 256)


def test_it_counts_a_broadcast_operand_once() -> None:
    found = cost("aten::add", [[8, 16], [16], []], ["float", "float", "Scalar"])
    assert (found.flops, found.size_bytes) == (128, 4 * (128 + 16 + 128))


@pytest.mark.parametrize(
    ("name", "shapes", "flops", "size_bytes"),
    [
        ("aten::_fused_rms_norm", [[4, 8], [8]], 4 * 32, 2 * (64 + 8)),
        ("aten::native_layer_norm", [[4, 8], [8]], 8 * 32, 2 * (64 + 8)),
        ("aten::_softmax", [[4, 8]], 5 * 32, 2 * 64),
        ("aten::topk", [[4, 8]], 0, 2 * 64),
        ("aten::copy_", [[4, 8], [4, 8]], 0, 2 * 64),
    ],
)
def test_it_counts_traffic(name: str, shapes: list[object], flops: int, size_bytes: int) -> None:
    found = cost(name, shapes, [BF16] * len(shapes))
    assert (found.flops, found.size_bytes) == (flops, size_bytes)


def test_it_reads_only_the_rows_of_a_table_that_are_looked_up() -> None:
    found = cost("aten::embedding", [[50_000, 64], [2, 5]], [BF16, "long int"])
    assert (found.flops, found.size_bytes) == (0, 2 * 2 * 10 * 64 + 8 * 10)


def test_it_gives_no_cost_where_inputs_do_not_say_enough() -> None:
    no_strides = parse_call("aten::conv2d", "[[1, 3, 8, 8], [4, 3, 3, 3]]", '["float", "float"]')
    assert cost_of(no_strides) is None
    assert cost_of(parse_call("custom::op", "[[4, 4]]", '["float"]')) is None


def test_it_knows_the_profilers_names_of_types() -> None:
    names = ["float", "c10::BFloat16", "c10::Half", "long int", "c10::Float8_e5m2", "Scalar", ""]
    expected = ["float32", "bfloat16", "float16", "int64", "float8", None, None]
    assert [dtype_name(name) for name in names] == expected


def test_it_meets_the_published_counts_of_large_models() -> None:
    matrix_weights, tokens = 69_501_714_432, 512
    square = cost("aten::mm", [[tokens, matrix_weights], [matrix_weights, 1]], [BF16, BF16])
    assert square.flops == 71_169_755_578_368
    attention = cost("aten::bmm", [[80 * 64, 512, 128], [80 * 64, 128, 512]], [BF16, BF16])
    assert 2 * attention.flops == 687_194_767_360
