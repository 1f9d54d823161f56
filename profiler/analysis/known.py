"""What a workload's history and platform say beside a trace, as a file the reader is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from profiler.analysis.bounds import PeakFacts, TypicalCall
from profiler.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known before a trace is read.

    `dtype` the workload runs in; `noise` floor of its headline metric as a
    share; `step_ns` the step of the same run timed without a profiler; `peak`
    of the platform where measured or entered there (else the catalogue's for
    the recorded device name); `past` calls of its comparable best run, which
    is called `past_run` at `past_commit`.
    """

    dtype: str | None = None
    noise: float = 0.0
    step_ns: float | None = None
    peak: PeakFacts | None = None
    past: list[TypicalCall] = field(default_factory=list)
    past_run: str = ""
    past_commit: str = ""


_DECODER = msgspec.json.Decoder(Known)


def dump_known(known: Known) -> bytes:
    """As JSON."""
    return msgspec.json.encode(known)


def load_known(path: Path) -> Known:
    """From the file `dump_known` filled; raises `UserError` when it is none."""
    try:
        return _DECODER.decode(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path} cannot be read: {reason}", "name an existing file") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} says nothing about a workload: {error}", "leave --known out"
        ) from None
