"""Rank of a run that splits models: prints how far each is from the whole one, as JSON lines.

Started through torchrun with the parallel form, then model names.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import msgspec
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.catalog import BUILTIN
from profiler.types import RunSpec
from tests.profiler.bench.scene import cpu, small_spec

LAYERS = {"qwen3-next-small": 4}
TIED = "llama-tied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One rank's part of `model`: relative difference of logits, share of the bytes held."""

    model: str
    difference: float
    share: float


def spec_of(model: str, **fields: object) -> RunSpec:
    """A prefill of `model`, cut to few layers; `TIED` is the tiny Llama with one embedding."""
    if model == TIED:
        fields |= {"config": BUILTIN["llama-tiny"].read_config() | {"tie_word_embeddings": True}}
    return small_spec("prefill", model=model, layers=LAYERS.get(model, 2), **fields)


def two_steps(spec: RunSpec) -> tuple[torch.nn.Module, torch.Tensor]:
    """The model of `spec`, its logits after the prompt and, undivided or split, one token on."""
    built = build(plan_model(spec), spec, cpu())
    model = built.model
    with torch.inference_mode():
        first = model(**built.inputs, cache=None, use_cache=True, logits_to_keep=1)
        if spec.parallel == "pipeline":
            return model, first.logits
        tokens = torch.full((spec.batch, 1), 7)
        second = model(input_ids=tokens, cache=first.cache, use_cache=True, logits_to_keep=1)
    return model, torch.cat([first.logits, second.logits], dim=1)


def held_bytes(model: torch.nn.Module) -> int:
    """Bytes of the weights this rank really keeps."""
    local = [p.to_local() if isinstance(p, DTensor) else p for p in model.parameters()]
    return sum(p.untyped_storage().nbytes() for p in local)


def compare(model: str, parallel: str) -> Compared:
    whole, expected = two_steps(spec_of(model))
    if parallel == "pipeline":
        expected = expected[:, :1]
    part, logits = two_steps(spec_of(model, ranks=dist.get_world_size(), parallel=parallel))
    return Compared(
        model=model,
        difference=float((logits - expected).abs().max() / expected.abs().max()),
        share=held_bytes(part) / held_bytes(whole),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for name in sys.argv[2:]:
        line = msgspec.json.encode(compare(name, sys.argv[1])) + b"\n"
        os.write(sys.stdout.fileno(), line)
    dist.destroy_process_group()
