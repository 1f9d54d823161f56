"""Which experts tokens go to: as the model decides, or as a real mix of tokens would spread.

Random weights send most tokens to few experts, which makes a mixture of
experts look cheaper or dearer than it is. `uniform` deals tokens to experts in
turn; `skewed` draws them by Zipf's law, seeded. The router still computes; only
its choice is replaced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch

from profiler.errors import SpecError
from profiler.types import Routing, RoutingReport

Experts = Callable[..., torch.Tensor]

ZIPF_EXPONENT = 1.0
TABLE_TOKENS = 65_536
"""Assignments dealt before they repeat."""


def expert_modules(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """The modules that compute all routed experts of a layer, by path."""
    return {path: module for path, module in model.named_modules() if path.endswith(".experts")}


def apply_routing(
    model: torch.nn.Module, routing: Routing, *, experts: int, chosen: int, seed: int
) -> None:
    """Replace the choice of experts in every layer of `model`; nothing for `model`."""
    if routing == "model":
        return
    layers = expert_modules(model)
    if not layers:
        raise SpecError(f"spec.routing is {routing!r}", "the model routes no tokens; use model")
    device = next(model.parameters()).device
    for layer, module in enumerate(layers.values()):
        table = assignments(routing, experts=experts, chosen=chosen, seed=seed + layer)
        forward = module.forward
        module.forward = Dealt(forward, table.to(device))


def assignments(routing: Routing, *, experts: int, chosen: int, seed: int) -> torch.Tensor:
    """`TABLE_TOKENS` x `chosen` expert numbers, no expert twice in a row."""
    if routing == "uniform":
        return torch.arange(TABLE_TOKENS * chosen).reshape(TABLE_TOKENS, chosen) % experts
    generator = torch.Generator().manual_seed(seed)
    weights = torch.arange(1, experts + 1, dtype=torch.float64) ** -ZIPF_EXPONENT
    rank = torch.randperm(experts, generator=generator)
    drawn = torch.multinomial(weights.expand(TABLE_TOKENS, -1), chosen, generator=generator)
    return rank[drawn]


class Dealt:
    """An experts call whose expert numbers come from `table`, on from where the last one ended."""

    def __init__(self, forward: Experts, table: torch.Tensor) -> None:
        self.forward = forward
        self._table = table
        self._start = 0

    def __call__(self, *arguments: torch.Tensor) -> torch.Tensor:
        given = list(arguments)
        position = _choice_position(arguments)
        tokens = given[position].shape[0]
        rows = torch.arange(self._start, self._start + tokens, device=self._table.device)
        given[position] = self._table[rows % TABLE_TOKENS].to(given[position].dtype)
        self._start = (self._start + tokens) % TABLE_TOKENS
        return self.forward(*given)


class Counting:
    """An experts call that counts the tokens each expert gets."""

    def __init__(self, forward: Experts, experts: int) -> None:
        self.forward = forward
        self.counts = torch.zeros(experts, dtype=torch.long)

    def __call__(self, *arguments: torch.Tensor) -> torch.Tensor:
        chosen = arguments[_choice_position(arguments)].flatten().cpu()
        experts = len(self.counts)
        self.counts += torch.bincount(chosen, minlength=experts)[:experts]
        return self.forward(*arguments)


@contextlib.contextmanager
def counted(
    model: torch.nn.Module, routing: Routing, experts: int
) -> Iterator[list[RoutingReport]]:
    """Count tokens per expert of every forward call inside; the report is there at the end."""
    # A dealt layer is counted behind the deal, where the tokens really go.
    places: dict[str, Dealt | torch.nn.Module] = {}
    for path, module in expert_modules(model).items():
        own = vars(module).get("forward")
        places[path] = own if isinstance(own, Dealt) else module
    instance_level = {path for path, place in places.items() if "forward" in vars(place)}
    counters = {path: Counting(place.forward, experts) for path, place in places.items()}
    report: list[RoutingReport] = []
    try:
        for path, place in places.items():
            place.forward = counters[path]
        yield report
    finally:
        for path, place in places.items():
            if path in instance_level:
                place.forward = counters[path].forward
            else:
                del place.forward
    report.append(_report(routing, {path: c.counts.tolist() for path, c in counters.items()}))


def _report(routing: Routing, counts: dict[str, list[int]]) -> RoutingReport:
    busiest = [max(count) * len(count) / sum(count) for count in counts.values() if sum(count)]
    hit = [sum(1 for tokens in count if tokens) / len(count) for count in counts.values()]
    return RoutingReport(
        mode=routing,
        tokens_per_expert={path: tuple(count) for path, count in counts.items()},
        hit_share=min(hit, default=0.0),
        max_over_mean=max(busiest, default=0.0),
    )


def _choice_position(arguments: tuple[torch.Tensor, ...]) -> int:
    """Which argument of an experts call holds expert numbers: the first of whole numbers."""
    return next(i for i, tensor in enumerate(arguments) if not tensor.is_floating_point())
