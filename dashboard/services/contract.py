"""What a worker and the server say to each other. Plain data, no rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from profiler.analysis.known import Known

PROTOCOL = 2
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
class Origin:
    """Where a mirror gets its commits from, and which refs it may take."""

    repository_id: int
    address: str
    private_network: bool
    allowed_refs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A commit that is checked out and built before it is measured."""

    origin: Origin
    sha: str
    import_paths: tuple[str, ...] = (".",)
    build_command: tuple[str, ...] = ()
    build_limit_s: float = 1800.0
    build_memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchClaim:
    """A repository that is ours to fetch until the lease ends.

    `known` are the SHAs of its refs at the last fetch: what they reach is stored already.
    """

    origin: Origin
    fence: int
    known: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCommit:
    """A commit as git tells of it; times are seconds since 1970 as the author chose them."""

    sha: str
    parents: tuple[str, ...]
    author: str
    authored_s: int
    committed_s: int
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a fetch found; `commits` are the new ones, parents before children."""

    heads: dict[str, str] = field(default_factory=dict)
    default_branch: str = ""
    head_sha: str = ""
    commits: tuple[FoundCommit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPair:
    """A pair to measure; `order` is AB when the baseline comes first, BA when the candidate."""

    number: int
    order: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The pairs of one workload that are measured in one reservation of the device.

    `pairs` are what is left of the rung of `total` that was reached, of which `done` were
    measured before; the server says whether the next rung is due, up to `most` pairs in all.
    With `profiled_steps` one more launch per side is recorded by the profiler at the end.
    """

    baseline: Source
    candidate: Source
    pairs: tuple[PlannedPair, ...]
    done: int
    total: int
    most: int
    profiled_steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """What a session measures next: `pairs` up to `total` in all, none once it is decided."""

    pairs: tuple[PlannedPair, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A run that is now ours until the lease ends; with a session it measures pairs."""

    run_id: int
    attempt: int
    fence: int
    spec: bytes
    limit_s: float
    memory_bytes: int
    source: Source | None = None
    session: Session | None = None


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
class Launched:
    """How one launch of a session ended: with files, or with the kind of its failure.

    `pair` is None for the launch that is profiled and counts for nothing.
    """

    pair: PlannedPair | None
    side: str
    took_ns: int
    failure_kind: str = ""
    message: str = ""
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
    known: Known | None = None
    """What the run's workload and platform say beside the trace; None for uploads."""


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
