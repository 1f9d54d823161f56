"""FLOPs and bytes a model needs by its sizes, whatever the device then does.

A matrix product costs two FLOPs per weight and token. Causal attention over s
tokens looks at s^2/2 pairs (a window of w at s*w - w^2/2), each worth
2 * heads * (query-key width + value width) FLOPs. Embedding look-ups, norms and
the state updates of linear attention are not counted. Backward costs twice
forward (PaLM, arXiv:2204.02311, appendix B, with the causal half).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import transformers

CONVENTION = "causal attention counted as half of the square"


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """A mixture of experts: `chosen` of `experts` per token."""

    experts: int
    chosen: int

    def distinct(self, tokens: int) -> float:
        """Experts expected to be hit by `tokens` tokens under even routing."""
        missed = (1 - self.chosen / self.experts) ** tokens
        return self.experts * (1 - missed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Weights by their part in a forward pass, and the shape of attention.

    `dense` matmul weights see every token, `routed` ones are spread over
    experts, `head` maps the last hidden state to logits. `windows` has one
    entry per layer with softmax attention: its window, or None for all tokens.
    """

    dense: int
    routed: int
    head: int
    element_bytes: int
    routing: Routing | None
    pair_width: int
    windows: tuple[int | None, ...]

    def forward_flops(self, *, sequences: int, tokens: int, logits: int) -> float:
        """FLOPs of a forward pass over `sequences` of `tokens`, with logits for `logits` each."""
        active = self.dense + self._active_routed()
        products = 2 * (active * tokens + self.head * logits)
        pairs = sum(_pairs(tokens, window) for window in self.windows)
        return sequences * (products + 2 * self.pair_width * pairs)

    def step_bytes(self, *, sequences: int, cache_bytes: float) -> float:
        """Bytes one decode step reads: weights touched plus `cache_bytes` of key-value cache."""
        share = self.routing.distinct(sequences) / self.routing.experts if self.routing else 0.0
        touched = self.dense + self.head + self.routed * share
        return touched * self.element_bytes + cache_bytes

    def _active_routed(self) -> float:
        routing = self.routing
        return self.routed * routing.chosen / routing.experts if routing else 0.0


def cost_of(config: transformers.PreTrainedConfig, model: torch.nn.Module) -> Cost | None:
    """The cost of a language model, or None when its configuration does not tell its attention."""
    heads = getattr(config, "num_attention_heads", None)
    layers = getattr(config, "num_hidden_layers", None)
    if not heads or not layers:
        return None
    output_of = getattr(model, "get_output_embeddings", None)
    output = output_of() if callable(output_of) else None
    embeddings = {
        id(p) for m in model.modules() if isinstance(m, torch.nn.Embedding) for p in m.parameters()
    }
    head = output.weight if isinstance(output, torch.nn.Linear) else None
    body = [
        (name, p)
        for name, p in model.named_parameters()
        if p.ndim >= 2 and id(p) not in embeddings and p is not head
    ]
    routed = sum(p.numel() for name, p in body if ".experts." in name)
    return Cost(
        dense=sum(p.numel() for _, p in body) - routed,
        routed=routed,
        head=0 if head is None else head.numel(),
        element_bytes=next(model.parameters()).element_size(),
        routing=routing_of(config),
        pair_width=int(heads) * _widths(config, int(heads)),
        windows=_windows(config, int(layers)),
    )


def routing_of(config: transformers.PreTrainedConfig) -> Routing | None:
    """How tokens are spread over experts, or None for a dense model."""
    chosen = getattr(config, "num_experts_per_tok", None)
    names = ("num_experts", "num_local_experts", "n_routed_experts")
    experts = next((getattr(config, name) for name in names if hasattr(config, name)), None)
    if not chosen or not experts:
        return None
    return Routing(experts=int(experts), chosen=int(chosen))


def _widths(config: transformers.PreTrainedConfig, heads: int) -> int:
    """Query-key width plus value width of one head."""
    rope = getattr(config, "qk_rope_head_dim", None)
    if rope is not None:
        return int(config.qk_nope_head_dim) + int(rope) + int(config.v_head_dim)
    return 2 * int(getattr(config, "head_dim", None) or config.hidden_size // heads)


def _windows(config: transformers.PreTrainedConfig, layers: int) -> tuple[int | None, ...]:
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * layers
    window = getattr(config, "sliding_window", None)
    sizes = {"full_attention": None, "sliding_attention": window, "chunked_attention": window}
    return tuple(sizes[kind] for kind in kinds if kind in sizes)


def _pairs(tokens: int, window: int | None) -> float:
    if window is None or window >= tokens:
        return tokens * tokens / 2
    return tokens * window - window * window / 2
