from __future__ import annotations

import pytest
import torch

from profiler.bench.rebuild import CannotRebuildError, Rebuilt, RecordedCall, input_bytes, rebuild

CPU = torch.device("cpu")
RESULTS: list[torch.Tensor] = []


def call(name: str, *inputs: tuple[str, object, object, str]) -> RecordedCall:
    """A recorded call from (type, shape, strides, number) of each argument."""
    types, shapes, strides, concrete = zip(*inputs, strict=True)
    return RecordedCall(name=name, shapes=shapes, strides=strides, types=types, concrete=concrete)


def tensor(*shape: int, kind: str = "float") -> tuple[str, object, object, str]:
    return kind, list(shape), list(torch.empty(shape, device="meta").stride()), ""


def number(text: str) -> tuple[str, object, object, str]:
    return "Scalar", [], [], text


NOTHING: tuple[str, object, object, str] = ("", [], [], "")


def made(*arguments: object) -> Rebuilt:
    return rebuild(call(*arguments), device=CPU, list_dtype=torch.bfloat16)  # type: ignore[arg-type]


def test_it_calls_the_overload_that_takes_the_recorded_arguments() -> None:
    power = made("aten::pow", tensor(2, 3), number("2"))
    assert power.overload == "aten::pow.Tensor_Scalar"
    assert torch.as_tensor(power.run()).shape == (2, 3)
    assert made("aten::add", tensor(4), tensor(4), number("1")).overload == "aten::add.Tensor"


def test_it_keeps_strides_and_element_types() -> None:
    transposed = ("c10::BFloat16", [8, 16], [1, 8], "")
    product = made("aten::mm", tensor(4, 8, kind="c10::BFloat16"), transposed)
    result = torch.as_tensor(product.run())
    assert (result.shape, result.dtype) == ((4, 16), torch.bfloat16)
    same = torch.as_tensor(made("aten::alias", transposed).run())
    assert same.stride() == (1, 8)


def test_it_keeps_an_expanded_tensor_expanded() -> None:
    expanded = ("float", [1024, 1024], [0, 1], "")
    result = torch.as_tensor(made("aten::alias", expanded).run())
    assert result.stride() == (0, 1)
    assert result.untyped_storage().nbytes() == 4 * 1024


def test_it_gives_lists_and_what_they_hold() -> None:
    pair = ("TensorList", [[2, 3], [2, 5]], [[3, 1], [5, 1]], "")
    joined = torch.as_tensor(made("aten::cat", pair, number("-1")).run())
    assert (joined.shape, joined.dtype) == ((2, 8), torch.bfloat16)
    mean = made("aten::mean", tensor(2, 3), ("ScalarList", [], [], "[-1]"), number("True"), NOTHING)
    assert torch.as_tensor(mean.run()).shape == (2, 1)


def test_it_converts_to_the_recorded_element_type() -> None:
    copy = made(
        "aten::_to_copy",
        tensor(3),
        number("15"),
        NOTHING,
        NOTHING,
        NOTHING,
        number("False"),
        NOTHING,
    )
    assert torch.as_tensor(copy.run()).dtype is torch.bfloat16


def test_it_draws_indices_that_exist() -> None:
    rows = tensor(500, kind="long int")
    look_up = made("aten::embedding", tensor(7, 3), rows, *map(number, ("-1", "False", "False")))
    assert torch.as_tensor(look_up.run()).shape == (500, 3)
    chosen = made("aten::index_select", tensor(9, 4), number("1"), rows)
    assert torch.as_tensor(chosen.run()).shape == (9, 500)


def test_it_undoes_what_a_call_wrote() -> None:
    doubled = made("aten::add_", tensor(5), tensor(5), number("1"))
    first = torch.as_tensor(doubled.run()).clone()
    doubled.run()
    doubled.restore()
    assert torch.as_tensor(doubled.run()).equal(first)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("aten::no_such_operator", tensor(2)), "no operator of this name"),
        (("vendor::secret", tensor(2)), "no operator of this name"),
        (("aten::mm", tensor(2)), "no overload takes"),
        (("aten::index", tensor(2), NOTHING), "argument indices was not recorded"),
        (("aten::gelu", tensor(2), NOTHING), "argument approximate was not recorded"),
        (("aten::nonzero", tensor(2)), "its work depends on values"),
        (("aten::relu", ("float", [2, 3], [], "")), "strides of a tensor were not recorded"),
        (("aten::sum", tensor(2), ("ScalarList", [], [], ""), number("True"), NOTHING), "dim"),
    ],
)
def test_it_says_why_a_call_cannot_be_rebuilt(arguments: tuple[object, ...], said: str) -> None:
    with pytest.raises(CannotRebuildError, match=said):
        made(*arguments)


def test_it_counts_the_bytes_of_all_inputs() -> None:
    pair = ("TensorList", [[2, 3], [2, 5]], [[3, 1], [5, 1]], "")
    assert input_bytes(call("aten::cat", pair, number("-1")), torch.bfloat16) == 16 * 2
    half = tensor(4, 8, kind="c10::Half")
    assert input_bytes(call("aten::add", half, tensor(8), number("1")), torch.float32) == 64 + 32
