"""Prompts of random tokens, with an image in each where the model sees images."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from profiler.bench.configs import Plan
from profiler.bench.devices import Device
from profiler.errors import SpecError
from profiler.types import RunSpec

IMAGE_SHARE = 2
"""One part in this many of a prompt is an image, if the model takes any."""

LONGEST_SIDE = 32
"""Most image tokens along one side of the square image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What every forward call gets, by keyword, and the same in words."""

    tensors: dict[str, torch.Tensor]
    note: str


def make_inputs(plan: Plan, spec: RunSpec, device: Device) -> Inputs:
    """The prompts of `spec`: the same for the same seed, no two sequences alike."""
    generator = torch.Generator().manual_seed(spec.seed)
    shape = (spec.batch, spec.prompt_tokens)
    ids = torch.randint(0, plain_tokens(plan), shape, generator=generator)
    if plan.vision is None:
        tensors, note = {"input_ids": ids}, f"{spec.batch} x {spec.prompt_tokens} random tokens"
    else:
        tensors, note = _with_images(plan, ids, generator)
    return Inputs(tensors={name: t.to(device.torch) for name, t in tensors.items()}, note=note)


def plain_tokens(plan: Plan) -> int:
    """Token ids below this stand for text; the special ones of a vision model lie above."""
    vocabulary = int(plan.config.get_text_config().vocab_size)
    special = [
        int(value)
        for key, value in plan.config.to_dict().items()
        if key.endswith("_token_id") and key.startswith(("image", "video", "vision")) and value
    ]
    return min([vocabulary, *special])


def _with_images(
    plan: Plan, ids: torch.Tensor, generator: torch.Generator
) -> tuple[dict[str, torch.Tensor], str]:
    """One square image per sequence in the middle of its text, as random pixels."""
    vision = plan.vision
    assert vision is not None
    batch, prompt = ids.shape
    side = min(LONGEST_SIDE, math.isqrt(prompt // IMAGE_SHARE))
    if side < 1:
        raise SpecError(
            f"spec.prompt_tokens is {prompt}", f"{plan.name} needs {IMAGE_SHARE}: text and an image"
        )
    patches = side * int(vision.spatial_merge_size)
    channels = int(vision.in_channels) * int(vision.temporal_patch_size)
    pixels = channels * int(vision.patch_size) ** 2
    start = (prompt - side * side) // 2
    is_image = torch.zeros_like(ids, dtype=torch.bool)
    is_image[:, start : start + side * side] = True
    tensors = {
        "input_ids": ids.masked_fill(is_image, int(plan.config.image_token_id)),
        "mm_token_type_ids": is_image.int(),
        "image_grid_thw": torch.tensor([[1, patches, patches]]).expand(batch, 3).contiguous(),
        "pixel_values": torch.randn(batch * patches * patches, pixels, generator=generator).to(
            plan.dtype
        ),
    }
    text = prompt - side * side
    note = f"{batch} x ({text} random text tokens and an image of {side * side} tokens)"
    return tensors, note
