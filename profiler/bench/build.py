"""Models with seeded weights, their prompts and their sizes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy
import torch

from profiler.bench.configs import Plan
from profiler.bench.cost import Cost, cost_of, routing_of
from profiler.bench.devices import Device
from profiler.bench.inputs import make_inputs
from profiler.bench.loading import Loading
from profiler.bench.parallel import cache_parts, distribute, is_split
from profiler.bench.routing import apply_routing
from profiler.bench.savings import apply_recompute
from profiler.types import ModelFacts, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A model ready to run (this rank's part of it) and its inputs.

    Sizes and cost are the whole model's; its key-value cache is spread over `cache_parts` ranks.
    """

    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    vocabulary: int
    facts: ModelFacts
    cost: Cost | None
    experts: int | None
    loading: Loading
    cache_parts: int = 1


def seed_everything(seed: int) -> None:
    """Seed Python, numpy and torch on every device."""
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


def build(plan: Plan, spec: RunSpec, device: Device, *, rank: int = 0) -> Built:
    """The model of `plan` on `device` and prompts of random tokens, the same for the same seed.

    Every rank starts from the same weights. Ranks that split one model read the same
    prompts, others have prompts of their own.
    """
    seed_everything(spec.seed)
    split = is_split(spec)
    text = plan.config.get_text_config()
    inputs = make_inputs(plan, spec if split else replace(spec, seed=spec.seed + rank), device)
    stamps = [device.now()]
    if plan.checkpoint is not None:
        plan.skeleton()
        stamps.append(device.now())
    # A model is split because it does not fit one device: the whole one stays on the host.
    whole = plan.create(torch.device("cpu") if split else device.torch).eval()
    cost = None if plan.vision is not None else cost_of(text, whole)
    facts = describe(plan, whole, inputs.note)
    model = distribute(whole, spec, device)
    apply_recompute(model, spec)
    stamps.append(device.now())
    routing = routing_of(text)
    if routing is not None or spec.routing != "model":
        apply_routing(
            model,
            spec.routing,
            experts=routing.experts if routing else 0,
            chosen=routing.chosen if routing else 0,
            seed=spec.seed,
        )
    return Built(
        model=model,
        inputs=inputs.tensors,
        experts=routing.experts if routing else None,
        vocabulary=int(text.vocab_size),
        facts=facts,
        cost=cost,
        cache_parts=cache_parts(plan, model, spec),
        loading=Loading(*(later - earlier for earlier, later in pairwise(stamps))),
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
