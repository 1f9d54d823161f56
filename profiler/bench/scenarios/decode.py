"""Decode: whole generations with a key-value cache, every token on the host as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch

from profiler.bench.scenarios.base import Bench, PhaseMark, Stamps
from profiler.bench.scenarios.engine import Engine, check_logits
from profiler.bench.summary import median, summarise
from profiler.bench.utilisation import read_metrics
from profiler.types import Metric


class Decode:
    """A unit is one generation of `output_tokens` tokens for each sequence, end tokens ignored.

    Its stamps are (start, token 1 on host, token 2 on host, ...): one more
    than tokens. The sequences of a batch advance together.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._engine = Engine(bench)

    @torch.inference_mode()
    def run(self) -> Stamps:
        engine, now = self._engine, self._bench.device.now
        stamps = [now()]
        engine.prefill()
        stamps.append(now())
        for _ in range(self._bench.spec.output_tokens - 1):
            engine.step()
            stamps.append(now())
        return tuple(stamps)

    @torch.inference_mode()
    def check(self) -> None:
        check_logits(self._engine)

    @torch.inference_mode()
    def profile(self, steps: int, phase: PhaseMark, advance: Callable[[], None]) -> list[int]:
        """One generation: prefill and one decode step are the warm-up, each further one a step."""
        now = self._bench.device.now
        self._engine.prefill()
        self._engine.step()
        advance()
        durations = []
        for _ in range(steps):
            start = now()
            with phase("decode"):
                self._engine.step()
            durations.append(now() - start)
            advance()
        return durations

    def profiled_steps(self, asked: int) -> int:
        return min(asked, self._bench.spec.output_tokens - 1)

    def step_times(self, units: Sequence[Stamps]) -> list[int]:
        """The gaps between tokens; a gap never spans two generations."""
        return [later - earlier for unit in units for earlier, later in pairwise(unit[1:])]

    def metrics(self, units: Sequence[Stamps]) -> list[Metric]:
        spec, method = self._bench.spec, self._bench.device.timing_method
        gaps = self.step_times(units)
        spans = [unit[-1] - unit[1] for unit in units]
        steps = spec.output_tokens - 1
        per_token = [span / steps for span in spans]
        emitted = spec.batch * steps
        return [
            summarise("ttft", [unit[1] - unit[0] for unit in units], phase="timed", method=method),
            summarise("tpot", per_token, phase="timed", method=f"{method}; one per generation"),
            summarise(
                "itl", gaps, phase="timed", method=f"{method}; every gap of every generation"
            ),
            summarise(
                "decode_rate",
                [emitted / (span * 1e-9) for span in spans],
                value=emitted * len(units) / (sum(spans) * 1e-9),
                phase="timed",
                method="tokens after the first of all sequences / total decode time",
            ),
            summarise(
                "decode_rate_user",
                [1e9 / time for time in per_token],
                value=1e9 / median(per_token),
                phase="timed",
                method="1 / median time per output token",
            ),
            *read_metrics(self._bench, spans, self._cache_bytes()),
        ]

    @torch.inference_mode()
    def _cache_bytes(self) -> float:
        """Bytes of the whole key-value cache at mid-generation: the mean of its start and end."""
        full = self._engine.cache_bytes()
        self._engine.prefill()
        return (self._engine.cache_bytes() + full) / 2 * self._bench.cache_parts
