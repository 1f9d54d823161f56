"""Several ranks of one run, started through torchrun. Loads no torch."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil

from profiler.bench.ending import deafen, is_rank
from profiler.bench.output import ERROR, sweep
from profiler.errors import ExitCode, UserError
from profiler.types import Failure, RunSpec

GRACE_S = 40.0
"""How long torchrun may take to end its ranks once told to; it kills them itself after 30 s."""


def needs_launch(spec: RunSpec) -> bool:
    """Whether this process must start ranks and is none itself."""
    return spec.ranks > 1 and not is_rank()


def launch(spec: RunSpec, spec_file: Path, out: Path) -> int:
    """Run `spec` in `spec.ranks` processes; the exit code, or the `UserError` a rank ended with."""
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(spec.ranks), "-m", "profiler"),
        *("run", str(spec_file), "--out", str(out)),
    ]
    try:
        with subprocess.Popen(command) as torchrun:
            try:
                code = torchrun.wait()
            except BaseException:
                deafen()
                _end(torchrun)
                raise
    finally:
        sweep(out)
    if code == 0:
        return int(ExitCode.FINE)
    return _failed(out)


def _end(torchrun: subprocess.Popen[bytes]) -> None:
    """Ask torchrun to end its ranks; end whoever of them is left when it does not."""
    ranks = _descendants(torchrun.pid)
    torchrun.terminate()
    try:
        torchrun.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        torchrun.kill()
    for left in ranks:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.kill()


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _failed(out: Path) -> int:
    path = out / ERROR
    if not path.exists():
        return int(ExitCode.OUR_FAULT)
    failure = msgspec.json.decode(path.read_bytes(), type=Failure)
    if failure.kind == "crashed":
        return int(ExitCode.OUR_FAULT)
    error = UserError(failure.message, failure.hint)
    error.kind = failure.kind
    raise error
