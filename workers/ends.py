"""What an ended benchmark means: state, kind of failure, one sentence and a next step.

The cause is whoever ended it first, so a kill of ours is never taken for a
crash, and "out of memory" is only said with evidence.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec

from dashboard.services.contract import Outcome
from profiler.errors import ExitCode, printable
from profiler.types import Failure
from profiler.units import duration, size

ERROR_FILE = "error.json"
RESULT_FILES = ("result.json", "env.json")
MESSAGE_LIMIT = 900
HINT_LIMIT = 450

_KINDS_OF_THE_BENCHMARK = frozenset(
    {"bad_spec", "crashed", "oom_host", "oom_device", "unsupported", "non_finite"}
    | {"invalid_result", "disk_full", "bad_checkpoint", "compile_failed"}
)
_SEE_LOG = "see the log of the run"
_HOST_MEMORY = re.compile(
    r"^(?:\S*\.)?(?:_Array)?MemoryError\b|DefaultCPUAllocator: .*allocate|std::bad_alloc",
    re.MULTILINE,
)
_DEVICE_MEMORY = re.compile(r"\bOutOfMemoryError\b|CUDA out of memory|HIP out of memory")
_DISK = re.compile(r"\[Errno 28\]|No space left on device|\[Errno 27\]|\[Errno 122\]")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning))\b.*", re.M)


class KilledBy(Enum):
    """Why the supervisor itself ended the benchmark."""

    TIME = "time"
    MEMORY = "memory"
    CANCEL = "cancel"
    DRAIN = "drain"
    ORPHANED = "orphaned"
    DEVICE = "device"
    FENCE = "fence"
    SUPERSEDED = "superseded"


def was_disturbed(by: KilledBy | None) -> bool:
    """Whether it was ended for a reason that is not its own: no time, no memory used up."""
    return by is not None and by not in {KilledBy.TIME, KilledBy.MEMORY}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What is known when the benchmark and all its children are gone."""

    wait_status: int | None
    killed_by: KilledBy | None
    limit_s: float
    memory_bytes: int
    kernel_oom: bool
    output: Path
    log_tail: str


def classify(end: End) -> Outcome:
    """The outcome, without files."""
    if end.killed_by is not None:
        return _killed(end, end.killed_by)
    if end.wait_status is None:
        return _fault("the benchmark's end was not seen")
    if end.wait_status & 0x7F:
        return _signalled(end, end.wait_status & 0x7F)
    code = end.wait_status >> 8
    return _finished(end) if code == 0 else _failed(end, code)


def _killed(end: End, by: KilledBy) -> Outcome:
    if by is KilledBy.TIME:
        return Outcome(
            state="timed_out",
            failure_kind="time_limit",
            message=f"The benchmark was still running after {duration(end.limit_s * 1e9)}",
            hint="give the run more time, or measure less",
        )
    if by is KilledBy.MEMORY:
        return _failure(
            "oom_host",
            f"The benchmark held more than {size(end.memory_bytes)} of memory",
            "use a smaller batch, fewer tokens or a smaller dtype",
        )
    if by is KilledBy.CANCEL:
        return Outcome(state="cancelled", failure_kind="cancelled", message="Cancelled on request")
    if by is KilledBy.DRAIN:
        return _fault("The worker was stopped; the run goes back into the queue", counts=False)
    if by is KilledBy.DEVICE:
        return _fault("The device was busy with another run for too long", counts=False)
    if by is KilledBy.ORPHANED:
        return _lost("The worker died")
    return _lost("The worker lost touch with the server")


def _fault(message: str, *, counts: bool = True) -> Outcome:
    return Outcome(
        state="requeue", failure_kind="worker_fault", message=message, hint=_SEE_LOG, counts=counts
    )


def _lost(message: str) -> Outcome:
    return Outcome(state="requeue", failure_kind="worker_lost", message=message, hint=_SEE_LOG)


def _signalled(end: End, number: int) -> Outcome:
    if number == signal.SIGKILL and end.kernel_oom:
        return _failure(
            "oom_host",
            "The kernel ended the benchmark because the machine ran out of memory",
            "use a smaller batch, fewer tokens or a smaller dtype",
        )
    where = "; the log shows where" if number != signal.SIGKILL else " from outside"
    return _failure("signal", f"The benchmark was ended by {_signal_name(number)}{where}", _SEE_LOG)


def _finished(end: End) -> Outcome:
    for name in RESULT_FILES:
        path = end.output / name
        if path.is_symlink() or not path.is_file():
            return _failure("invalid_result", f"The benchmark wrote no {name}", _SEE_LOG)
    return Outcome(state="succeeded")


def _failed(end: End, code: int) -> Outcome:
    told = _told(end.output / ERROR_FILE)
    if told is not None and told.kind in _KINDS_OF_THE_BENCHMARK:
        return _failure(told.kind, told.message, told.hint)
    if told is not None and code in (ExitCode.USAGE, ExitCode.BAD_INPUT):
        return _failure("bad_spec", told.message, told.hint)
    last = last_words(end.log_tail)
    if code in (ExitCode.USAGE, ExitCode.BAD_INPUT):
        return _failure("bad_spec", last or "The specification was refused", _SEE_LOG)
    if _DEVICE_MEMORY.search(end.log_tail):
        return _failure("oom_device", last, "use a smaller batch, fewer tokens or a smaller dtype")
    if _HOST_MEMORY.search(end.log_tail):
        return _failure("oom_host", last, "use a smaller batch, fewer tokens or a smaller dtype")
    if _DISK.search(end.log_tail):
        return _failure("disk_full", last, "make room on the worker's disk, then run again")
    if code > 128 and end.kernel_oom:
        return _signalled(end, signal.SIGKILL)
    told_text = f": {last}" if last else ""
    return _failure("crashed", f"The benchmark ended with exit code {code}{told_text}", _SEE_LOG)


def _told(path: Path) -> Failure | None:
    """What the benchmark says about its own failure, if it can be believed."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 16:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Failure)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def last_words(log_tail: str) -> str:
    """The last line that looks like an exception, else the last line with text."""
    exceptions = _EXCEPTION.findall(log_tail)
    lines = [line for line in log_tail.splitlines() if line.strip()]
    return exceptions[-1] if exceptions else lines[-1].strip() if lines else ""


def _failure(kind: str, message: str, hint: str = "") -> Outcome:
    return Outcome(
        state="failed",
        failure_kind=kind,
        message=printable(message or "The benchmark failed", MESSAGE_LIMIT),
        hint=printable(hint, HINT_LIMIT),
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
