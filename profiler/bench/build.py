"""Models with seeded weights, their prompts and their sizes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy
import torch

from profiler.bench.configs import Plan
from profiler.bench.cost import Cost, cost_of, routing_of
from profiler.bench.devices import Device
from profiler.bench.inputs import make_inputs
from profiler.bench.routing import apply_routing
from profiler.types import ModelFacts, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A model ready to run and its inputs."""

    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    vocabulary: int
    facts: ModelFacts
    cost: Cost | None
    experts: int | None


def seed_everything(seed: int) -> None:
    """Seed Python, numpy and torch on every device."""
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


def build(plan: Plan, spec: RunSpec, device: Device, *, rank: int = 0) -> Built:
    """The model of `plan` on `device` and prompts of random tokens, the same for the same seed.

    Every rank gets the same weights and prompts of its own.
    """
    seed_everything(spec.seed)
    model = plan.create(device.torch).eval()
    routing = routing_of(plan.config.get_text_config())
    if routing is not None or spec.routing != "model":
        apply_routing(
            model,
            spec.routing,
            experts=routing.experts if routing else 0,
            chosen=routing.chosen if routing else 0,
            seed=spec.seed,
        )
    vocabulary = int(plan.config.get_text_config().vocab_size)
    inputs = make_inputs(plan, replace(spec, seed=spec.seed + rank), device)
    return Built(
        model=model,
        inputs=inputs.tensors,
        experts=routing.experts if routing else None,
        vocabulary=vocabulary,
        facts=describe(plan, model, inputs.note),
        cost=None if plan.vision is not None else cost_of(plan.config.get_text_config(), model),
    )


def describe(plan: Plan, model: torch.nn.Module, inputs: str) -> ModelFacts:
    """Sizes counted from the parameters; shared ones count once."""
    parameters = list(model.parameters())
    config = plan.config.to_diff_dict()
    return ModelFacts(
        name=plan.name,
        architecture=plan.architecture,
        parameters=sum(p.numel() for p in parameters),
        active_parameters=active_parameters(plan, model),
        weight_bytes=sum(p.numel() * p.element_size() for p in parameters),
        config={key: config[key] for key in sorted(config)},
        inputs=inputs,
        layers=plan.layers,
        full_layers=plan.full_layers,
    )


def active_parameters(plan: Plan, model: torch.nn.Module) -> int | None:
    """Parameters one token passes through, or None for a model without routed experts."""
    routing = routing_of(plan.config.get_text_config())
    if routing is None:
        return None
    named = list(model.named_parameters())
    total = sum(p.numel() for _, p in named)
    routed = sum(p.numel() for name, p in named if ".experts." in name)
    return total - routed + routed * routing.chosen // routing.experts
