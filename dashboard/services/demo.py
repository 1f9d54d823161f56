"""The first-start demo: two small models, each in the three scenarios, on the CPU."""

from __future__ import annotations

from dashboard.models import Run
from dashboard.services import catalog, runs
from profiler.types import SCENARIOS, RunSpec, Scenario

MODELS = ("llama-small", "qwen3-moe-small")


def queue_demo() -> list[int]:
    """Queue the demo when no run has ever been made; the ids of its runs."""
    if Run.objects.exists():
        return []
    wanted = [_spec(model, scenario) for model in MODELS for scenario in SCENARIOS]
    made = runs.create_runs(wanted, platform=catalog.ensure_platform(), user=None)
    return [run.pk for run in made]


def _spec(model: str, scenario: Scenario) -> RunSpec:
    return RunSpec(
        model=model,
        scenario=scenario,
        batch=1 if scenario == "decode" else 2,
        prompt_tokens=128,
        output_tokens=32,
        device=catalog.ensure_platform().device,
        iterations=10,
        warmup=3,
        profiled_steps=3,
    )
