"""A benchmark that behaves as badly as it is told: `fake_bench.py MODE SPEC OUT`.

Stands in for `python -m profiler run` in the tests; loads nothing heavy.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SLEEPER = "import time; time.sleep(600)"


def say(descriptor: int, text: str) -> None:
    """One line, at once."""
    os.write(descriptor, f"{text}\n".encode())


def progress(phase: str, step: int, steps: int) -> None:
    """A sign of life in the form of the contract."""
    line = {"event": "progress", "phase": phase, "step": step, "steps": steps, "message": ""}
    say(1, json.dumps(line))


def write_result(spec: Path, out: Path) -> None:
    """A small, complete and plausible result of `spec`."""
    sys.path.insert(0, str(HERE.parent.parent))
    from tests.workers.fake_result import write

    write(spec, out)


def mark(name: str) -> None:
    """Append `name` and the time to the file that FAKE_BENCH_MARKS names."""
    path = os.environ.get("FAKE_BENCH_MARKS")
    if path:
        with open(path, "a") as file:
            file.write(f"{name} {os.getpid()} {time.monotonic_ns()}\n")


def quick(spec: Path, out: Path) -> int:
    mark("start")
    progress("timed", 1, 1)
    say(2, "measured")
    write_result(spec, out)
    mark("end")
    return 0


def slow(spec: Path, out: Path) -> int:
    """Two seconds, or as long as FAKE_BENCH_SECONDS says."""
    mark("start")
    end = time.monotonic() + float(os.environ.get("FAKE_BENCH_SECONDS", "2"))
    while time.monotonic() < end:
        progress("timed", 1, 2)
        time.sleep(0.05)
    write_result(spec, out)
    mark("end")
    return 0


def sleep(spec: Path, out: Path) -> int:
    mark("start")
    say(2, "now silent")
    time.sleep(600)
    return 0


def hang(spec: Path, out: Path) -> int:
    """Ignores TERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return sleep(spec, out)


def segv(spec: Path, out: Path) -> int:
    ctypes.string_at(0)
    return 0


def abort(spec: Path, out: Path) -> int:
    os.abort()


def kill_self(spec: Path, out: Path) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def oom(spec: Path, out: Path) -> int:
    """Grows by 20 MB at a time until somebody ends it."""
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 20) * 20))
        time.sleep(0.05)


def memory_error(spec: Path, out: Path) -> int:
    raise MemoryError("no room for the weights")


def flood(spec: Path, out: Path) -> int:
    """FAKE_BENCH_MB megabytes of output, then a result."""
    os.write(1, b"the first line\n")
    piece = (b"x" * 99 + b"\n") * 10_486
    for _ in range(int(os.environ.get("FAKE_BENCH_MB", "200"))):
        os.write(1, piece)
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    say(2, next(line for line in status.splitlines() if line.startswith("VmHWM")))
    os.write(1, b"the last line\n")
    write_result(spec, out)
    return 0


def noise(spec: Path, out: Path) -> int:
    """Escapes, NUL, bytes that are no text, a very long line."""
    os.write(2, b"\x1b[31mred\x1b[0m\x00 \xff\xfe \x1b]0;title\x07end\r\n" + b"y" * 50_000 + b"\n")
    write_result(spec, out)
    return 0


def escape(spec: Path, out: Path) -> int:
    """Leaves a grandchild behind in a session of its own that ignores TERM, and succeeds."""
    code = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
    subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
    write_result(spec, out)
    return 0


def fork(spec: Path, out: Path) -> int:
    """Children of children, then silence."""
    for _ in range(3):
        code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPER!r}]);"
        subprocess.Popen([sys.executable, "-S", "-c", code + SLEEPER], start_new_session=True)
    return sleep(spec, out)


def nan(spec: Path, out: Path) -> int:
    write_result(spec, out)
    text = (out / "result.json").read_text()
    (out / "result.json").write_text(text.replace('"value":', '"value":NaN,"was":', 1))
    return 0


def no_result(spec: Path, out: Path) -> int:
    return 0


def refuse(spec: Path, out: Path) -> int:
    """A mistake of a person, told the way the profiler tells it."""
    told = {"kind": "oom_device", "message": "does not fit", "hint": "use less", "schema": 1}
    (out / "error.json").write_text(json.dumps(told))
    return 65


def refuse_silently(spec: Path, out: Path) -> int:
    say(2, "spec.batch is 0")
    return 65


def crash(spec: Path, out: Path) -> int:
    raise RuntimeError("the kernel launch failed")


def disk_full(spec: Path, out: Path) -> int:
    raise OSError(28, "No space left on device")


def kill_parent(spec: Path, out: Path) -> int:
    """A poison run: ends the worker two levels up, if it is the one we think it is."""
    supervisor = os.getppid()
    status = Path(f"/proc/{supervisor}/stat").read_text()
    worker = int(status[status.rindex(")") + 2 :].split()[1])
    if b"workers.worker" in Path(f"/proc/{worker}/cmdline").read_bytes():
        os.kill(worker, signal.SIGKILL)
    return sleep(spec, out)


def tell_environment(spec: Path, out: Path) -> int:
    say(2, json.dumps(dict(os.environ)))
    write_result(spec, out)
    return 0


MODES: dict[str, Callable[[Path, Path], int]] = {
    name.replace("_", "-"): mode
    for name, mode in list(globals().items())
    if callable(mode) and getattr(mode, "__module__", "") == "__main__" and name != "Path"
}


if __name__ == "__main__":
    sys.exit(MODES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3])))
