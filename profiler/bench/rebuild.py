"""A recorded operator call made real again: its overload and tensors of its shapes and types.

The trace names types and shapes of inputs, strides and numbers, but no
contents, no text and no devices. Floating-point tensors are filled with seeded
numbers from 0 to 1, so that no square root is NaN; whole numbers lie within the
dimension they may index. What was not recorded makes a `CannotRebuildError`
that says which argument.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch

TENSOR_TYPES: dict[str, torch.dtype] = {
    "float": torch.float32,
    "double": torch.float64,
    "c10::Half": torch.float16,
    "c10::BFloat16": torch.bfloat16,
    "c10::Float8_e4m3fn": torch.float8_e4m3fn,
    "c10::Float8_e5m2": torch.float8_e5m2,
    "long int": torch.int64,
    "long": torch.int64,
    "int": torch.int32,
    "short int": torch.int16,
    "signed char": torch.int8,
    "unsigned char": torch.uint8,
    "bool": torch.bool,
}
"""Element types by the names that the profiler records."""

SCALAR_TYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16),
    *(torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128),
    *(torch.bool, torch.qint8, torch.quint8, torch.qint32, torch.bfloat16),
)
"""Element types by the number that stands for them in a recorded argument."""

MEMORY_FORMATS = (
    torch.contiguous_format,
    torch.preserve_format,
    torch.channels_last,
    torch.channels_last_3d,
)
VALUE_DEPENDENT = frozenset(
    {"_grouped_mm", "_scaled_grouped_mm", "bincount", "masked_select", "nonzero"}
    | {"repeat_interleave", "_unique2", "unique_dim"}
)
"""Operators whose work depends on contents that no trace records."""

Argument = object
"""One argument as torch takes it: a tensor, a number, a list of either, a dtype ... or None."""


class CannotRebuildError(Exception):
    """A recorded call lacks something that its operator needs; the text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One operator call as the profiler wrote it, all sequences one entry per argument."""

    name: str
    shapes: tuple[list[object], ...]
    strides: tuple[list[object], ...]
    types: tuple[str, ...]
    concrete: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A call ready to run again and again; `restore` undoes what it wrote into its inputs."""

    overload: str
    run: Callable[[], object]
    restore: Callable[[], None]


def rebuild(call: RecordedCall, *, device: torch.device, list_dtype: torch.dtype) -> Rebuilt:
    """`call` on `device`; tensors inside lists, whose types are not recorded, are `list_dtype`.

    Raises `CannotRebuildError`.
    """
    overload = find_overload(call)
    arguments = overload._schema.arguments
    maker = TensorMaker(device, list_dtype, _index_limit(call, arguments))
    values = {a.name: _value(call, i, a, maker) for i, a in enumerate(arguments)}
    positional = [values[a.name] for a in arguments if not a.kwarg_only]
    named = {a.name: values[a.name] for a in arguments if a.kwarg_only}
    written = [values[a.name] for a in arguments if a.alias_info and a.alias_info.is_write]
    kept = [(t, t.clone()) for t in written if isinstance(t, torch.Tensor)]

    def restore() -> None:
        for tensor, original in kept:
            tensor.copy_(original)

    return Rebuilt(
        overload=str(overload._schema.name) + "." + overload._overloadname,
        run=lambda: overload(*positional, **named),
        restore=restore,
    )


def input_bytes(call: RecordedCall, list_dtype: torch.dtype) -> int:
    """Bytes of all tensors that go into `call`."""
    total = 0
    for kind, shape in zip(call.types, call.shapes, strict=True):
        if kind in TENSOR_TYPES:
            total += TENSOR_TYPES[kind].itemsize * math.prod(cast("list[int]", shape))
        elif kind == "TensorList":
            sizes = (math.prod(cast("list[int]", part)) for part in shape)
            total += list_dtype.itemsize * sum(sizes)
    return total


def find_overload(call: RecordedCall) -> torch._ops.OpOverload:
    """The overload of the operator that takes arguments of the recorded kinds."""
    space, _, short = call.name.partition("::")
    packet = getattr(getattr(torch.ops, space, None), short, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        raise CannotRebuildError("no operator of this name is registered")
    if short in VALUE_DEPENDENT:
        raise CannotRebuildError("its work depends on values, which a trace does not record")
    for name in packet.overloads():  # type: ignore[no-untyped-call]
        overload: torch._ops.OpOverload = getattr(packet, name)
        if _takes(overload, call.types):
            return overload
    raise CannotRebuildError("no overload takes the recorded arguments")


def _takes(overload: torch._ops.OpOverload, types: Sequence[str]) -> bool:
    arguments = overload._schema.arguments
    return len(arguments) == len(types) and all(
        _fits(str(argument.type), recorded)
        for argument, recorded in zip(arguments, types, strict=True)
    )


def _fits(wanted: str, recorded: str) -> bool:
    if recorded == "":
        return wanted.startswith(("Optional", "List[Optional")) or wanted == "str"
    base = wanted.removeprefix("Optional[").removesuffix("]") if "Optional" in wanted else wanted
    if "List" in wanted:
        return recorded == ("TensorList" if "Tensor" in wanted else "ScalarList")
    if base == "Tensor":
        return recorded in TENSOR_TYPES
    return recorded == "Scalar"


def _index_limit(call: RecordedCall, arguments: Sequence[torch.Argument]) -> int:
    """How large whole numbers in tensors may be: the dimension that they may index."""
    at = {argument.name: i for i, argument in enumerate(arguments)}
    sizes = [shape for shape in call.shapes if shape and isinstance(shape[0], int)]
    first = cast("list[int]", sizes[0]) if sizes else []
    if "num_weights" in at:
        return int(call.concrete[at["num_weights"]])
    if call.name == "aten::embedding":
        return first[0]
    if first and "dim" in at and call.types[at["dim"]] == "Scalar":
        return max(1, first[int(call.concrete[at["dim"]])])
    return max(1, min(cast(int, n) for shape in sizes for n in shape)) if sizes else 2


class TensorMaker:
    """Makes tensors of given shape, strides and type on one device."""

    def __init__(self, device: torch.device, list_dtype: torch.dtype, limit: int) -> None:
        self.device = device
        self.list_dtype = list_dtype
        self._limit = limit
        self._generator = torch.Generator().manual_seed(0)

    def make(self, shape: list[int], strides: list[int], dtype: torch.dtype) -> torch.Tensor:
        """Overlapping strides (an expanded tensor) are kept: several places share one number."""
        if len(strides) != len(shape):
            raise CannotRebuildError("the strides of a tensor were not recorded")
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
        base = self._contents(0 if 0 in shape else reach, dtype)
        return base.to(self.device).as_strided(shape, strides)

    def _contents(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        if dtype.is_floating_point:
            return torch.rand(count, generator=self._generator).to(dtype)
        limit = 2 if dtype is torch.bool else min(self._limit, torch.iinfo(dtype).max)
        return torch.randint(limit, (count,), generator=self._generator).to(dtype)


def _value(call: RecordedCall, at: int, argument: torch.Argument, maker: TensorMaker) -> Argument:
    recorded, kind = call.types[at], str(argument.real_type)
    if recorded == "":
        return _unrecorded(argument.name, kind, maker.device)
    if recorded in TENSOR_TYPES:
        shape, strides = cast("list[int]", call.shapes[at]), cast("list[int]", call.strides[at])
        return maker.make(shape, strides, TENSOR_TYPES[recorded])
    if recorded == "TensorList":
        pairs = zip(call.shapes[at], call.strides[at], strict=True)
        return [
            maker.make(cast("list[int]", n), cast("list[int]", s), maker.list_dtype)
            for n, s in pairs
        ]
    return _number(call.concrete[at], kind, argument.name)


def _unrecorded(name: str, kind: str, device: torch.device) -> Argument:
    """None for what is optional; text and lists of optional tensors are never recorded."""
    if "Device" in kind:
        return device
    if kind.startswith("Optional") and "str" not in kind:
        return None
    raise CannotRebuildError(f"argument {name} was not recorded")


def _number(text: str, kind: str, name: str) -> Argument:
    try:
        if "ScalarType" in kind:
            return SCALAR_TYPES[int(text)]
        if "MemoryFormat" in kind:
            return MEMORY_FORMATS[int(text)]
        if "Layout" in kind:
            return None
        return float(text) if text in ("inf", "-inf", "nan") else ast.literal_eval(text)
    except (ValueError, SyntaxError, IndexError):
        raise CannotRebuildError(f"argument {name} was not recorded") from None
