"""What goes into the event store comes out again, whole or by time window."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import TraceError
from profiler.trace.link import Structure, link
from profiler.trace.model import Trace
from profiler.trace.normalise import normalise
from profiler.trace.read import read
from profiler.trace.store import read_events, write_events
from tests.profiler.trace.build import TraceBuilder, busy


def stored(tmp_path: Path, made: TraceBuilder) -> tuple[Trace, Structure, Path]:
    trace = normalise(read(made.write(tmp_path / "t.json")))
    structure = link(trace)
    path = tmp_path / "events.parquet"
    write_events(trace, structure, path)
    return trace, structure, path


def test_it_reads_back_every_event_by_start(tmp_path: Path) -> None:
    trace, _, path = stored(tmp_path, busy())
    table = read_events(path, columns=["ts_ns", "dur_ns", "name", "kind"])
    order = np.argsort(trace.events.ts, kind="stable")
    assert table["ts_ns"].to_pylist() == (trace.events.ts[order] - trace.start_ns).tolist()
    assert table["dur_ns"].to_pylist() == trace.events.dur[order].tolist()
    names = [trace.strings[n] for n in trace.events.name[order].tolist()]
    assert table["name"].to_pylist() == names


def test_it_keeps_links_as_row_numbers(tmp_path: Path) -> None:
    _, structure, path = stored(tmp_path, busy())
    rows = read_events(path, columns=["name", "kind", "launch", "operator"]).to_pylist()
    kernels = [row for row in rows if row["kind"] == "kernel"]
    assert {rows[row["launch"]]["name"] for row in kernels} == {"cudaLaunchKernel"}
    assert {rows[row["operator"]]["name"] for row in kernels} == {"aten::addmm", "aten::mm"}
    assert len(kernels) == int((structure.op >= 0).sum())


@pytest.mark.parametrize("window", [(0, 10), (100_000, 400_000), (None, 5_000), (1_200_000, None)])
def test_it_reads_a_window_of_time(tmp_path: Path, window: tuple[int | None, int | None]) -> None:
    _, _, path = stored(tmp_path, busy())
    low, high = window
    found = read_events(path, from_ns=low, to_ns=high)["ts_ns"].to_numpy()
    every = read_events(path)["ts_ns"].to_numpy()
    inside = every[(every >= (low or 0)) & (every < (high or every.max() + 1))]
    assert found.tolist() == inside.tolist()


def test_it_writes_equal_files_for_equal_traces(tmp_path: Path) -> None:
    first = stored(tmp_path, busy())[2].read_bytes()
    assert stored(tmp_path, busy())[2].read_bytes() == first


def test_it_leaves_python_frames_to_the_call_tree(tmp_path: Path) -> None:
    made = busy()
    made.event("python_function", "train.py(1): main", 10_000.0, 900.0)
    _, _, path = stored(tmp_path, made)
    assert "python" not in read_events(path, columns=["kind"])["kind"].to_pylist()


def test_it_stores_without_loading_pandas(tmp_path: Path) -> None:
    """Loading it cost a tenth of the time to ingest 200 MB."""
    busy(steps=2).write(tmp_path / "t.json")
    code = (
        "import sys; from pathlib import Path; from profiler.analysis.ingest import ingest;"
        "ingest([Path('t.json')], Path('out')); sys.exit('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert read_events(tmp_path / "out" / "events.parquet").num_rows > 0


def test_it_says_in_one_line_that_a_store_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "events.parquet").write_bytes(b"PAR1")
    with pytest.raises(TraceError, match="cannot be read"):
        read_events(tmp_path / "events.parquet")
