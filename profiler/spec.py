"""Run specifications: parse, check, canonical form and hash. Loads no torch."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from pathlib import Path
from typing import Literal, cast, get_args, get_origin, get_type_hints

import msgspec

from profiler.catalog import BUILTIN
from profiler.errors import SpecError
from profiler.types import SCHEMA, Parallel, RunSpec, Scenario

LIMITS: dict[str, tuple[int, int]] = {
    "batch": (1, 4096),
    "prompt_tokens": (1, 1_048_576),
    "output_tokens": (2, 131_072),
    "iterations": (1, 10_000),
    "warmup": (0, 1_000),
    "profiled_steps": (0, 50),
    "seed": (0, 2**31 - 1),
    "threads": (1, 1024),
    "layers": (1, 1000),
    "warmup_max": (1, 10_000),
    "ranks": (1, 64),
    "micro": (0, 50),
}
"""Allowed range of each whole-number field, both ends included."""

TOKENS_LIMIT = 2**24
"""Most tokens one unit of work may touch: batch x (prompt + output)."""

SAMPLES_LIMIT = 1_000_000
"""Most raw samples one metric may hold."""

SPEC_BYTES_LIMIT = 1 << 20
_DEVICE = re.compile(r"[a-z][a-z0-9_]{0,31}(:[0-9]{1,3})?")
_FACTORY = re.compile(r"(?!/)(?!.*\.\.)[A-Za-z0-9_./-]{1,200}\.py:[A-Za-z_][A-Za-z0-9_]{0,99}")
EAGER = "eager"
INDUCTOR_MODES = ("default", "reduce-overhead", "max-autotune")
BACKEND_PREFIX = "backend:"
_BACKEND = re.compile(rf"{BACKEND_PREFIX}[A-Za-z_][A-Za-z0-9_.-]{{0,63}}")
PARALLEL: dict[Scenario, tuple[Parallel, ...]] = {
    "training": ("data", "fsdp"),
    "prefill": ("tensor", "pipeline"),
    "decode": ("tensor",),
}
"""How several ranks may work together in each scenario."""

SPLIT: tuple[Parallel, ...] = ("tensor", "pipeline")
"""Forms in which each rank holds a part of one model and all read the same prompts."""

SOURCES = ("config", "checkpoint", "factory")
"""Fields that bring a model of their own; a spec has at most one."""

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def parse(raw: bytes) -> RunSpec:
    """A checked spec from JSON bytes; raises `SpecError` naming field, value and allowed values."""
    try:
        spec = msgspec.json.decode(raw, type=RunSpec, strict=True)
        unknown = set(msgspec.json.decode(raw)) - {f.name for f in dataclasses.fields(RunSpec)}
    except msgspec.ValidationError as error:
        raise SpecError(f"spec: {_field_first(str(error))}", allowed_text()) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"spec is not valid JSON: {error}", "write one JSON object") from None
    if unknown:
        raise SpecError(f"spec: unknown field {', '.join(sorted(unknown))}", allowed_text())
    return check(spec)


def load(path: Path) -> RunSpec:
    """The spec stored in `path`; raises `SpecError` when it cannot be read or cannot work."""
    try:
        if path.stat().st_size > SPEC_BYTES_LIMIT:
            raise SpecError(f"spec {path} is larger than 1 MiB", "a spec is a small JSON object")
        return parse(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError(f"spec {path} cannot be read: {reason}", "check the path") from None


def check(spec: RunSpec) -> RunSpec:
    """`spec` itself when every field can work, else `SpecError`."""
    _check_names(spec)
    for name, (low, high) in LIMITS.items():
        value = cast("int | None", getattr(spec, name))
        if value is not None and not low <= value <= high:
            raise SpecError(f"spec.{name} is {value}", f"allowed: {low} to {high}")
    for name in ("peak_flops", "peak_bandwidth"):
        peak = cast("float | None", getattr(spec, name))
        if peak is not None and not 0 < peak < 1e21:
            raise SpecError(f"spec.{name} is {peak}", "allowed: a positive number per second")
    if spec.warmup_max is not None and spec.warmup_max < spec.warmup:
        raise SpecError(
            f"spec.warmup_max is {spec.warmup_max}", f"allowed: at least warmup, {spec.warmup}"
        )
    _check_ranks(spec)
    _check_savings(spec)
    _check_sampling(spec)
    _check_micro(spec)
    _check_amounts(spec)
    return spec


def _check_names(spec: RunSpec) -> None:
    if spec.schema != SCHEMA:
        raise SpecError(f"spec.schema is {spec.schema}", f"this version reads schema {SCHEMA}")
    if not _MODEL.fullmatch(spec.model):
        raise SpecError(f"spec.model {spec.model!r} is no model name", "see the list of models")
    if not _DEVICE.fullmatch(spec.device):
        raise SpecError(f"spec.device {spec.device!r} is no device", "for example cpu or cuda:0")
    if spec.compile not in (EAGER, *INDUCTOR_MODES) and not _BACKEND.fullmatch(spec.compile):
        raise SpecError(
            f"spec.compile is {spec.compile!r}",
            f"allowed: {', '.join((EAGER, *INDUCTOR_MODES))} or {BACKEND_PREFIX}NAME",
        )


def _check_ranks(spec: RunSpec) -> None:
    modes = PARALLEL[spec.scenario]
    if (spec.ranks > 1) != (spec.parallel != "none"):
        raise SpecError(
            f"spec.ranks is {spec.ranks} and spec.parallel is {spec.parallel!r}",
            f"several ranks of {spec.scenario} need parallel {' or '.join(modes)}, one needs none",
        )
    if spec.ranks > 1 and spec.parallel not in modes:
        raise SpecError(
            f"spec.parallel is {spec.parallel!r}",
            f"allowed for {spec.scenario}: {', '.join(modes)}",
        )
    if spec.ranks > 1 and spec.compile != EAGER:
        raise SpecError(f"spec.ranks is {spec.ranks}", "several ranks run eager only")
    if spec.ranks > 1 and spec.warmup_max is not None:
        raise SpecError(
            f"spec.warmup_max is {spec.warmup_max}", "several ranks warm up a fixed number of units"
        )


def _check_micro(spec: RunSpec) -> None:
    if spec.micro == 0:
        return
    if spec.profiled_steps == 0 or "shapes" not in spec.profile:
        raise SpecError(
            f"spec.micro is {spec.micro}", "needs profiled_steps above 0 and profile with shapes"
        )
    if spec.ranks > 1:
        raise SpecError(f"spec.micro is {spec.micro}", "operators run alone on one rank only")


def _check_savings(spec: RunSpec) -> None:
    for name in ("recompute", "offload"):
        value = cast("str", getattr(spec, name))
        if value != "none" and spec.scenario != "training":
            raise SpecError(f"spec.{name} is {value!r}", "it applies to training only")
    if spec.offload != "none" and spec.device == "cpu":
        raise SpecError(
            f"spec.offload is {spec.offload!r}", "the CPU has no memory of its own to relieve"
        )
    if spec.offload != "none" and (spec.offload == "cpu") != (spec.parallel == "fsdp"):
        raise SpecError(
            f"spec.offload is {spec.offload!r} and spec.parallel is {spec.parallel!r}",
            "cpu works with parallel fsdp, optimizer without it",
        )


def _check_sampling(spec: RunSpec) -> None:
    for name, most in (("temperature", 100.0), ("top_p", 1.0)):
        value = cast("float", getattr(spec, name))
        if not 0 < value <= most:
            raise SpecError(f"spec.{name} is {value}", f"allowed: above 0, up to {most:g}")
        if value != 1 and spec.sampling == "greedy":
            raise SpecError(f"spec.{name} is {value}", "it needs sampling multinomial")
    if spec.sampling != "greedy" and spec.scenario != "decode":
        raise SpecError(f"spec.sampling is {spec.sampling!r}", "it applies to decode only")


def _check_amounts(spec: RunSpec) -> None:
    tokens = spec.batch * sequence_tokens(spec)
    if tokens > TOKENS_LIMIT:
        raise SpecError(
            f"batch x tokens of a sequence is {tokens:,} tokens", f"allowed: up to {TOKENS_LIMIT:,}"
        )
    samples = spec.iterations * (spec.output_tokens if spec.scenario == "decode" else 1)
    if samples > SAMPLES_LIMIT:
        raise SpecError(
            f"iterations x output_tokens is {samples:,} samples",
            f"allowed: up to {SAMPLES_LIMIT:,}; every sample is kept",
        )


def check_model(spec: RunSpec) -> RunSpec:
    """`spec` itself when its model is known and takes sequences this long, else `SpecError`.

    What only the worker can see (a checkpoint's files, a factory's code) is not looked at.
    """
    own = [name for name in SOURCES if getattr(spec, name) is not None]
    if len(own) > 1:
        raise SpecError(f"spec has {' and '.join(own)}", "give one of them")
    if not own and spec.model not in BUILTIN:
        known = ", ".join(BUILTIN)
        raise SpecError(f"spec.model {spec.model!r} is unknown", f"known models: {known}")
    if own and spec.model in BUILTIN:
        raise SpecError(
            f"spec.model {spec.model!r} is a built-in model", f"name the {own[0]} otherwise"
        )
    _check_source(spec)
    config = known_config(spec)
    if config is not None:
        check_config(spec, config)
    return spec


def known_config(spec: RunSpec) -> dict[str, object] | None:
    """The model configuration the spec itself tells, or None when it lies with the worker."""
    if spec.checkpoint is None and spec.factory is None:
        return BUILTIN[spec.model].read_config() if spec.config is None else spec.config
    return None


def check_config(spec: RunSpec, config: dict[str, object]) -> None:
    """Raise `SpecError` when `config` cannot serve `spec`: type, sequence length, depth."""
    if not isinstance(config.get("model_type"), str):
        raise SpecError("spec.config has no model_type", "paste a transformers config.json")
    text = config.get("text_config")
    sizes = config | text if isinstance(text, dict) else config
    longest, depth = sizes.get("max_position_embeddings"), sizes.get("num_hidden_layers")
    tokens = sequence_tokens(spec)
    if isinstance(longest, int) and tokens > longest:
        fields = "prompt_tokens + output_tokens" if spec.scenario == "decode" else "prompt_tokens"
        raise SpecError(
            f"spec.{fields} is {tokens}", f"{spec.model} takes up to {longest} tokens a sequence"
        )
    if spec.routing != "model" and spec.model in BUILTIN and "num_experts_per_tok" not in sizes:
        raise SpecError(f"spec.routing is {spec.routing!r}", f"{spec.model} has no experts")
    if isinstance(depth, int) and (spec.layers or 0) > depth:
        raise SpecError(f"spec.layers is {spec.layers}", f"{spec.model} has {depth} layers")


def _check_source(spec: RunSpec) -> None:
    if spec.checkpoint is not None and not Path(spec.checkpoint).is_absolute():
        raise SpecError(f"spec.checkpoint {spec.checkpoint!r} is not absolute", "give a full path")
    if spec.factory is not None and not _FACTORY.fullmatch(spec.factory):
        raise SpecError(
            f"spec.factory {spec.factory!r} is no path/file.py:function",
            "give a path inside the repository and the name of a function",
        )
    if spec.factory is not None and spec.layers is not None:
        raise SpecError("spec.layers does not apply to a factory", "cut the model in its code")


def sequence_tokens(spec: RunSpec) -> int:
    """Longest sequence of the run, in tokens; only decode adds output tokens to the prompt."""
    return spec.prompt_tokens + (spec.output_tokens if spec.scenario == "decode" else 0)


def canonical(spec: RunSpec) -> bytes:
    """The spec as JSON with sorted keys: equal specs give equal bytes."""
    return msgspec.json.encode(dataclasses.asdict(spec), order="sorted")


def spec_hash(spec: RunSpec) -> str:
    """SHA-256 over the fields that differ from their defaults, hex.

    A field added later leaves the hashes of earlier specs alone; so a default never changes
    its value once released.
    """
    return _hash(_chosen(spec))


def workload_hash(spec: RunSpec) -> str:
    """SHA-256 over what defines the workload: not how often or with which seed it is measured."""
    measured_how = {
        "iterations",
        "warmup",
        "warmup_max",
        "profiled_steps",
        "seed",
        "peak_flops",
        "peak_bandwidth",
        "compile_fallback",
        "profile",
        "micro",
    }
    if spec.scenario != "decode":
        measured_how.add("output_tokens")
    return _hash({k: v for k, v in _chosen(spec).items() if k not in measured_how})


def allowed_text() -> str:
    """What a spec may hold, in one line."""
    ranges = ", ".join(f"{name} {low}-{high}" for name, (low, high) in LIMITS.items())
    words = "; ".join(f"{name}: {'|'.join(known)}" for name, known in _choices().items())
    return f"{words}; {ranges}"


def _choices() -> dict[str, tuple[str, ...]]:
    """The allowed words of each field that takes one or several of a few."""
    found = {}
    for name, kind in get_type_hints(RunSpec).items():
        word = get_args(kind)[0] if get_origin(kind) is tuple else kind
        if get_origin(word) is Literal and name != "schema":
            found[name] = get_args(word)
    return found


def _chosen(spec: RunSpec) -> dict[str, object]:
    """The fields of `spec` that differ from their defaults."""
    values = dataclasses.asdict(spec)
    defaults = {field.name: field.default for field in dataclasses.fields(RunSpec)}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _hash(fields: dict[str, object]) -> str:
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()


def _field_first(message: str) -> str:
    """msgspec says `Expected int, got str - at $.batch`; the field reads better in front."""
    reason, _, where = message.partition(" - at `$.")
    return f"{where.rstrip('`')}: {reason}" if where else reason
