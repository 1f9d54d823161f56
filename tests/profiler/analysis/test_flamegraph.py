"""The flame graph document: stacks with times that add up, folded at its limit, and counted."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis import flamegraph
from profiler.analysis.flame_document import CATEGORIES, FlameGraph, View, pack, unpack
from profiler.analysis.flamegraph import flame_graph_of
from profiler.analysis.idle import CAUSES
from profiler.analysis.ingest import GRAPH_FILE, analyse, ingest
from profiler.analysis.roofline.peaks import Peaks
from profiler.analysis.roofline.table import roofline
from profiler.errors import TraceError
from tests.profiler.trace.build import TraceBuilder, busy, small


def graph_of(tmp_path: Path, made: TraceBuilder) -> FlameGraph:
    return flame_graph_of(analyse(made.write(tmp_path / "t.json")))


def view_of(graph: FlameGraph, kind: str) -> View:
    view = graph.view(kind)
    assert view is not None
    return view


def stacks(graph: FlameGraph, kind: str) -> dict[tuple[str, ...], int]:
    view = view_of(graph, kind)
    paths: list[tuple[str, ...]] = []
    for parent, name in zip(view.parent, view.name, strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), graph.names[name]))
    return {path: ns for path, ns in zip(paths, view.self_ns, strict=True) if ns}


def test_it_puts_kernels_under_module_and_operator(tmp_path: Path) -> None:
    device = stacks(graph_of(tmp_path, small()), "device")
    assert device["net", "net.fc", "aten::linear", "aten::addmm", "gemm"] == 51_000
    assert device["aten::to", "Memcpy DtoH"] == 8_000


def test_it_knows_a_module_among_python_frames(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.event("python_function", "nn.Module: Linear_0", 0, 30, args={"Python id": 1})
    made.event("python_function", "model.py(3): forward", 1, 28, args={"Python id": 2})
    made.op("aten::mm", 2, 20)
    graph = graph_of(tmp_path, made)
    view = view_of(graph, "host")
    kinds = {graph.names[n]: CATEGORIES[c] for n, c in zip(view.name, view.category, strict=True)}
    assert kinds["nn.Module: Linear_0"] == "module"
    assert kinds["model.py(3): forward"] == "python"


def test_it_has_the_self_time_of_the_host(tmp_path: Path) -> None:
    host = stacks(graph_of(tmp_path, small()), "host")
    assert host["net", "net.fc", "aten::linear"] == 20_000
    assert host["net", "net.fc", "aten::linear", "aten::addmm", "cudaLaunchKernel"] == 10_000


def test_it_puts_idle_time_under_its_cause_and_what_came_late(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, small())
    idle = stacks(graph, "idle")
    assert {path[0] for path in idle} <= {cause.replace("_", " ") for cause in CAUSES}
    assert any(path[1:] == ("aten::to",) for path in idle)
    report = analyse(small().write(tmp_path / "again.json")).report
    assert sum(idle.values()) == sum(row.total_ns for row in report.idle)


@pytest.mark.parametrize("kind", ["device", "host", "idle"])
def test_its_frames_add_up(kind: str, tmp_path: Path) -> None:
    view = view_of(graph_of(tmp_path, busy()), kind)
    tops = [ns for ns, at in zip(view.totals(), view.parent, strict=True) if at < 0]
    assert sum(tops) == sum(view.self_ns) == view.total_ns
    assert all(parent < at for at, parent in enumerate(view.parent))


def test_it_shows_device_time_without_a_host_side(tmp_path: Path) -> None:
    made = small()
    made.kernel("orphan", 500.0, 10)
    graph = graph_of(tmp_path, made)
    assert stacks(graph, "device")[flamegraph.NO_HOST, "orphan"] == 10_000
    view = view_of(graph, "device")
    leaf = view.name.index(graph.names.index("orphan"))
    assert CATEGORIES[view.category[leaf]] == "compute"


def test_it_names_devices_only_where_there_are_several(tmp_path: Path) -> None:
    made = small()
    for number in range(3):
        made.kernel("other", 1000.0 + 50 * number, 10, device=1, stream=3)
    idle = stacks(graph_of(tmp_path, made), "idle")
    assert {path[0] for path in idle} == {"device 0", "device 1"}


def test_it_says_nothing_of_a_device_that_took_no_part(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.op("aten::mm", 0, 10)
    graph = graph_of(tmp_path, made)
    assert [view.kind for view in graph.views] == ["host"]


@given(limit=st.integers(1, 60))
def test_it_folds_what_is_over_the_limit_and_loses_nothing(
    limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    results = analyse(busy().write(tmp_path_factory.mktemp("t") / "t.json"))
    whole = view_of(flame_graph_of(results), "device")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flamegraph, "NODE_LIMIT", limit)
        cut = view_of(flame_graph_of(results), "device")
    assert len(cut.parent) == min(limit, len(whole.parent))
    assert len(cut.parent) + sum(fold.frames for fold in cut.folded) == len(whole.parent)
    tops = sum(ns for ns, at in zip(cut.totals(), cut.parent, strict=True) if at < 0)
    assert tops + sum(f.total_ns for f in cut.folded if f.at < 0) == whole.total_ns


def test_it_says_how_near_the_roofline_an_operator_comes(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.op("aten::mm", 0, 50)["args"] = {
        **{"External id": 1, "Input Dims": [[512, 512], [512, 512]]},
        "Input type": ["float", "float"],
    }
    made.launch(1, 10, 5)
    made.kernel("gemm", 20, 20, correlation=1)
    peaks = Peaks(device="x", flops={"float32": 2 * 512**3 / 10e-6}, bandwidth=1e15)
    results = analyse(made.write(tmp_path / "t.json"))
    roof = roofline(results.trace, results.structure, peaks)
    view = view_of(flame_graph_of(replace(results, roof=roof)), "device")
    reached = dict(zip(view.category, view.efficiency, strict=True))
    assert reached[CATEGORIES.index("operator")] == 500
    assert reached[CATEGORIES.index("compute")] == -1


def test_it_survives_packing(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, busy())
    assert unpack(pack(graph)) == graph
    assert pack(graph) == pack(graph)


@pytest.mark.parametrize("content", [b"", b"{}", gzip.compress(b"{}"), gzip.compress(b"\xff")])
def test_it_says_when_a_stored_graph_is_damaged(content: bytes) -> None:
    with pytest.raises(TraceError, match="damaged"):
        unpack(content)


def test_ingest_stores_it(tmp_path: Path) -> None:
    ingest([small().write(tmp_path / "t.json")], tmp_path / "out")
    assert unpack((tmp_path / "out" / GRAPH_FILE).read_bytes()).steps == 2
