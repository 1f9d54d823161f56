"""Process trees on Linux: who belongs to a run, how much they hold, and how to end them all.

A process group is not enough: a double-forked `setsid` child leaves it. So
members are found three ways: descent, adoption by a subreaper, and a marker in
the environment that every child inherits.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARKER = "DAYBREAK_RUN"
"""Environment variable that every process of a run or a trace carries."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.02
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be mistaken for a later one of the same number."""

    pid: int
    started: int


@dataclass(frozen=True, slots=True)
class _Stat:
    process: Process
    parent: int
    state: str


def die_with_parent(parent_pid: int, signal_number: int) -> bool:
    """Have the kernel send `signal_number` when the parent ends; False when it has already.

    The kernel means the parent *thread*, so whoever starts us must do so from
    a thread that lives as long as the process.
    """
    _prctl(_PR_SET_PDEATHSIG, signal_number)
    return os.getppid() == parent_pid


def adopt_orphans() -> None:
    """Become the new parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def is_alive(process: Process) -> bool:
    """Whether it still runs; a zombie does not."""
    stat = _stat(process.pid)
    return stat is not None and stat.process == process and stat.state not in "ZX"


def identify(pid: int) -> Process | None:
    """The process that has this number now."""
    stat = _stat(pid)
    return None if stat is None else stat.process


def descendants(root_pid: int) -> set[Process]:
    """Living children of `root_pid`, their children and so on; not itself."""
    children: dict[int, list[_Stat]] = {}
    for stat in _all():
        children.setdefault(stat.parent, []).append(stat)
    found: set[Process] = set()
    todo = [root_pid]
    while todo:
        for stat in children.get(todo.pop(), ()):
            todo.append(stat.process.pid)
            if stat.state not in "ZX":
                found.add(stat.process)
    return found


def marked(marker: str) -> set[Process]:
    """Living processes of this user that carry exactly `marker`."""
    needle = f"{MARKER}={marker}".encode()
    return {process for process, value in _markers() if value == needle}


def _markers() -> Iterable[tuple[Process, bytes]]:
    own = os.getuid()
    prefix = f"{MARKER}=".encode()
    for stat in _all():
        folder = Path("/proc", str(stat.process.pid))
        try:
            if stat.state in "ZX" or folder.stat().st_uid != own:
                continue
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or is not ours to read
            continue
        for variable in variables:
            if variable.startswith(prefix):
                yield stat.process, variable


def send(process: Process, signal_number: int) -> None:
    """Signal exactly this process; one that has ended is no error."""
    with suppress(ProcessLookupError):
        try:
            handle = os.pidfd_open(process.pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            if identify(process.pid) == process:  # a kernel before 5.3: a small gap stays
                os.kill(process.pid, signal_number)
            return
        try:
            if identify(process.pid) == process:
                signal.pidfd_send_signal(handle, signal_number)
        finally:
            os.close(handle)


def reap() -> dict[int, int]:
    """Collect every child that has ended: pid -> wait status."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def end_all(
    members: Callable[[], set[Process]], grace_s: float, tick: Callable[[], object]
) -> set[Process]:
    """TERM, up to `grace_s`, then KILL until none is left; returns what would not die.

    `members` is asked anew each time, so children born meanwhile are caught.
    `tick` runs while waiting: it reaps and drains pipes.
    """
    for process in members():
        send(process, signal.SIGTERM)
    if not _wait_gone(members, grace_s, tick):
        deadline = time.monotonic() + 10
        while members() and time.monotonic() < deadline:
            for process in members():  # stop first: a stopped process starts no others
                send(process, signal.SIGSTOP)
            for process in members():
                send(process, signal.SIGKILL)
            _wait_gone(members, 0.5, tick)
    return members()


def _wait_gone(
    members: Callable[[], set[Process]], limit_s: float, tick: Callable[[], object]
) -> bool:
    deadline = time.monotonic() + limit_s
    while True:
        tick()
        if not members():
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)


def resident_bytes(members: Iterable[Process]) -> int:
    """What they hold together, quickly; a page that several share counts once for each."""
    return sum(_resident_bytes(process.pid) for process in members)


def proportional_bytes(members: Iterable[Process]) -> int:
    """What they hold together, every page counted once; slow for large processes."""
    return sum(_proportional_bytes(process.pid) for process in members)


def machine_memory_bytes() -> int:
    """Memory of this machine, or of the control group around us where that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            value = Path(file).read_text().strip()
        except OSError:
            continue
        if value.isdigit():
            total = min(total, int(value))
    return total


def kernel_oom_kills() -> int:
    """How many processes the kernel has ended for want of memory since it started."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path("/proc", str(pid), "statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:  # it has ended
        return 0


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path("/proc", str(pid), "smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    for line in lines:
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return _resident_bytes(pid)


def _all() -> Iterable[_Stat]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _stat(int(name))
            if stat is not None:
                yield stat


def _stat(pid: int) -> _Stat | None:
    try:
        line = Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = line[line.rindex(")") + 2 :].split()  # the name may itself hold brackets
    return _Stat(Process(pid, int(fields[19])), int(fields[1]), fields[0])
