"""The built-in models: names, titles and configurations. Loads no torch."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

FOLDER = Path(__file__).parent / "bench" / "models"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One built-in model. `config` is the file with its transformers configuration."""

    name: str
    title: str
    architecture: str
    about: str
    config: Path

    def read_config(self) -> dict[str, object]:
        """The configuration, as a transformers `config.json` holds it."""
        return msgspec.json.decode(self.config.read_bytes(), type=dict[str, object])


def _read() -> Mapping[str, ModelEntry]:
    tables = tomllib.loads((FOLDER / "catalog.toml").read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            name: ModelEntry(
                name=name,
                title=table["title"],
                architecture=table["architecture"],
                about=table["about"],
                config=FOLDER / f"{name}.json",
            )
            for name, table in tables.items()
        }
    )


BUILTIN: Mapping[str, ModelEntry] = _read()
"""Every built-in model by name, in the order lists show them."""
