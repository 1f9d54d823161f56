"""Put limits on this process, then become another program: `python -I -S launch.py ... -- CMD`.

A program of its own because limits set between fork and exec of a process
with threads can dead-lock. Imports next to nothing, so that it costs a few
milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_LIMITS = {
    "core": resource.RLIMIT_CORE,
    "fsize": resource.RLIMIT_FSIZE,
    "as": resource.RLIMIT_AS,
    "data": resource.RLIMIT_DATA,
    "cpu": resource.RLIMIT_CPU,
}
CANNOT_START = 127


def main(arguments: list[str]) -> int:
    """`--parent PID --on-parent-end SIGNAL [--session] [--LIMIT N ...] -- CMD ...`."""
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    if "--session" in options:
        options.remove("--session")
        os.setsid()
    pairs = dict(zip(options[::2], options[1::2], strict=True))
    parent = int(pairs.pop("--parent"))
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(int(pairs.pop("--on-parent-end"))), 0, 0, 0)
    if os.getppid() != parent:
        return CANNOT_START
    _offer_to_the_oom_killer(pairs.pop("--oom_score", ""))
    os.nice(int(pairs.pop("--nice", "0")))
    for name, value in pairs.items():
        number = _LIMITS[name.removeprefix("--")]
        hard = resource.getrlimit(number)[1]
        wanted = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
        resource.setrlimit(number, (wanted, wanted))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
    return CANNOT_START


def _offer_to_the_oom_killer(score: str) -> None:
    """The kernel shall end the benchmark first, not the supervisor or the database."""
    if score:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(score)


def command_line(
    command: list[str], *, on_parent_end: signal.Signals, session: bool, limits: dict[str, int]
) -> list[str]:
    """The command that starts `command` below the calling process with these limits."""
    options = ["--parent", str(os.getpid()), "--on-parent-end", str(int(on_parent_end))]
    for name, value in limits.items():
        options += [f"--{name}", str(value)]
    options += ["--session"] if session else []
    return [sys.executable, "-I", "-S", __file__, *options, "--", *command]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
