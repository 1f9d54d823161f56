"""One operator call as the trace recorded it: shapes, types and, where kept, scalar arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod

WIDTHS: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "float8": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
"""Bytes of one element."""

_SPELLINGS = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "int8",
    "char": "int8",
    "uint8": "int8",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument: its shape and the product's name of its type."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """Number of elements; a scalar tensor has one."""
        return prod(self.shape)

    @property
    def width_bytes(self) -> int:
        """Bytes of one element."""
        return WIDTHS[self.dtype]

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole tensor, each element once."""
        return self.elements * self.width_bytes


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """Arguments of a call in order: a tensor, a list of tensors, or None for anything else.

    `scalars` are the recorded scalar arguments as text, empty where the trace has none.
    """

    name: str
    arguments: tuple[Tensor | tuple[Tensor, ...] | None, ...]
    scalars: tuple[str, ...] = ()

    def tensor(self, place: int) -> Tensor | None:
        """The tensor at `place`, None where there is none."""
        if place >= len(self.arguments):
            return None
        found = self.arguments[place]
        return found if isinstance(found, Tensor) else None

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors, lists flattened, in order."""
        out: list[Tensor] = []
        for argument in self.arguments:
            if isinstance(argument, Tensor):
                out.append(argument)
            elif argument:
                out.extend(argument)
        return tuple(out)

    def scalar(self, place: int) -> str | None:
        """The scalar argument at `place` as text, None where the trace does not say."""
        return self.scalars[place] if place < len(self.scalars) and self.scalars[place] else None

    def numbers(self, place: int) -> tuple[int, ...] | None:
        """A scalar argument that is a list of whole numbers, such as `[2, 2]`."""
        text = self.scalar(place)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except ValueError:
            return None
        if isinstance(value, list) and all(isinstance(n, int) for n in value):
            return tuple(value)
        return (value,) if isinstance(value, int) and not isinstance(value, bool) else None


def dtype_name(spelling: str) -> str | None:
    """The type behind a spelling of the profiler (`c10::BFloat16`, `long int`); None if no type."""
    lowered = spelling.lower()
    if lowered in _SPELLINGS:
        return _SPELLINGS[lowered]
    bare = lowered.removeprefix("c10::").removeprefix("torch.")
    if bare.startswith("float8"):
        return "float8"
    return bare if bare in WIDTHS else _SPELLINGS.get(bare)


_SCALAR_TYPES = {
    "0": "int8",
    "1": "int8",
    "2": "int16",
    "3": "int32",
    "4": "int64",
    "5": "float16",
    "6": "float32",
    "7": "float64",
    "9": "complex64",
    "10": "complex128",
    "11": "bool",
    "15": "bfloat16",
    "23": "float8",
    "24": "float8",
    "25": "float8",
    "26": "float8",
}
"""Numbers of `c10::ScalarType`, as scalar arguments record a type."""


def scalar_type(text: str | None) -> str | None:
    """The type behind a recorded `dtype` argument, None where it is absent or unknown."""
    return _SCALAR_TYPES.get(text or "")


def parse_call(name: str, shapes: str, dtypes: str, scalars: str = "") -> OperatorCall:
    """A call from the JSON texts of its `Input Dims`, `Input type` and `Concrete Inputs`.

    Raises `ValueError` where a text is no list.
    """
    dims, types = _list(shapes), _list(dtypes)
    types = [*types, *[""] * (len(dims) - len(types))]
    element = _first_dtype(types)
    arguments = tuple(
        _argument(dim, str(kind), element) for dim, kind in zip(dims, types, strict=False)
    )
    return OperatorCall(name, arguments, tuple(str(s) for s in _list(scalars)))


def _list(text: str) -> list[object]:
    if not text:
        return []
    value = json.loads(text)
    if not isinstance(value, list):
        raise ValueError(f"{text[:40]!r} is no list")
    return value


def _first_dtype(types: list[object]) -> str | None:
    return next((d for kind in types if (d := dtype_name(str(kind)))), None)


def _argument(dim: object, kind: str, element: str | None) -> Tensor | tuple[Tensor, ...] | None:
    """Tensor lists record no element type: they take that of the call's first tensor."""
    if not isinstance(dim, list):
        return None
    if kind in ("TensorList", "GenericList") and dim and isinstance(dim[0], list):
        return tuple(Tensor(tuple(map(int, one)), element or "float32") for one in dim)
    dtype = dtype_name(kind)
    if dtype is None or not all(isinstance(n, int) for n in dim):
        return None
    return Tensor(tuple(dim), dtype)
