"""Where the shared traces are, for tests that use them when they exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces"
GOLDEN = TRACES / "golden"
MALFORMED = TRACES / "malformed"

needs_traces = pytest.mark.skipif(not GOLDEN.is_dir(), reason="the shared traces are not here")


def golden_names() -> list[str]:
    """Names of all traces with independent golden values."""
    return sorted(p.name.removesuffix(".independent.json") for p in GOLDEN.glob("*.independent.*"))


def golden(name: str, kind: str = "independent") -> dict[str, object]:
    """One golden file."""
    loaded: dict[str, object] = json.loads((GOLDEN / f"{name}.{kind}.json").read_text())
    return loaded
