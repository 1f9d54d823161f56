"""Agreement with torch's own tables on traces that torch records here."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from profiler.analysis.ingest import ingest
from profiler.analysis.report import Report


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, dict[str, float]]:
    folder = tmp_path_factory.mktemp("torch")
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        for _ in range(2):
            with record_function("phase: forward"), record_function("module: net"):
                out = model(torch.randn(32, 64))
            with record_function("phase: backward"):
                out.sum().backward()
            prof.step()
    prof.export_chrome_trace(str(folder / "trace.json"))
    own = {row.key: row.self_cpu_time_total * 1000 for row in prof.key_averages()}
    return ingest([folder / "trace.json"], folder / "out"), own


def test_it_agrees_with_key_averages_on_the_top_operators(
    recorded: tuple[Report, dict[str, float]],
) -> None:
    report, torch_self_ns = recorded
    top = sorted(report.operators, key=lambda row: -row.host_self_ns)[:5]
    for row in top:
        assert row.host_self_ns == pytest.approx(torch_self_ns[row.name], rel=0.01)


def test_it_gives_backward_work_to_the_module_of_the_forward(
    recorded: tuple[Report, dict[str, float]],
) -> None:
    report, _ = recorded
    assert [row.path for row in report.modules] == ["net"]
    assert report.trace.device_kind == "cpu"
    assert report.timeline == []


def test_it_stores_an_events_file_and_a_flame_graph(
    recorded: tuple[Report, dict[str, float]], tmp_path: Path
) -> None:
    report, _ = recorded
    folder = Path(report.trace.path).parent / "out"
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        *("events.parquet", "flame.speedscope.json.gz", "flamegraph.json.gz"),
        *("replay.bin", "report.json", "stepprofile.json.gz"),
    ]
