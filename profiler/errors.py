"""Errors that a person can act on.

A `UserError` is somebody's mistake or a limit of the machine, never ours: the
command line prints it as one line and leaves with `exit_code`, the pages show
`message` and `hint`. Anything else that escapes is our fault (exit 70).
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The command-line contract; the same numbers everywhere."""

    FINE = 0
    REGRESSED = 1
    NUMERICS_WRONG = 2
    INCONCLUSIVE = 3
    NOT_COMPARABLE = 4
    USAGE = 64
    BAD_INPUT = 65
    OUR_FAULT = 70


class UserError(Exception):
    """What is wrong, where, and what to do next."""

    exit_code: ExitCode = ExitCode.BAD_INPUT
    kind: str = "bad_input"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def line(self) -> str:
        """One printable line: control characters of foreign text are shown escaped."""
        text = f"{self.message}. {self.hint}" if self.hint else self.message
        return printable(text)


class SpecError(UserError):
    """A field of a run specification that cannot work; found before any model is built."""

    kind = "bad_spec"


class TraceError(UserError):
    """A file that is no usable trace."""

    kind = "bad_trace"


class CheckpointError(UserError):
    """A folder of weights that is incomplete, damaged or of another model."""

    kind = "bad_checkpoint"


class DeviceMemoryError(UserError):
    """The workload does not fit the device."""

    kind = "oom_device"


class UnsupportedError(UserError):
    """The device or the library cannot run an operator, dtype or attention implementation."""

    kind = "unsupported"


class CompileError(UserError):
    """The graph compiler could not compile the model."""

    kind = "compile_failed"


class NonFiniteError(UserError):
    """The model produced NaN or infinity in the correctness pass."""

    kind = "non_finite"


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def printable(text: str, limit: int = 2000) -> str:
    """Foreign text on one line: control and direction characters escaped, cut at `limit`."""
    shown = text if text.isprintable() else "".join(map(_escaped, text))
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
