"""This process among the ranks of a run: joining, wrapping the model, the slowest rank's times."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from profiler.bench.scenarios.base import Stamps
from profiler.bench.summary import median, summarise
from profiler.types import Metric, RunSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Where this process stands: rank `rank` of `count`; alone when `count` is 1."""

    rank: int
    count: int

    @property
    def leads(self) -> bool:
        """Whether this rank reports and stores the result."""
        return self.rank == 0

    def suffix(self, name: str) -> str:
        """`name` of a file each rank writes: the first rank's stays, others get their number."""
        stem, _, rest = name.partition(".")
        return name if self.leads else f"{stem}-rank{self.rank}.{rest}"

    def device(self, name: str) -> str:
        """The device of this rank: accelerators are dealt by local rank, the CPU is shared."""
        if self.count == 1 or name == "cpu" or ":" in name:
            return name
        return f"{name}:{os.environ.get('LOCAL_RANK', '0')}"

    def barrier(self) -> None:
        """Wait for every rank."""
        if self.count > 1:
            dist.barrier()

    def wrap(self, model: torch.nn.Module, spec: RunSpec) -> torch.nn.Module:
        """`model` in the parallel form of `spec`; a split model is left as it is."""
        if spec.parallel == "data":
            return DistributedDataParallel(model)
        if spec.parallel == "fsdp":
            from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard

            policy = CPUOffloadPolicy() if spec.offload == "cpu" else OffloadPolicy()
            for layer in _layers(model):
                fully_shard(layer, offload_policy=policy)
            fully_shard(model, offload_policy=policy)
        return model

    def highest(self, metric: Metric) -> Metric:
        """`metric` with one sample per rank and the highest as its value; every rank calls it."""
        if self.count == 1:
            return metric
        of_ranks = self.gathered(metric.value)
        return summarise(
            metric.name,
            of_ranks,
            value=max(of_ranks),
            phase=metric.phase,
            method=f"{metric.method}; highest of {self.count} ranks",
        )

    def slowest(self, units: Sequence[Stamps]) -> tuple[list[Stamps], tuple[float, ...]]:
        """The slowest rank's unit of each iteration, and every rank's median duration in ns."""
        if self.count == 1:
            return list(units), ()
        of_ranks = self.gathered(list(units))
        medians = tuple(median([unit[-1] - unit[0] for unit in rank]) for rank in of_ranks)
        return slowest_units(of_ranks), medians

    def gathered(self, own: T) -> list[T]:
        """What every rank gave, by rank; every rank calls it."""
        gathered: list[T | None] = [None] * self.count
        dist.all_gather_object(gathered, own)
        return cast("list[T]", gathered)


def slowest_units(of_ranks: Sequence[Sequence[Stamps]]) -> list[Stamps]:
    """For each iteration the stamps of the rank that took longest."""
    return [
        max(iteration, key=lambda unit: unit[-1] - unit[0])
        for iteration in zip(*of_ranks, strict=True)
    ]


@contextlib.contextmanager
def joined(spec: RunSpec) -> Iterator[Ranks]:
    """Join the ranks of `spec`, leave them at the end; alone without a process group."""
    if spec.ranks == 1:
        yield Ranks(rank=0, count=1)
        return
    dist.init_process_group("gloo" if spec.device == "cpu" else None)
    try:
        yield Ranks(rank=dist.get_rank(), count=dist.get_world_size())
    finally:
        dist.destroy_process_group()


def _layers(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The repeated blocks of a model: the members of its longest module list."""
    lists = [list(m) for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len, default=[])
