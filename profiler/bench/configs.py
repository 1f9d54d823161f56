"""From a spec to a transformers configuration. No hub, no remote code, no pickles."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol, cast

import torch

from profiler.bench.checkpoint import Checkpoint, inspect, read_config
from profiler.bench.factory import call_factory
from profiler.catalog import BUILTIN
from profiler.errors import CheckpointError, SpecError, UnsupportedError
from profiler.spec import check_config, known_config
from profiler.types import Attention, RunSpec

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", USE_HUB_KERNELS="0")
# transformers reads these when it is imported, so they stand before it.
import transformers

REFUSED_KEYS = frozenset(
    {
        "auto_map",
        "custom_pipelines",
        "quantization_config",
        "attn_implementation",
        "_attn_implementation",
        "_attn_implementation_internal",
        "experts_implementation",
        "_experts_implementation",
        "kernel_config",
        "_name_or_path",
        "torch_dtype",
        "dtype",
    }
)
"""Configuration keys that could load code or data from elsewhere, or that the spec decides."""

AUTO_CLASSES: tuple[tuple[str, str], ...] = (
    ("MODEL_FOR_CAUSAL_LM_MAPPING", "AutoModelForCausalLM"),
    ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING", "AutoModelForImageTextToText"),
)
"""transformers' tables of models that generate text, and the class that builds from each."""


class Builder(Protocol):
    """The part of transformers' auto classes that is used here."""

    def from_config(
        self, config: transformers.PreTrainedConfig, **options: object
    ) -> torch.nn.Module: ...

    def from_pretrained(
        self, folder: Path, **options: object
    ) -> tuple[torch.nn.Module, dict[str, set[str]]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A model that can be built: its configuration and what builds it.

    `full_layers` is the depth before a cut. A `checkpoint` brings weights, a
    factory has `made` the module already; else weights are random.
    """

    name: str
    architecture: str
    config: transformers.PreTrainedConfig
    dtype: torch.dtype
    auto_class: str = ""
    full_layers: int | None = None
    checkpoint: Checkpoint | None = None
    made: torch.nn.Module | None = None
    attention: Attention = "auto"

    @property
    def vision(self) -> transformers.PreTrainedConfig | None:
        """The configuration of the part that sees images, or None for a text model."""
        vision: transformers.PreTrainedConfig | None = getattr(self.config, "vision_config", None)
        return vision

    @property
    def layers(self) -> int | None:
        """Depth of the text model, or None when its configuration names none."""
        depth = getattr(self.config.get_text_config(), "num_hidden_layers", None)
        return None if depth is None else int(depth)

    def create(self, device: torch.device) -> torch.nn.Module:
        """The model on `device` with its weights."""
        if self.made is not None:
            return self.made.to(device, self.dtype)
        if self.checkpoint is not None:
            return self._load(self.checkpoint, device)
        return self._initialise(device)

    def skeleton(self) -> torch.nn.Module:
        """The model without weights: sizes only."""
        return self._initialise(torch.device("meta")) if self.made is None else self.made

    def _initialise(self, device: torch.device) -> torch.nn.Module:
        try:
            with device:
                return self._builder.from_config(
                    self.config,
                    dtype=self.dtype,
                    attn_implementation=None if self.attention == "auto" else self.attention,
                    trust_remote_code=False,
                )
        except (ValueError, ImportError) as error:
            reason = str(error).splitlines()[0][:200]
            raise UnsupportedError(f"model {self.name} cannot be built: {reason}") from None

    def _load(self, checkpoint: Checkpoint, device: torch.device) -> torch.nn.Module:
        """Stream the shards into a model; `CheckpointError` names weights that do not fit it."""
        try:
            model, report = self._builder.from_pretrained(
                checkpoint.folder,
                config=self.config,
                dtype=self.dtype,
                device_map={"": device} if device.type != "cpu" else None,
                local_files_only=True,
                use_safetensors=True,
                attn_implementation=None if self.attention == "auto" else self.attention,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except RuntimeError as error:
            _raise_misfit(checkpoint, str(error).splitlines()[0][:200])
            raise
        missing = sorted(report["missing_keys"])
        if missing:
            _raise_misfit(checkpoint, f"{len(missing)} weights are missing, first {missing[0]}")
        return model.to(device)

    @property
    def _builder(self) -> Builder:
        return cast(Builder, getattr(transformers, self.auto_class))


def _raise_misfit(checkpoint: Checkpoint, reason: str) -> NoReturn:
    raise CheckpointError(
        f"weights in {checkpoint.folder} do not fit config.json: {reason}",
        "use the configuration the weights were saved with",
    )


def plan_model(spec: RunSpec) -> Plan:
    """What to build for `spec`; a `UserError` when its source is unusable."""
    if spec.factory is not None:
        return _plan_factory(spec, spec.factory)
    raw, checkpoint = _source(spec)
    check_config(spec, raw)
    full = configure(raw)
    config = full if spec.layers is None else configure(cut(raw, full, spec.layers))
    built_in = BUILTIN.get(spec.model)
    return Plan(
        name=spec.model,
        architecture=built_in.architecture if built_in else str(config.model_type),
        config=config,
        dtype=getattr(torch, spec.dtype),
        auto_class=_auto_class(config),
        full_layers=getattr(full.get_text_config(), "num_hidden_layers", None),
        checkpoint=checkpoint,
        attention=spec.attention,
    )


def cut(
    raw: dict[str, object], full: transformers.PreTrainedConfig, layers: int
) -> dict[str, object]:
    """`raw` with only its first `layers` layers; lists with one entry per layer are cut along."""
    depth = int(full.get_text_config().num_hidden_layers)
    if layers > depth:
        raise SpecError(f"spec.layers is {layers}", f"the model has {depth} layers")
    text = raw.get("text_config")
    section = text if isinstance(text, dict) else raw
    shorter = {
        key: value[:layers] if isinstance(value, list) and len(value) == depth else value
        for key, value in section.items()
    } | {"num_hidden_layers": layers}
    # Asked from the whole model: a configuration may give an interval and no list.
    kinds = (getattr(full.get_text_config(), "layer_types", None) or ())[:layers]
    if kinds and not any("attention" in k and "linear" not in k for k in kinds):
        raise SpecError(
            f"spec.layers is {layers}", "a hybrid model needs its first full-attention layer"
        )
    return raw | {"text_config": shorter} if isinstance(text, dict) else shorter


def _plan_factory(spec: RunSpec, reference: str) -> Plan:
    model = call_factory(reference).to(getattr(torch, spec.dtype))
    config = model.config
    if not isinstance(config, transformers.PreTrainedConfig):
        raise SpecError(f"spec.factory {reference!r}: .config is no transformers configuration")
    return Plan(
        name=spec.model,
        architecture=type(model).__name__,
        config=config,
        dtype=getattr(torch, spec.dtype),
        full_layers=getattr(config.get_text_config(), "num_hidden_layers", None),
        made=model,
    )


def _source(spec: RunSpec) -> tuple[dict[str, object], Checkpoint | None]:
    """The raw configuration of `spec`, and its weights where it brings some."""
    if spec.checkpoint is not None:
        folder = Path(spec.checkpoint)
        return read_config(folder), inspect(folder)
    raw = known_config(spec)
    assert raw is not None
    return raw, None


def configure(raw: dict[str, object]) -> transformers.PreTrainedConfig:
    """A transformers configuration from the content of a `config.json`; `SpecError` if unknown."""
    kept = _without_refused(raw)
    model_type = kept.pop("model_type", None)
    if not isinstance(model_type, str):
        raise SpecError("model configuration has no model_type", "see transformers' config.json")
    try:
        return transformers.AutoConfig.for_model(model_type, **kept)
    except (KeyError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0][:160]
        hint = f"transformers {transformers.__version__} is installed"
        raise SpecError(f"model_type {model_type!r} cannot be used: {reason}", hint) from None


def _without_refused(raw: dict[str, object]) -> dict[str, object]:
    """`raw` without refused keys, in nested configurations too."""
    return {
        key: _without_refused(value) if isinstance(value, dict) else value
        for key, value in raw.items()
        if key not in REFUSED_KEYS
    }


def _auto_class(config: transformers.PreTrainedConfig) -> str:
    """The class that builds `config`; looking it up also loads the model's code."""
    for table, name in AUTO_CLASSES:
        if type(config) in getattr(transformers, table):
            getattr(transformers, table)[type(config)]
            return name
    raise SpecError(
        f"model_type {config.model_type!r} generates no text", "choose a language model"
    )
