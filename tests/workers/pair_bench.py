"""A benchmark that reads what to measure from the tree it runs in: `pair_bench.py SPEC OUT`.

`value.txt` holds nanoseconds, or a word for a way to fail; `environment.txt` a
mark of the environment; `trace.json` what a profiled launch records, where
`FAKE_BENCH_TRACES` names no folder of traces by side. Noise of a tenth of a
percent comes from the process id.
"""

from __future__ import annotations

import dataclasses
import gzip
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import msgspec  # noqa: E402

from profiler import spec as specs  # noqa: E402
from profiler.types import Environment  # noqa: E402
from tests.workers.fake_result import result_of  # noqa: E402


def main(spec_path: Path, out: Path) -> int:
    marks = os.environ.get("FAKE_BENCH_MARKS")
    if marks:
        with open(marks, "a") as file:
            file.write(f"{Path.cwd().name} {time.monotonic_ns()}\n")
    word = Path("value.txt").read_text().strip()
    if word == "crash":
        raise RuntimeError("the kernel launch failed")
    if word == "slow":
        time.sleep(600)
    spec = specs.load(spec_path)
    if spec.profiled_steps:
        (out / "trace.json.gz").write_bytes(recorded())
    value = float(word) * (1 + (os.getpid() % 7 - 3) / 3000)
    result = result_of(spec)
    metric = dataclasses.replace(result.metrics[0], value=value)
    result = dataclasses.replace(result, metrics=(metric,))
    (out / "result.json").write_bytes(msgspec.json.encode(result))
    mark = Path("environment.txt").read_text().strip() if Path("environment.txt").exists() else "c"
    environment = Environment(
        fields={"torch": mark}, missing=(), comparable_hash=mark * 64, exact_hash="e" * 64
    )
    (out / "env.json").write_bytes(msgspec.json.encode(environment))
    return 0


def recorded() -> bytes:
    """The trace of this side, compressed."""
    traces, own = os.environ.get("FAKE_BENCH_TRACES"), Path("trace.json")
    if traces:
        return Path(traces, f"{Path.cwd().name}.gz").read_bytes()
    return gzip.compress(own.read_bytes()) if own.exists() else b"no trace"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
