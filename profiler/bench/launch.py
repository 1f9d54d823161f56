"""Several ranks of one run, started through torchrun. Loads no torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from profiler.bench.output import ERROR
from profiler.errors import ExitCode, UserError
from profiler.types import Failure, RunSpec

GRACE_S = 30.0
"""How long torchrun may take to end its ranks after it was told to."""


def needs_launch(spec: RunSpec) -> bool:
    """Whether this process must start ranks and is none itself."""
    return spec.ranks > 1 and not is_rank()


def is_rank() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ


def launch(spec: RunSpec, spec_file: Path, out: Path) -> int:
    """Run `spec` in `spec.ranks` processes; the exit code, or the `UserError` a rank ended with."""
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(spec.ranks), "-m", "profiler"),
        *("run", str(spec_file), "--out", str(out)),
    ]
    with subprocess.Popen(command) as torchrun:
        try:
            code = torchrun.wait()
        except BaseException:
            _end(torchrun)
            raise
        finally:
            for leftover in out.glob(".partial-*"):
                shutil.rmtree(leftover, ignore_errors=True)
    if code == 0:
        return int(ExitCode.FINE)
    return _failed(out)


def _end(torchrun: subprocess.Popen[bytes]) -> None:
    """Ask torchrun to end its ranks; insist when it does not."""
    torchrun.terminate()
    try:
        torchrun.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        torchrun.kill()


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
