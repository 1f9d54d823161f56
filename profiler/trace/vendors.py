"""The rules of `vendors.toml`, compiled once."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from profiler.trace.kinds import Kind


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one vendor's traces are recognised and what its host calls are named."""

    name: str
    devices: re.Pattern[str]
    categories: frozenset[str]
    processes: frozenset[str]
    runtime: re.Pattern[str]
    launch: re.Pattern[str]
    graph: re.Pattern[str]
    blocking: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything the engine knows about names of categories, arguments and events."""

    kinds: dict[str, Kind]
    processes: dict[str, Kind]
    arguments: dict[str, tuple[str, ...]]
    scalars: frozenset[str]
    names: dict[str, re.Pattern[str]]
    vendors: tuple[Vendor, ...]
    operators: dict[str, str]

    def is_launch(self, name: str) -> bool:
        """Whether a runtime call of this name puts work on a device."""
        return any(v.launch.search(name) for v in self.vendors)

    def is_graph(self, name: str) -> bool:
        """Whether one call of this name starts many kernels."""
        return any(v.graph.search(name) for v in self.vendors)

    def is_blocking(self, name: str) -> bool:
        """Whether the host waits inside a call of this name for the device."""
        return any(v.blocking.search(name) for v in self.vendors)


_NEVER = r"(?!)"


def _vendor(block: dict[str, object]) -> Vendor:
    def pattern(key: str) -> re.Pattern[str]:
        return re.compile(str(block.get(key, _NEVER)))

    def names(key: str) -> frozenset[str]:
        found = block.get(key, [])
        return frozenset(str(item) for item in found) if isinstance(found, list) else frozenset()

    return Vendor(
        name=str(block["name"]),
        devices=pattern("devices"),
        categories=names("categories"),
        processes=names("processes"),
        runtime=pattern("runtime"),
        launch=pattern("launch"),
        graph=pattern("graph"),
        blocking=pattern("blocking"),
    )


def _by_kind(table: dict[str, list[str]]) -> dict[str, Kind]:
    return {name: Kind[kind.upper()] for kind, names in table.items() for name in names}


@cache
def rules() -> Rules:
    """The compiled rules; reading them costs a millisecond, so it happens once a process."""
    text = resources.files("profiler.trace").joinpath("vendors.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return Rules(
        kinds=_by_kind(data["kinds"]),
        processes=_by_kind(data["processes"]),
        arguments={column: tuple(names) for column, names in data["arguments"].items()},
        scalars=frozenset(data["scalars"]["operators"]),
        names={name: re.compile(pattern) for name, pattern in data["names"].items()},
        vendors=tuple(_vendor(block) for block in data["vendor"]),
        operators=dict(data["operators"]),
    )
