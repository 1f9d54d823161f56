"""Rates against what a model needs, and against the device's peaks where those are known."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.bench.cost import CONVENTION
from profiler.bench.scenarios.base import Bench
from profiler.bench.summary import median, summarise
from profiler.types import Metric, RunSpec


def flop_metrics(bench: Bench, times_ns: Sequence[int], *, training: bool) -> list[Metric]:
    """`flop_rate`, and `mfu` when the spec gives a peak; none when the cost is unknown.

    Prefill computes logits of the last token only, training of every token. Ranks
    that train have sequences of their own; the peak is that of all ranks together.
    """
    spec, cost = bench.spec, bench.cost
    if cost is None:
        return []
    forward = cost.forward_flops(
        sequences=spec.batch * (spec.ranks if training else 1),
        tokens=spec.prompt_tokens,
        logits=spec.prompt_tokens if training else 1,
    )
    flops = 3 * forward if training else forward
    rates = [flops / (time * 1e-9) for time in times_ns]
    return _rate_and_share(
        ("flop_rate", "mfu"),
        rates,
        value=flops / (median(times_ns) * 1e-9),
        peak=_of_all(spec, spec.peak_flops),
        method=f"{flops:.4g} model FLOPs / median time; {CONVENTION}",
    )


def read_metrics(bench: Bench, spans_ns: Sequence[int], cache_bytes: float) -> list[Metric]:
    """`read_rate`, and `mbu` when the spec gives a peak; `spans_ns` are decode times of units."""
    spec, cost = bench.spec, bench.cost
    if cost is None:
        return []
    step = cost.step_bytes(sequences=spec.batch, cache_bytes=cache_bytes)
    steps = spec.output_tokens - 1
    rates = [step * steps / (span * 1e-9) for span in spans_ns]
    return _rate_and_share(
        ("read_rate", "mbu"),
        rates,
        value=step * steps * len(spans_ns) / (sum(spans_ns) * 1e-9),
        peak=_of_all(spec, spec.peak_bandwidth),
        method=f"{step:.4g} bytes per step ({cache_bytes:.4g} of cache) / mean step time",
    )


def _of_all(spec: RunSpec, peak: float | None) -> float | None:
    """The peak of every rank's device together."""
    return None if peak is None else peak * spec.ranks


def _rate_and_share(
    names: tuple[str, str],
    rates: Sequence[float],
    *,
    value: float,
    peak: float | None,
    method: str,
) -> list[Metric]:
    metrics = [summarise(names[0], rates, value=value, phase="timed", method=method)]
    if peak is not None:
        shares = [rate / peak for rate in rates]
        metrics.append(
            summarise(
                names[1],
                shares,
                value=value / peak,
                phase="timed",
                method=f"{method} / peak of {peak:.4g} per second",
            )
        )
    return metrics
