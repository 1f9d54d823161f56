"""From a spec to a transformers configuration. No hub, no remote code, no pickles."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

from profiler.catalog import BUILTIN
from profiler.errors import SpecError, UnsupportedError
from profiler.types import RunSpec

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A model that can be built: its configuration and the transformers class that builds it."""

    name: str
    architecture: str
    config: transformers.PreTrainedConfig
    auto_class: str
    dtype: torch.dtype

    def create(self, device: torch.device) -> torch.nn.Module:
        """A new model on `device`; on `meta` it has sizes and no weights."""
        builder = getattr(transformers, self.auto_class)
        try:
            with device:
                model: torch.nn.Module = builder.from_config(
                    self.config, dtype=self.dtype, trust_remote_code=False
                )
        except ValueError as error:
            reason = str(error).splitlines()[0][:200]
            raise UnsupportedError(f"model {self.name} cannot be built: {reason}") from None
        return model


def plan_model(spec: RunSpec) -> Plan:
    """What to build for `spec`; `SpecError` when transformers has no such model."""
    entry = BUILTIN[spec.model]
    config = configure(entry.read_config())
    return Plan(
        name=spec.model,
        architecture=entry.architecture,
        config=config,
        auto_class=_auto_class(config),
        dtype=getattr(torch, spec.dtype),
    )


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
