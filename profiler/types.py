"""Frozen dataclasses shared by every layer. Times are integer nanoseconds, sizes bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SCHEMA = 1

Scenario = Literal["prefill", "decode", "training"]
DType = Literal["float32", "bfloat16", "float16"]
Direction = Literal["lower", "higher"]
Phase = Literal["load", "correctness", "warmup", "timed", "memory", "profiled", "micro", "depth"]

ProfileOption = Literal["shapes", "flops", "memory", "stacks", "modules"]

Parallel = Literal["none", "data", "fsdp", "tensor", "pipeline"]
Recompute = Literal["none", "full"]
Offload = Literal["none", "optimizer", "cpu"]
Sampling = Literal["greedy", "multinomial"]
Attention = Literal["auto", "sdpa", "eager", "flex_attention", "flash_attention_2"]
Routing = Literal["model", "uniform", "skewed"]

SCENARIOS: tuple[Scenario, ...] = ("prefill", "decode", "training")
DTYPES: tuple[DType, ...] = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One workload and how it is measured.

    `batch` sequences of `prompt_tokens` tokens; decode then generates
    `output_tokens` per sequence, training trains on the prompt tokens.
    `iterations` timed repetitions of the scenario's unit (one prefill, one
    whole generation, one training step) follow the warm-up; `profiled_steps`
    are recorded under the profiler in a phase of their own.

    `model` names a built-in model. With one of `config` (the content of a
    transformers `config.json`), `checkpoint` (a local folder with safetensors)
    or `factory` (`path/file.py:function` in the current folder) it is a label
    of its own. `layers` cuts the model to its first layers.

    Warm-up runs `warmup` units; with `warmup_max` it goes on until the last
    five differ little, at most that many. `peak_flops` (FLOP/s for the dtype)
    and `peak_bandwidth` (bytes/s) are the device's, for utilisation.

    `compile` is `eager`, a mode of inductor (`default`, `reduce-overhead`,
    `max-autotune`) or `backend:NAME`; a failure ends the run unless
    `compile_fallback` lets it go on eager. `profile` says what the profiled
    phase records beside the operators.

    `attention` is transformers' implementation, `auto` its own choice.
    `routing` replaces the experts a mixture of experts chooses: `uniform` deals
    tokens in turn, `skewed` draws them by Zipf's law.

    With `ranks` above 1 that many processes work together. Training: each on
    `batch` sequences of its own, `data` copies the model, `fsdp` shards it.
    Inference: all on the same `batch` sequences, `tensor` splits every layer,
    `pipeline` (prefill only) gives each rank whole layers.

    Training with `recompute` `full` keeps only the input of each layer for the
    backward pass. `offload` keeps state in host memory: `optimizer` the moments
    of AdamW, `cpu` (with `fsdp`) every shard of weights, gradients and moments.

    Decode takes the likeliest token, or with `sampling` `multinomial` draws one,
    seeded, at `temperature` from the fewest tokens that hold `top_p`.
    """

    model: str
    scenario: Scenario
    batch: int = 1
    prompt_tokens: int = 128
    output_tokens: int = 32
    dtype: DType = "float32"
    device: str = "cpu"
    iterations: int = 10
    warmup: int = 3
    profiled_steps: int = 3
    seed: int = 0
    threads: int | None = None
    config: dict[str, object] | None = None
    checkpoint: str | None = None
    factory: str | None = None
    layers: int | None = None
    warmup_max: int | None = None
    peak_flops: float | None = None
    peak_bandwidth: float | None = None
    compile: str = "eager"
    compile_fallback: bool = False
    profile: tuple[ProfileOption, ...] = ("shapes", "modules")
    attention: Attention = "auto"
    routing: Routing = "model"
    ranks: int = 1
    parallel: Parallel = "none"
    micro: int = 0
    recompute: Recompute = "none"
    offload: Offload = "none"
    sampling: Sampling = "greedy"
    temperature: float = 1.0
    top_p: float = 1.0
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a metric means, stated once for pages, API, CSV and docs."""

    name: str
    title: str
    unit: str
    direction: Direction
    meaning: str
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One measured quantity: `value` is the median of `samples` unless `method` says otherwise."""

    name: str
    unit: str
    direction: Direction
    definition: int
    phase: Phase
    method: str
    value: float
    n: int
    samples: tuple[float, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    iqr: float | None = None
    cov: float | None = None
    percentiles: dict[str, float] = field(default_factory=dict)


EXACT_ONLY = frozenset({"host", "git_commit", "git_dirty", "daybreak", "cpu_affinity"})
"""Fields of an environment that tell two runs apart without making their numbers incomparable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The fingerprint of one run.

    `comparable_hash` covers what changes numbers (versions, device, threads,
    variables); `exact_hash` covers every field. `missing` names what this
    machine could not tell.
    """

    fields: dict[str, str]
    missing: tuple[str, ...]
    comparable_hash: str
    exact_hash: str
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Sizes of the model that ran, counted from its parameters, and its inputs in words.

    `layers` ran; `full_layers` is what the configuration asks for (both None when unknown).
    """

    name: str
    architecture: str
    parameters: int
    active_parameters: int | None
    weight_bytes: int
    config: dict[str, object]
    inputs: str = ""
    layers: int | None = None
    full_layers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Measured ceilings of one device: FLOP/s by dtype, bytes/s, nanoseconds.

    `launch_ns` is None where operators are called and not launched; `missing`
    says what this device could not run.
    """

    device: str
    threads: int | None
    matmul_flops: dict[str, float]
    copy_bandwidth: float
    launch_ns: float | None
    dispatch_ns: float
    missing: tuple[str, ...]
    took_ns: int
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Contamination:
    """What else the machine did during the timed phase; shares are of all its CPUs.

    `device` holds the device's own readings before and after; `missing` names
    those its back-end does not give.
    """

    other_cpu_share: float | None
    steal_share: float | None
    load_before: float | None
    load_after: float | None
    involuntary_switches: int | None
    device: dict[str, float]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBreak:
    """A place where the compiler had to leave the graph: why, `file:line`, and how often."""

    reason: str
    where: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """What the compiler made of the model.

    `recompilations` are the guards that failed; `fused_kernels` is None for
    back-ends that do not count; `fell_back` says why the run went on eager.
    """

    mode: str
    graphs: int
    breaks: tuple[GraphBreak, ...]
    recompilations: tuple[str, ...]
    fused_kernels: int | None
    compile_ns: int
    fell_back: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingReport:
    """Tokens each expert of each layer got in one prefill and one decode step.

    `hit_share` is the share of experts with any token in the layer that uses
    fewest, `max_over_mean` the load of the busiest expert over the mean in the
    least even layer.
    """

    mode: Routing
    tokens_per_expert: dict[str, tuple[int, ...]]
    hit_share: float
    max_over_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroTiming:
    """One operator call alone: `n` single calls, times in nanoseconds."""

    median_ns: float
    iqr_ns: float
    minimum_ns: float
    n: int
    samples: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroRow:
    """One operator with one set of shapes and types (JSON text as the trace has them).

    `calls` and `self_ns` are the trace's. `cold` starts with empty caches,
    `warm` right after a call before. Both are None when the call could not be
    rebuilt; `reason` then says why.
    """

    name: str
    shapes: str
    dtypes: str
    calls: int
    self_ns: int
    overload: str = ""
    cold: MicroTiming | None = None
    warm: MicroTiming | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroReport:
    """The hottest operators by self time, hottest first, each run alone; never a headline."""

    rows: tuple[MicroRow, ...]
    flush_bytes: int
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolated:
    """One metric at full depth: `value` = value at the cut + missing layers x `per_layer`.

    `low` and `high` move the slope by twice its standard error.
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    per_layer: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolation:
    """What a model cut to `layers` of `full_layers` would take at full depth.

    `shallower` is the second depth that was measured, `kinds` how many layers
    of each kind the cut holds. Metrics that could not be extrapolated are in
    `refused` with the reason, as "*" when it holds for all; `assumption` says what the
    figures rest on.
    """

    layers: int
    shallower: int | None
    full_layers: int
    kinds: dict[str, int]
    metrics: tuple[Extrapolated, ...]
    refused: dict[str, str]
    assumption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`result.json`: everything one run measured.

    With several ranks times are those of the slowest rank in each iteration;
    `rank_step_ns` holds every rank's own median.
    """

    spec: RunSpec
    spec_hash: str
    model: ModelFacts
    metrics: tuple[Metric, ...]
    profiled_ratio: float | None
    profiled_note: str
    warnings: tuple[str, ...] = ()
    profiler_version: str = ""
    contamination: Contamination | None = None
    graphs: GraphReport | None = None
    routing: RoutingReport | None = None
    rank_step_ns: tuple[float, ...] = ()
    micro: MicroReport | None = None
    extrapolation: Extrapolation | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One JSON line on stdout of a run: step `step` of `steps` in `phase`."""

    phase: Phase
    step: int
    steps: int
    message: str = ""
    event: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """`error.json` of a run that ended without a result."""

    kind: str
    message: str
    hint: str = ""
    schema: int = SCHEMA
