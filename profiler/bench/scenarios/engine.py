"""The forward calls that prefill and decode share."""

from __future__ import annotations

import torch

from profiler.bench.scenarios.base import Bench
from profiler.bench.scenarios.sampling import Sampler
from profiler.errors import NonFiniteError


class Engine:
    """A minimal inference engine: prompt in, tokens out, one key-value cache."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.cache: object = None
        self.tokens = torch.empty(0, dtype=torch.long)
        self._sampler = Sampler(bench.spec, bench.device.torch)

    def prefill(self) -> list[int]:
        """Read the prompts with a fresh cache; the first token of each sequence, on the host."""
        self.cache = None
        self._sampler.restart()
        return self._forward(self.bench.inputs)

    def step(self) -> list[int]:
        """One decode step: the next token of each sequence, on the host."""
        return self._forward({"input_ids": self.tokens})

    def logits(self) -> torch.Tensor:
        """Logits of the last prompt position, (batch, 1, vocabulary)."""
        self.cache = None
        return self._call(self.bench.inputs)

    def cache_bytes(self) -> int:
        """Bytes of every tensor the cache holds now: keys, values and recurrent states."""
        layers = getattr(self.cache, "layers", [])
        held = [value for layer in layers for value in vars(layer).values()]
        return sum(t.numel() * t.element_size() for t in held if isinstance(t, torch.Tensor))

    def _forward(self, inputs: dict[str, torch.Tensor]) -> list[int]:
        self.tokens = self._sampler.next(self._call(inputs)[:, -1:])
        return [int(token) for token in self.tokens.flatten().tolist()]

    def _call(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        output = self.bench.model(**inputs, cache=self.cache, use_cache=True, logits_to_keep=1)
        self.cache = output.cache
        logits: torch.Tensor = output.logits
        return logits


def check_logits(engine: Engine) -> None:
    """One prefill gives finite logits of the right shape and a token of the vocabulary."""
    bench = engine.bench
    logits = engine.logits()
    expected = (bench.spec.batch, 1, bench.vocabulary)
    if tuple(logits.shape) != expected:
        raise AssertionError(f"logits have shape {tuple(logits.shape)}, expected {expected}")
    require_finite(logits, "logits of the first token", bench.spec.dtype)
    tokens = engine.step()
    if not all(0 <= token < bench.vocabulary for token in tokens):
        raise AssertionError(f"generated tokens {tokens[:8]} lie outside the vocabulary")


def require_finite(values: torch.Tensor, what: str, dtype: str) -> None:
    """Raise `NonFiniteError` naming `what` when `values` hold NaN or infinity."""
    broken = int((~torch.isfinite(values)).sum())
    if broken:
        raise NonFiniteError(
            f"{what}: {broken} of {values.numel()} values are NaN or infinite in {dtype}",
            "try bfloat16 or float32, or look for an overflow in the model",
        )
