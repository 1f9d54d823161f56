"""Speed and memory of ingest against `json.load` of the same file in the same run.

Makes traces of 200 MB and 1 GB by tiling a real DDP trace in time (or a
generated one where the shared traces are absent), ingests each in a fresh
process and prints a table. Goals: at most half the time of `json.load`, at
most 400 MB (200 MB file) and 600 MB (1 GB file) of memory over all processes,
and 1 GB in at most 5.5 times the time of 200 MB. Side by side, HolisticTraceAnalysis
only loads the same file, in an environment of its own which is made on first
use (`--no-peer` leaves it out): goals are 8 times (200 MB) and 20 times (1 GB)
faster. Other programs on the machine change the ratios; the load is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "traces" / "ddp-a100-ncclmeta.json.gz"
MB = 1_000_000
IDS = ("External id", "correlation", "Ev Idx", "Record function id")
STRIDE_US = 800_000.0


@dataclass(frozen=True)
class Size:
    """A file size to measure and the memory allowed for it."""

    megabytes: int
    rss_limit_mb: int
    peer_factor: float


SIZES = (Size(200, 400, 8.0), Size(1000, 600, 20.0))
RATIO = 0.5
GROWTH = 5.5
PEER = ("HolisticTraceAnalysis==0.5.0", "pandas==2.3.3")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PEER_HOME = CACHE / "daybreak" / "bench-hta-0.5.0"


@dataclass(frozen=True)
class Row:
    """One measured size."""

    megabytes: float
    events: int
    json_s: float
    ingest_s: float
    rss_mb: float
    peer_s: float | None


def source_trace() -> dict[str, object]:
    """The trace to tile."""
    if REAL.exists():
        loaded: dict[str, object] = json.loads(gzip.decompress(REAL.read_bytes()))
        return loaded
    sys.path.insert(0, str(ROOT))
    from tests.profiler.trace.build import busy

    return busy(steps=60).data()


def template(event: dict[str, object]) -> tuple[str, list[str]]:
    """The event as text with %s for what differs per tile, and the keys of those places."""
    marked = dict(event)
    for key in ("ts", "id"):
        if isinstance(marked.get(key), int | float):
            marked[key] = f"@{key}@"
    args = event.get("args")
    if isinstance(args, dict):
        marked["args"] = {k: f"@{k}@" if k in IDS else v for k, v in args.items()}
    if str(event.get("name", "")).startswith("ProfilerStep#"):
        marked["name"] = "ProfilerStep#@step@"
    text = json.dumps(marked, indent=2).replace("%", "%%")
    keys = [a or b for a, b in re.findall(r'"@([^@"]+)@"|@(step)@', text)]
    return re.sub(r'"@[^@"]+@"|@step@', "%s", text), keys


def write_tiled(path: Path, megabytes: int) -> int:
    """Write at least `megabytes` of trace in Kineto's layout; returns the number of events."""
    document = source_trace()
    events = document["traceEvents"]
    assert isinstance(events, list)
    templates = [(*template(event), event) for event in events]
    head = {k: v for k, v in document.items() if k not in ("traceEvents", "traceName", "INFO")}
    count = tile = 0
    with path.open("w") as file:
        file.write(json.dumps(head, indent=2).rstrip("}\n") + ',\n  "traceEvents": [\n  ')
        while file.tell() < megabytes * MB:
            texts = [fill(text, keys, event, tile) for text, keys, event in templates]
            file.write((",\n  " if tile else "") + ",\n  ".join(texts))
            count += len(texts)
            tile += 1
        file.write('\n  ],\n  "traceName": "tiled.json"\n}\n')
    return count


def fill(text: str, keys: list[str], event: dict[str, object], tile: int) -> str:
    """One event of one tile: time shifted, ids made unique."""
    args = event.get("args")
    values: list[str] = []
    for key in keys:
        if key == "ts":
            values.append(f"{float(str(event['ts'])) + tile * STRIDE_US:.3f}")
        elif key == "step":
            number = int(str(event["name"]).rpartition("#")[2])
            values.append(str(number + 3 * tile))
        else:
            own = event[key] if key == "id" else args[key] if isinstance(args, dict) else 0
            values.append(str(int(str(own)) + tile * 1_000_000))
    return text % tuple(values)


def peer_python() -> str:
    """The interpreter of the peer's environment, which is made if it is not there yet."""
    python = PEER_HOME / "bin" / "python"
    marker = PEER_HOME / "installed"
    if not marker.exists():
        venv.create(PEER_HOME, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PEER], check=True)
        marker.write_text("\n".join(PEER))
    return str(python)


def run_child(code: str, *arguments: str, python: str = sys.executable) -> list[float]:
    """Numbers in the last line printed by a fresh interpreter that runs `code`."""
    done = subprocess.run(
        [python, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(part) for part in done.stdout.splitlines()[-1].split()]


JSON_LOAD = """
import json, sys, time
start = time.perf_counter()
with open(sys.argv[1]) as file:
    json.load(file)
print(time.perf_counter() - start)
"""

INGEST = """
import sys, time
from pathlib import Path
start = time.perf_counter()
from profiler.analysis.ingest import ingest
ingest([Path(sys.argv[1])], Path(sys.argv[2]))
print(time.perf_counter() - start)
"""


PEER_LOAD = """
import sys, time
start = time.perf_counter()
from hta.common.trace import Trace
trace = Trace(trace_files={0: sys.argv[1]}, trace_dir="")
trace.parse_traces(use_multiprocessing=False)
assert len(trace.get_trace(0))
print(time.perf_counter() - start)
"""


def ingest_child(path: Path, out: Path) -> tuple[float, float]:
    """Seconds of one ingest in a fresh process, and the most memory it and its helpers held."""
    process = subprocess.Popen(
        [sys.executable, "-c", INGEST, str(path), str(out)], cwd=ROOT, stdout=subprocess.PIPE
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_rss(process.pid))
        time.sleep(0.03)
    assert process.returncode == 0, "ingest failed"
    assert process.stdout is not None
    return float(process.stdout.read()), peak / 1e6


def tree_rss(pid: int) -> int:
    """Resident bytes of a process and its children now, from /proc."""
    total = 0
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in [str(pid), *children]:
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            total += pages * resource.getpagesize()
    return total


def measure(size: Size, folder: Path, repeats: int, peer: str | None) -> Row:
    """The best of `repeats` runs of either side, alternating; the peer runs once."""
    path = folder / f"tiled-{size.megabytes}.json"
    events = write_tiled(path, size.megabytes)
    loads, ingests, rss = [], [], []
    for _ in range(repeats):
        loads.append(run_child(JSON_LOAD, str(path))[0])
        took, peak = ingest_child(path, folder / "out")
        ingests.append(took)
        rss.append(peak)
    peer_s = None if peer is None else run_child(PEER_LOAD, str(path), python=peer)[0]
    megabytes = path.stat().st_size / MB
    path.unlink()
    return Row(megabytes, events, min(loads), min(ingests), max(rss), peer_s)


def line_of(row: Row) -> str:
    """One line of the table."""
    peer = f"{row.peer_s:8.1f}s {row.peer_s / row.ingest_s:5.1f}x" if row.peer_s else ""
    return (
        f"{row.megabytes:7.0f} {row.events:10,} {row.json_s:9.2f}s {row.ingest_s:7.2f}s "
        f"{row.ingest_s / row.json_s:6.2f} {row.rss_mb:7.0f} {os.getloadavg()[0]:5.1f} {peer}"
    )


def misses_of(size: Size, row: Row) -> list[str]:
    """The goals a size does not meet."""
    missed = []
    ratio = row.ingest_s / row.json_s
    if ratio > RATIO:
        missed.append(f"{size.megabytes} MB took {ratio:.2f} x json.load, goal {RATIO}")
    if row.rss_mb > size.rss_limit_mb:
        missed.append(f"{size.megabytes} MB needed {row.rss_mb:.0f} MB, goal {size.rss_limit_mb}")
    if row.peer_s is not None and row.peer_s < size.peer_factor * row.ingest_s:
        factor = row.peer_s / row.ingest_s
        missed.append(f"{size.megabytes} MB was {factor:.1f} x HTA, goal {size.peer_factor:.0f}")
    return missed


def main() -> int:
    """Measure, print the table, say whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", type=int, help="only this size in MB")
    parser.add_argument("--no-peer", action="store_true", help="do not run HolisticTraceAnalysis")
    options = parser.parse_args()
    peer = None if options.no_peer else peer_python()
    missed: list[str] = []
    rows: list[Row] = []
    print(
        f"{'MB':>7} {'events':>10} {'json.load':>10} {'ingest':>8} {'ratio':>6} {'RSS MB':>7} "
        f"{'load':>5} {'HTA load':>9} {'faster':>6}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            if options.only in (None, size.megabytes):
                rows.append(measure(size, Path(folder), options.repeats, peer))
                missed += misses_of(size, rows[-1])
                print(line_of(rows[-1]), flush=True)
    if len(rows) == 2:
        growth = rows[1].ingest_s / rows[0].ingest_s
        print(f"1 GB / 200 MB time: {growth:.2f}")
        if growth > GROWTH:
            missed.append(f"1 GB took {growth:.2f} x 200 MB, goal {GROWTH}")
    print(f"goal missed: {'; '.join(missed)}" if missed else "goal met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
