"""A small Llama-like model on the processor with a planted slowdown, under the real profiler."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function

from profiler.analysis.findings import FindingsResult, find
from profiler.analysis.ingest import analyse
from profiler.bench.marks import module_marks

EXPECTED = {
    "python loop in RMSNorm": "host_overhead",
    "fp32 cast around a linear": "redundant_copy",
    "cache grown by cat": "redundant_copy",
    "item() in the sampling loop": "host_overhead",
}
"""Plants and the kind of finding that should name them (on a processor, item() is Python time)."""

HEADS, LAYERS, WORDS = 4, 4, 4000


class Norm(nn.Module):
    """RMSNorm, over all rows at once or one by one."""

    def __init__(self, wide: int, *, loop: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(wide))
        self.loop = loop

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """The norm of every row of `x`."""
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * self.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same numbers either way."""
        if not self.loop:
            return self.rows(x)
        return torch.stack([self.rows(x[:, at]) for at in range(x.shape[1])], 1)


class Down(nn.Module):
    """The last linear of the MLP, perhaps in float32 between casts."""

    def __init__(self, wide: int, *, cast: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(wide, 4 * wide) / 32)
        self.cast = cast

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies the weight."""
        if not self.cast:
            return functional.linear(x, self.weight)
        return functional.linear(x.float(), self.weight.float()).to(x.dtype)


class Cache:
    """Keys and values of one layer, written in place or grown by concatenation."""

    def __init__(self, *, grown: bool, room: int) -> None:
        self.grown, self.room, self.used = grown, room, 0
        self.kept: list[torch.Tensor] = []

    def add(self, new: list[torch.Tensor]) -> list[torch.Tensor]:
        """All keys and values with the new ones at their end."""
        if self.grown:
            old = self.kept or [part[:, :, :0] for part in new]
            self.kept = [torch.cat(pair, 2) for pair in zip(old, new, strict=True)]
            return self.kept
        if not self.kept:
            shape = (*new[0].shape[:2], self.room, new[0].shape[3])
            self.kept = [new[0].new_zeros(shape) for _ in new]
        until = self.used + new[0].shape[2]
        for whole, part in zip(self.kept, new, strict=True):
            whole[:, :, self.used : until] = part
        self.used = until
        return [whole[:, :, :until] for whole in self.kept]


class Block(nn.Module):
    """One layer."""

    def __init__(self, wide: int, plant: str) -> None:
        super().__init__()
        loop = plant == "python loop in RMSNorm"
        self.norm1, self.norm2 = Norm(wide, loop=loop), Norm(wide, loop=loop)
        self.qkv = nn.Linear(wide, 3 * wide, bias=False)
        self.out = nn.Linear(wide, wide, bias=False)
        self.up = nn.Linear(wide, 4 * wide, bias=False)
        self.down = Down(wide, cast=plant == "fp32 cast around a linear")

    def forward(self, x: torch.Tensor, cache: Cache | None) -> torch.Tensor:
        """Attention and MLP with residuals."""
        batch, tokens, wide = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, tokens, 3, HEADS, -1)
        q, *kv = parts.permute(2, 0, 3, 1, 4)
        k, v = cache.add(kv) if cache is not None else kv
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, wide))
        x = x + self.down(functional.silu(self.up(self.norm2(x))))
        return x


class Model(nn.Module):
    """Embedding, layers, head."""

    def __init__(self, wide: int, plant: str) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, wide)
        self.layers = nn.ModuleList(Block(wide, plant) for _ in range(LAYERS))
        self.head = nn.Linear(wide, WORDS, bias=False)

    def forward(self, ids: torch.Tensor, caches: list[Cache] | None = None) -> torch.Tensor:
        """Logits of every token."""
        x = self.embed(ids)
        for number, layer in enumerate(self.layers):
            x = layer(x, caches[number] if caches is not None else None)
        return self.head(x)  # type: ignore[no-any-return]


def stepper(scenario: str, plant: str) -> tuple[nn.Module, Callable[[], object]]:
    """The model of a scenario and one step of it, with the plant or without (`plant` empty)."""
    torch.manual_seed(0)
    model: nn.Module = Model(1024 if "cast" in scenario else 256, plant).eval()
    if scenario == "python loop in RMSNorm":
        return model, lambda: model(torch.ones(1, 64, dtype=torch.long))
    if scenario == "fp32 cast around a linear":
        model = model.to(torch.bfloat16)
        return model, lambda: model(torch.ones(1, 2, dtype=torch.long))
    batch, prompt = (8, 1000) if scenario == "cache grown by cat" else (1, 16)
    caches = [Cache(grown=plant == "cache grown by cat", room=prompt + 64) for _ in range(LAYERS)]
    model(torch.ones(batch, prompt, dtype=torch.long), caches)
    one = torch.ones(batch, 1, dtype=torch.long)
    if scenario == "cache grown by cat":
        return model, lambda: model(one, caches)
    return model, lambda: sample(model(one, caches)[0, -1], slow=bool(plant))


def sample(logits: torch.Tensor, *, slow: bool) -> int:
    """The most likely word, found by the operator or by looking at every value."""
    if not slow:
        return int(logits.argmax())
    values = [logits[at].item() for at in range(WORDS)]
    return values.index(max(values))


def recorded(scenario: str, plant: str, steps: int = 8) -> tuple[FindingsResult, float]:
    """Findings of a profiled run on one thread, and the median time of its steps in ns."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            model, step = stepper(scenario, plant)
            for _ in range(3):
                step()
            cpu = [ProfilerActivity.CPU]
            with profile(activities=cpu, record_shapes=True) as recording, module_marks(model):
                for number in range(steps):
                    with record_function(f"ProfilerStep#{number}"):
                        step()
    finally:
        torch.set_num_threads(before)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recording.export_chrome_trace(str(path))
        results = analyse(path)
    median = statistics.median(row.dur_ns for row in results.report.steps)
    return find(results.trace, results.structure, results.report), median
