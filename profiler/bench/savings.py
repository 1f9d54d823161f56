"""What training gives up in time to save memory: activations recomputed, state kept on the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

import torch
import transformers

from profiler.bench.configs import Plan
from profiler.errors import SpecError
from profiler.types import RunSpec


class Optimizer(Protocol):
    """The part of an optimiser that a training step calls."""

    def step(self) -> object: ...

    def zero_grad(self, set_to_none: bool = True) -> None: ...


class Recomputing(Protocol):
    """A transformers model that can recompute."""

    def activation_checkpointing_enable(self) -> None: ...


class HostAdamW:
    """AdamW with its moments and a copy of the weights in host memory.

    A step copies gradients to the host, updates there, and copies the weights
    back; the device holds weights and gradients only.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], *, lr: float) -> None:
        self._own = list(parameters)
        self._host = [torch.nn.Parameter(p.detach().to("cpu", copy=True)) for p in self._own]
        self._optimizer = torch.optim.AdamW(self._host, lr=lr)

    @torch.no_grad()
    def step(self) -> None:
        """Update every weight whose gradient is there."""
        pairs = list(zip(self._own, self._host, strict=True))
        for own, host in pairs:
            host.grad = None if own.grad is None else own.grad.to("cpu")
        self._optimizer.step()
        for own, host in pairs:
            own.copy_(host)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients on both sides, or zero the device's."""
        self._optimizer.zero_grad(set_to_none=True)
        for own in self._own:
            if set_to_none:
                own.grad = None
            elif own.grad is not None:
                own.grad.zero_()


def optimizer_of(model: torch.nn.Module, spec: RunSpec, *, lr: float) -> Optimizer:
    """AdamW over `model`, where `spec` wants it."""
    if spec.offload == "optimizer":
        return HostAdamW(model.parameters(), lr=lr)
    return torch.optim.AdamW(model.parameters(), lr=lr)


def check_savings(plan: Plan, spec: RunSpec) -> None:
    """Raise `SpecError` when the model cannot recompute; builds no weights."""
    if spec.recompute == "none":
        return
    with torch.random.fork_rng(devices=[]):
        skeleton = plan.skeleton()
    able = isinstance(skeleton, transformers.PreTrainedModel)
    if not able or not skeleton.supports_gradient_checkpointing:
        raise SpecError("spec.recompute is 'full'", f"{plan.name} does not support recomputation")


def apply_recompute(model: torch.nn.Module, spec: RunSpec) -> None:
    """Let every layer of `model` keep its input only and run forward again in backward."""
    if spec.recompute == "full":
        cast(Recomputing, model).activation_checkpointing_enable()
