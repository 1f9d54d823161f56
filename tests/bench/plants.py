"""Models for `bench_plants.py`: a small Llama, as it is and with a slowdown planted in it.

Each function is a factory that the runner calls in a process of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.cache_utils import DynamicLayer
from transformers.models.llama.modeling_llama import LlamaRMSNorm

WORDS = 2000
WIDE = 1024


def small(hidden: int = 256) -> LlamaForCausalLM:
    """Four layers, four heads."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS,
            hidden_size=hidden,
            intermediate_size=4 * hidden,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=4096,
        )
    )


def plain() -> nn.Module:
    """Nothing planted. Its cache grows by concatenation, as transformers' own does."""
    return small()


def wide() -> nn.Module:
    """Nothing planted, and layers wide enough for a cast of their weights to cost something."""
    return small(WIDE)


def loop_norm() -> nn.Module:
    """RMSNorm of one row after the other, in Python."""
    model = small()
    for module in model.modules():
        if isinstance(module, LlamaRMSNorm):
            module.forward = functools.partial(_row_by_row, module.forward)  # type: ignore[method-assign]
    return model


def _row_by_row(norm: Callable[[torch.Tensor], torch.Tensor], hidden: torch.Tensor) -> torch.Tensor:
    return torch.stack([norm(hidden[:, at]) for at in range(hidden.shape[1])], 1)


def cast_linear() -> nn.Module:
    """The last linear of every MLP runs in float32 between casts."""
    model = small(WIDE)
    for layer in model.model.layers:
        linear = layer.mlp.down_proj
        linear.forward = functools.partial(_in_float32, linear)
    return model


def _in_float32(linear: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return functional.linear(x.float(), linear.weight.float()).to(x.dtype)


def item_loop() -> nn.Module:
    """Every logit of the last token is looked at from Python, one `item()` each."""
    model = small()
    forward = model.forward

    @functools.wraps(forward)
    def slow(*args: object, **kwargs: object) -> object:
        output = forward(*args, **kwargs)
        last = output.logits[0, -1]
        values = [last[at].item() for at in range(WORDS)]
        values.index(max(values))
        return output

    model.forward = slow
    return model


def kept_cache() -> nn.Module:
    """Keys and values are written into memory that is there already."""
    DynamicLayer.update = Kept.update  # type: ignore[method-assign, assignment]
    return small()


ROOM = 2048


class Kept(DynamicLayer):  # type: ignore[no-untyped-call]
    """A layer of the cache with room for all tokens from the start."""

    whole: tuple[torch.Tensor, torch.Tensor]
    used: int

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: object, **__: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values so far, the new ones in their place."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            shape = (*key_states.shape[:2], ROOM, key_states.shape[3])
            self.whole = (key_states.new_zeros(shape), value_states.new_zeros(shape))
            self.used = 0
        until = self.used + key_states.shape[2]
        for whole, part in zip(self.whole, (key_states, value_states), strict=True):
            whole[:, :, self.used : until] = part
        self.used = until
        self.keys, self.values = (whole[:, :, :until] for whole in self.whole)
        return self.keys, self.values
