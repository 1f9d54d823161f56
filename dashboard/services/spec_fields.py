"""The fields of a run specification as pages show them, read off `RunSpec` itself.

A field that the profiler gains appears in forms and matrices by itself; the
words here only make the known ones friendlier.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, NoneType
from typing import Literal, get_args, get_origin, get_type_hints

from profiler import spec as specs
from profiler.types import RunSpec

Kind = Literal["whole", "number", "yes_no", "choice", "choices", "text", "table"]
Value = str | int | float | bool | list[str] | dict[str, object]

NOT_ASKED = frozenset({"schema", "device"})
"""The schema is ours; the device is the platform's."""

_WORDS: dict[str, tuple[str, str]] = {
    "model": ("Model", "Built-in models"),
    "scenario": ("Scenario", ""),
    "batch": ("Batch", ""),
    "prompt_tokens": ("Prompt tokens", ""),
    "output_tokens": ("Output tokens", "Tokens each sequence generates in decode"),
    "dtype": ("Number type", ""),
    "iterations": ("Timed iterations", ""),
    "warmup": ("Warm-up iterations", ""),
    "warmup_max": ("Warm-up at most", "Goes on until five differ little; empty: a fixed number"),
    "profiled_steps": ("Profiled steps", "0 records no trace"),
    "seed": ("Seed", "Of the weights and the inputs"),
    "threads": ("CPU threads", "Empty: the library's own choice"),
    "config": ("Configuration", "The content of a transformers config.json"),
    "checkpoint": (
        "Checkpoint folder",
        "Full path on the worker: config.json and safetensors",
    ),
    "factory": ("Factory", "path/file.py:function inside the repository"),
    "layers": ("Layers", "Cuts the model to its first layers; empty: all"),
    "peak_flops": ("Peak FLOP/s", "Of the device for the number type; for MFU"),
    "peak_bandwidth": ("Peak bandwidth, bytes/s", "Of the device's memory; for MBU"),
    "compile": ("Compile mode", ""),
    "compile_fallback": ("Go on eager when compiling fails", "The run says so"),
    "profile": ("Record under the profiler", "Each makes profiled steps slower and traces larger"),
    "micro": ("Operators run alone", "The hottest ones, with cold and warm caches; 0: none"),
    "attention": ("Attention", "auto: what transformers chooses for the model"),
    "routing": ("Routing of experts", "Random weights send every token to the same experts"),
    "ranks": ("Ranks", "Processes that work together; more than 1 needs a parallel mode"),
    "parallel": ("Parallel mode", ""),
    "recompute": ("Recompute activations", "Training: full keeps only the input of each layer"),
    "offload": (
        "Offload to host memory",
        "Training: optimizer its moments, cpu all shards of fsdp",
    ),
    "sampling": ("Next token", "Decode: the likeliest, or drawn"),
    "temperature": ("Temperature", "Of drawn tokens"),
    "top_p": ("Top p", "Draws from the fewest tokens that hold this share"),
}


_SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Model", ("model", "config", "checkpoint", "factory", "layers", "routing")),
    ("Workload", ("scenario", "batch", "prompt_tokens", "output_tokens", "dtype")),
    ("Graph", ("attention", "compile", "compile_fallback")),
    ("Several ranks", ("ranks", "parallel")),
    ("Sampling in decode", ("sampling", "temperature", "top_p")),
    ("Memory in training", ("recompute", "offload")),
    (
        "Measuring",
        (
            "iterations",
            "warmup",
            "warmup_max",
            "profiled_steps",
            "profile",
            "micro",
            "seed",
            "threads",
        ),
    ),
    ("Peaks of the device", ("peak_flops", "peak_bandwidth")),
)
_SIZES = frozenset({"model", "scenario", "batch", "prompt_tokens", "output_tokens", "dtype"})
VARIANT_CHARS = 200
_WORD_CHARS = 24
REST = "More"
"""The section of fields that no other one names: those the profiler gained since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecField:
    """One field: what it may hold and how it is called. `optional` may be left empty."""

    name: str
    title: str
    about: str
    kind: Kind
    default: object
    required: bool
    optional: bool
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None

    @property
    def allowed(self) -> str:
        """What it may hold, in words."""
        if self.name == "compile":
            modes = ", ".join((specs.EAGER, *specs.INDUCTOR_MODES))
            return f"{modes} or {specs.BACKEND_PREFIX}NAME"
        if self.kind == "whole" and self.low is not None and self.high is not None:
            return f"{self.low:,} to {self.high:,}"
        return {
            "whole": "a whole number",
            "number": "a positive number",
            "yes_no": "true or false",
            "choice": ", ".join(self.choices),
            "choices": f"a list of {', '.join(self.choices)}",
            "text": "text",
            "table": "a table, as config.json holds it",
        }[self.kind]

    def accepts(self, value: object) -> bool:
        """Whether `value` can stand in a specification, this field looked at alone."""
        if self.kind == "whole":
            whole = isinstance(value, int) and not isinstance(value, bool)
            return whole and self._in_range(value)
        if self.kind == "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return False
            return math.isfinite(value) and value > 0
        if self.kind == "choices":
            return isinstance(value, list) and all(one in self.choices for one in value)
        if self.kind == "choice":
            return isinstance(value, str) and value in self.choices
        types: dict[str, type] = {"yes_no": bool, "text": str, "table": dict}
        return isinstance(value, types[self.kind])

    def _in_range(self, value: object) -> bool:
        assert isinstance(value, int)
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@cache
def spec_fields() -> Mapping[str, SpecField]:
    """Every field that people may set, in the order of `RunSpec`."""
    hints = get_type_hints(RunSpec)
    found = [
        _field(field, hints[field.name])
        for field in dataclasses.fields(RunSpec)
        if field.name not in NOT_ASKED
    ]
    return MappingProxyType({field.name: field for field in found})


def sections() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The names of all fields by section, unknown ones in the last."""
    known = spec_fields()
    placed = {name for _, names in _SECTIONS for name in names}
    rest = tuple(name for name in known if name not in placed)
    found = [(title, tuple(n for n in names if n in known)) for title, names in _SECTIONS]
    return (*found, (REST, rest)) if rest else tuple(found)


def variant_of(spec: RunSpec) -> str:
    """What makes the workload of `spec` another one, beside its sizes: `compile=default ranks=2`.

    Long values stand as the first letters of their hash.
    """
    words = [
        f"{name}={_word(getattr(spec, name))}"
        for name, field in spec_fields().items()
        if name not in _SIZES and _sets_apart(spec, field)
    ]
    return " ".join(words)[:VARIANT_CHARS]


def _sets_apart(spec: RunSpec, field: SpecField) -> bool:
    """Whether the workload would be another one with the default of `field`."""
    plain = dataclasses.replace(spec, **{field.name: field.default})  # type: ignore[arg-type]
    return specs.workload_hash(plain) != specs.workload_hash(spec)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if len(text) <= _WORD_CHARS and re.fullmatch(r"[\w.:+-]+", text):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _field(field: dataclasses.Field[object], hint: object) -> SpecField:
    bare = [part for part in get_args(hint) if part is not NoneType]
    optional = NoneType in get_args(hint)
    kind, choices = _kind(bare[0] if optional else hint)
    title, about = _WORDS.get(field.name, (field.name.replace("_", " ").capitalize(), ""))
    low, high = specs.LIMITS.get(field.name, (None, None))
    required = field.default is dataclasses.MISSING
    return SpecField(
        name=field.name,
        title=title,
        about=about,
        kind=kind,
        default=None if required else field.default,
        required=required,
        optional=optional,
        choices=choices,
        low=low,
        high=high,
    )


def _kind(hint: object) -> tuple[Kind, tuple[str, ...]]:
    """How a type of `RunSpec` is shown; a new kind of type is met by a test, not by people."""
    if get_origin(hint) is Literal:
        return "choice", get_args(hint)
    if get_origin(hint) is tuple:
        return "choices", get_args(get_args(hint)[0])
    if get_origin(hint) is dict:
        return "table", ()
    plain: dict[object, Kind] = {bool: "yes_no", int: "whole", float: "number", str: "text"}
    return plain[hint], ()
