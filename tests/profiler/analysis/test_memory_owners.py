"""What memory at the peak is for, on built records whose truth is known and on a real training."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from profiler.analysis.ingest import ingest
from profiler.analysis.report import MemoryCurve
from tests.profiler.trace.build import TraceBuilder


class Memory(TraceBuilder):
    """Records of one device; `held` counts what is there."""

    held: int = 1000

    def change(self, ts: float, size: int, address: int) -> None:
        self.held += size
        args = {"Bytes": size, "Addr": address, "Device Type": 1, "Device Id": 0}
        args["Total Allocated"] = self.held
        self.events.append(
            {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "args": args}
        )


def curve(made: Memory, tmp_path: Path) -> MemoryCurve:
    (found,) = ingest([made.write(tmp_path / "t.json")], None).memory
    return found


def shares(made: Memory, tmp_path: Path) -> dict[str, int]:
    found = curve(made, tmp_path)
    assert sum(share.bytes for share in found.shares) == found.peak_allocated_bytes
    return {share.category: share.bytes for share in found.shares}


def test_it_tells_temporary_memory_from_what_an_operator_leaves(tmp_path: Path) -> None:
    made = Memory()
    made.mark("ProfilerStep#0", 0, 100)
    made.op("aten::linear", 10, 20)
    made.change(12, 64, 1)
    made.change(14, 32, 2)
    made.change(20, -32, 2)
    made.change(80, -64, 1)
    assert shares(made, tmp_path) == {"before": 1000, "activations": 64, "temporary": 32}


def test_it_knows_a_growing_cache_by_its_operator_and_its_life(tmp_path: Path) -> None:
    made = Memory()
    made.mark("ProfilerStep#0", 0, 100)
    made.mark("ProfilerStep#1", 100, 100)
    made.op("aten::cat", 10, 20)
    made.change(12, 256, 1)
    made.op("aten::add", 40, 20)
    made.change(42, 16, 2)
    made.op("aten::cat", 110, 20)
    made.change(150, -256, 1)
    assert shares(made, tmp_path) == {"before": 1000, "kv cache": 256, "kept": 16}


def test_it_knows_the_phases_of_training(tmp_path: Path) -> None:
    made = Memory()
    made.mark("ProfilerStep#0", 0, 300)
    for phase, at, address in (("forward", 0, 1), ("backward", 100, 2), ("optimizer", 200, 3)):
        made.mark(f"phase: {phase}", at + 1, 90)
        made.op("aten::add", at + 10, 20)
        made.change(at + 12, 10 * address, address)
    expected = {"before": 1000, "activations": 10, "gradients": 20, "optimiser": 30}
    assert shares(made, tmp_path) == expected


def test_an_address_that_is_used_again_is_another_allocation(tmp_path: Path) -> None:
    made = Memory()
    made.op("aten::add", 10, 80)
    for at in (12, 32, 52):
        made.change(at, 100, 7)
        made.change(at + 10, -100, 7)
    found = curve(made, tmp_path)
    assert [(s.category, s.allocations) for s in found.shares] == [("before", 0), ("temporary", 1)]


def test_it_names_module_and_operator_with_layers_together(tmp_path: Path) -> None:
    made = Memory()
    made.mark("ProfilerStep#0", 0, 200)
    for layer in range(2):
        at = 50 * layer
        made.mark(f"module: layers.{layer}.mlp", at + 5, 40)
        made.op("aten::linear", at + 10, 20)
        made.op("aten::addmm", at + 11, 15)
        made.change(at + 12, 500, layer)
    (first, *others) = curve(made, tmp_path).owners
    assert not others
    assert (first.module, first.operator) == ("layers.*.mlp", "aten::linear")
    assert (first.bytes, first.allocations) == (1000, 2)


def test_it_says_nothing_where_frees_are_missing_or_addresses(tmp_path: Path) -> None:
    made = Memory()
    made.held = -600
    made.change(10, 500, 1)
    made.change(20, 300, 2)
    assert curve(made, tmp_path).shares == []
    for event in made.events:
        del event["args"]["Addr"]  # type: ignore[attr-defined]
    assert curve(made, tmp_path).owners == []


def test_it_finds_all_of_a_real_training(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    activities = [ProfilerActivity.CPU]
    with profile(activities=activities, profile_memory=True) as recording:
        for number in range(2):
            with record_function(f"ProfilerStep#{number}"):
                with record_function("phase: forward"):
                    loss = model(torch.ones(32, 64)).sum()
                with record_function("phase: backward"):
                    loss.backward()
                with record_function("phase: optimizer"):
                    optimizer.step()
                    optimizer.zero_grad()
    recording.export_chrome_trace(str(tmp_path / "real.json"))
    (found,) = ingest([tmp_path / "real.json"], None).memory
    parameters = sum(p.numel() * p.element_size() for p in model.parameters())
    by = {share.category: share.bytes for share in found.shares}
    assert sum(by.values()) == found.peak_allocated_bytes
    assert 2 * parameters <= by["optimiser"] < 3 * parameters
    assert by["gradients"] >= parameters
