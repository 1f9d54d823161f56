"""The next token of each sequence from its logits."""

from __future__ import annotations

import torch

from profiler.types import RunSpec


class Sampler:
    """Greedy, or drawn from the tokens that hold `top_p` of the probability at a temperature.

    Draws start again from the run's seed with `restart`, so every generation
    of a run, and of every run with that seed, has the same tokens.
    """

    def __init__(self, spec: RunSpec, device: torch.device) -> None:
        self._spec = spec
        self._generator = None if spec.sampling == "greedy" else torch.Generator(device)

    def restart(self) -> None:
        """Begin a generation."""
        if self._generator is not None:
            self._generator.manual_seed(self._spec.seed)

    def next(self, logits: torch.Tensor) -> torch.Tensor:
        """The next token of each sequence, (batch, 1), from `logits` (batch, 1, vocabulary)."""
        if self._generator is None:
            return logits.argmax(dim=-1)
        shares = torch.softmax(logits[:, -1].float() / self._spec.temperature, dim=-1)
        if self._spec.top_p < 1:
            shares = nucleus(shares, self._spec.top_p)
        return torch.multinomial(shares, 1, generator=self._generator)


def nucleus(shares: torch.Tensor, top_p: float) -> torch.Tensor:
    """`shares` (batch, vocabulary) with all but the fewest that reach `top_p` set to zero."""
    ordered, where = shares.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered >= top_p, 0)
    return torch.zeros_like(shares).scatter(-1, where, kept)
