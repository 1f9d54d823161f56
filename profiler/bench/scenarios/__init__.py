"""The scenarios by name."""

from __future__ import annotations

from profiler.bench.scenarios.base import Bench, Scenario
from profiler.bench.scenarios.decode import Decode
from profiler.bench.scenarios.prefill import Prefill
from profiler.bench.scenarios.training import Training
from profiler.types import Scenario as Name

REGISTRY: dict[Name, type[Scenario]] = {
    "prefill": Prefill,
    "decode": Decode,
    "training": Training,
}

__all__ = ["REGISTRY", "Bench", "Scenario"]
