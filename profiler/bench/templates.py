"""Workload matrices: named, versioned files that expand to runs. Loads no torch.

A template holds `fields` that every run shares and `axes` whose values are
combined with one another; both use the names of `RunSpec`.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import msgspec

from profiler.errors import SpecError
from profiler.spec import check, check_model
from profiler.types import RunSpec

FOLDER = Path(__file__).parent / "templates"
RUNS_LIMIT = 200
"""Most runs one template may expand to."""

Value = str | int | float | bool | list[str] | dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A matrix of workloads; `version` rises whenever its runs change."""

    name: str
    version: int
    title: str
    about: str = ""
    fields: dict[str, Value] = field(default_factory=dict)
    axes: dict[str, list[Value]] = field(default_factory=dict)


def parse(raw: bytes, *, kind: str = "toml") -> Template:
    """A template from TOML or JSON bytes, every run of it checked; `SpecError` names what fails."""
    try:
        tree = tomllib.loads(raw.decode()) if kind == "toml" else msgspec.json.decode(raw)
        template = msgspec.convert(tree, Template, strict=True)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise SpecError(f"template cannot be read: {error}", "see the shipped templates") from None
    expand(template)
    return template


def expand(template: Template) -> tuple[RunSpec, ...]:
    """Every run of `template` in the order of its axes; `SpecError` when one cannot work."""
    known = {field.name for field in dataclasses.fields(RunSpec)}
    unknown = sorted((template.fields.keys() | template.axes.keys()) - known)
    twice = sorted(template.fields.keys() & template.axes.keys())
    if unknown or twice:
        what = f"has no field {unknown[0]}" if unknown else f"gives {twice[0]} twice"
        raise SpecError(f"template {template.name}: a run {what}", "see the fields of a spec")
    count = size(template)
    if not 1 <= count <= RUNS_LIMIT:
        raise SpecError(
            f"template {template.name} expands to {count} runs", f"allowed: 1 to {RUNS_LIMIT}"
        )
    combinations = itertools.product(*template.axes.values())
    return tuple(
        _run(template, dict(zip(template.axes, values, strict=True))) for values in combinations
    )


def size(template: Template) -> int:
    """How many runs `template` expands to."""
    count = 1
    for values in template.axes.values():
        count *= len(values)
    return count


def shuffled(specs: Sequence[RunSpec], seed: int) -> tuple[RunSpec, ...]:
    """`specs` in the random order of `seed`, so that drift over time favours no workload."""
    order = list(specs)
    random.Random(seed).shuffle(order)
    return tuple(order)


def _run(template: Template, chosen: dict[str, Value]) -> RunSpec:
    try:
        spec = msgspec.convert(template.fields | chosen, RunSpec, strict=True)
    except msgspec.ValidationError as error:
        raise SpecError(f"template {template.name}: {error}", "see the fields of a spec") from None
    return check_model(check(spec))


def _shipped() -> Mapping[str, Template]:
    found = [parse(path.read_bytes()) for path in sorted(FOLDER.glob("*.toml"))]
    return MappingProxyType({template.name: template for template in found})


SHIPPED: Mapping[str, Template] = _shipped()
"""The templates that come with the project, by name."""
