"""Coverage-guided fuzzing of ingest with atheris: a report or a `TraceError`, never anything else.

    make bench-fuzz                        a minute on one core
    python tests/bench/bench_fuzz.py --seconds 3600

Starts from small generated traces and, where they are present, the shared
malformed files; installs atheris when it is missing.
An input that breaks ingest is kept as `crash-*` in the folder it names, ready
to become a test.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MALFORMED = ROOT.parent / "shared" / "traces" / "malformed"
LONGEST_INPUT = 16_384
ATHERIS = "atheris>=3,<4"

TARGET = """
import sys
from pathlib import Path
import atheris
with atheris.instrument_imports(include=["profiler"]):
    from profiler.analysis.ingest import ingest
    from profiler.analysis import analyse, calls, collectives
    from profiler.analysis.report import dump
    from profiler.errors import TraceError
    import profiler.trace.store, profiler.trace.share
    from profiler.trace.limits import Limits

folder = Path(sys.argv[1]).parent

def one(content):
    path = folder / "t.json"
    path.write_bytes(content)
    try:
        dump(ingest([path], folder / "out", limits=Limits(processes=1, block_bytes=1024)))
    except TraceError as error:
        assert "\\n" not in error.line()

atheris.Setup(sys.argv, one)
atheris.Fuzz()
"""


def seeds(folder: Path) -> int:
    """Write the inputs to start from; returns how many."""
    sys.path.insert(0, str(ROOT))
    from tests.profiler.trace.build import busy, small

    texts = [json.dumps(made.data()).encode() for made in (small(), busy(steps=1))]
    found = [path.read_bytes() for path in sorted(MALFORMED.glob("*.json*")) if path.is_file()]
    inputs = [*texts, gzip.compress(texts[0]), *found]
    kept = [text for text in inputs if len(text) <= LONGEST_INPUT]
    for number, text in enumerate(kept):
        (folder / f"seed-{number}").write_bytes(text)
    return len(kept)


def install() -> None:
    """Install atheris into this environment when it is not there."""
    if importlib.util.find_spec("atheris") is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "-qq", ATHERIS], check=True)


def main() -> int:
    """Fuzz for the given time, print the table, say whether anything broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    install()
    folder = Path(tempfile.mkdtemp(prefix="daybreak-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    count = seeds(corpus)
    command = [sys.executable, "-c", TARGET, str(corpus), f"-max_total_time={options.seconds}"]
    command += [f"-max_len={LONGEST_INPUT}", "-rss_limit_mb=4096", "-timeout=60"]
    command += [f"-artifact_prefix={folder}/", "-print_final_stats=1"]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    stats = dict(re.findall(r"stat::(\w+):\s+(\d+)", done.stderr))
    covered = re.findall(r"\bcov: (\d+)", done.stderr)
    print(f"{'seconds':>8} {'seeds':>6} {'inputs run':>11} {'branches seen':>14}")
    runs, seen = stats.get("number_of_executed_units", "?"), covered[-1] if covered else "?"
    print(f"{options.seconds:8} {count:6} {runs:>11} {seen:>14}")
    if done.returncode:
        print(done.stderr[-4000:])
        print(f"goal missed: an input broke ingest; it is kept in {folder}")
        return 1
    shutil.rmtree(folder)
    print("goal met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
