"""What a worker and the server say to each other. Plain data, no rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROTOCOL = 1
"""Grows when a message changes meaning; a worker of another version claims nothing."""


class SupersededError(Exception):
    """The fence is not the run's any more: somebody else owns it, or it has ended.

    The worker kills its benchmark and deletes its spool; it writes nothing.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerIdentity:
    """Who claims. `name` is unique per process: host:pid:random."""

    name: str
    platform: str
    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A run that is now ours until the lease ends."""

    run_id: int
    attempt: int
    fence: int
    spec: bytes
    limit_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Sign of life of a running benchmark; `phase` and steps are information only."""

    phase: str = ""
    step: int = 0
    steps: int = 0
    log_tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server says to a heartbeat."""

    cancel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of an attempt that lies in a folder of the worker's."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ended.

    `state` is one of succeeded, failed, timed_out, cancelled, or `requeue` for
    a fault of the machine (`counts` says whether the attempt counts: a drain
    does not). `failure_kind` is a `FailureKind` value unless succeeded.
    A run that succeeded has `result.json` and `env.json` among its files.
    """

    state: str
    failure_kind: str = ""
    message: str = ""
    hint: str = ""
    counts: bool = True
    files: tuple[StoredFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceClaim:
    """A trace that is ours to ingest until the lease ends."""

    trace_id: int
    attempt: int
    fence: int
    name: str
    sha256: str
    redact: bool = False
    """Whether a copy without personal details is wanted too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOutcome:
    """`ready` with the files of the ingest, or `rejected` with a reason."""

    state: str
    reason: str = ""
    hint: str = ""
    files: tuple[StoredFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What travels over the broker: which subject, which attempt is expected next."""

    outbox_id: int
    queue: str
    task: str
    subject_id: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What one sweep did."""

    requeued: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    traces: tuple[int, ...] = ()
    extended_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A request for one run."""

    spec: bytes
    platform: str
    limit_s: float | None = None
    rerun_of: int | None = None
