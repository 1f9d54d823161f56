"""The spool: a folder per attempt through which worker and supervisor talk.

`job.json` says what to run, `outcome.json` how it ended; both are durable
before anybody acts on them, so an end is never lost with the process that saw it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dashboard.services.contract import Outcome, Session, Source, StoredFile
from workers.processes import MARKER

JOB_FILE = "job.json"
OUTCOME_FILE = "outcome.json"
OWNER_LOCK = "owner.lock"
SUPERVISOR_LOCK = "supervisor.lock"
OUTPUT_FOLDER = "out"
LOG_FILE = "log.txt"
REMAINS_AGE_S = 3600.0
_FOLDER_NAME = re.compile(r"run-(\d+)-f(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds, already scaled."""

    heartbeat_s: float
    self_fence_s: float
    term_grace_s: float
    lock_wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A commit to be laid out in a folder of the spool; `side` says which of several it is."""

    name: str
    source: Source
    side: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a supervisor is to run; `tree` names the tree it runs in, if any."""

    run_id: int
    attempt: int
    fence: int
    command: tuple[str, ...]
    limit_s: float
    memory_bytes: int
    device_lock: str
    parent_pid: int
    timing: Timing
    var_dir: str = ""
    trees: tuple[Tree, ...] = ()
    tree: str = ""
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class Spool:
    """The folder of one attempt."""

    folder: Path

    @classmethod
    def of(cls, root: Path, run_id: int, fence: int) -> Spool:
        """Where the attempt's folder lies; not made here."""
        return cls(root / f"run-{run_id}-f{fence}")

    @property
    def output(self) -> Path:
        return self.folder / OUTPUT_FOLDER

    @property
    def run_and_fence(self) -> tuple[int, int]:
        """Which attempt the folder belongs to."""
        found = _FOLDER_NAME.fullmatch(self.folder.name)
        if found is None:
            raise ValueError(f"not a spool folder: {self.folder}")
        return int(found[1]), int(found[2])

    @property
    def marker(self) -> str:
        """What every process of this attempt carries in its environment."""
        return folder_marker(self.folder)

    def write_job(self, job: Job) -> None:
        write_durably(self.folder / JOB_FILE, msgspec.json.encode(job))

    def read_job(self) -> Job:
        return msgspec.json.decode((self.folder / JOB_FILE).read_bytes(), type=Job)

    def write_outcome(self, outcome: Outcome) -> None:
        write_durably(self.folder / OUTCOME_FILE, msgspec.json.encode(_relative(self, outcome)))

    def read_outcome(self) -> Outcome | None:
        """How the attempt ended; None when nobody lived to say."""
        try:
            raw = (self.folder / OUTCOME_FILE).read_bytes()
        except FileNotFoundError:
            return None
        written = msgspec.json.decode(raw, type=_WrittenOutcome)
        files = tuple(
            StoredFile(name=name, path=self.folder / path) for name, path in written.files.items()
        )
        return Outcome(
            state=written.state,
            failure_kind=written.failure_kind,
            message=written.message,
            hint=written.hint,
            counts=written.counts,
            files=files,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenOutcome:
    state: str
    failure_kind: str
    message: str
    hint: str
    counts: bool
    files: dict[str, str]


def _relative(spool: Spool, outcome: Outcome) -> _WrittenOutcome:
    return _WrittenOutcome(
        state=outcome.state,
        failure_kind=outcome.failure_kind,
        message=outcome.message,
        hint=outcome.hint,
        counts=outcome.counts,
        files={file.name: str(file.path.relative_to(spool.folder)) for file in outcome.files},
    )


def folder_marker(folder: Path) -> str:
    """The value of the marker variable for work in `folder`.

    Covers the whole path: another installation on this host has a run of the
    same number, and its processes are not ours to end.
    """
    place = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return f"{folder.name}:{place}"


def marker_variable(marker: str) -> dict[str, str]:
    """The variable that carries `marker`."""
    return {MARKER: marker}


def make_owned(folder: Path) -> FileLock:
    """Make `folder` and its owner's lock at once: it is never seen without an owner."""
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.mkdir(mode=0o700, parents=True)
    owner = FileLock(draft / OWNER_LOCK)
    if not owner.take():
        raise RuntimeError(f"somebody holds the lock in the new folder {draft}")
    draft.rename(folder)
    return owner


def remove(folder: Path) -> None:
    """Take `folder` out of everybody's sight, then delete it."""
    grave = folder.with_name(f".{folder.name}.{os.getpid()}.{secrets.token_hex(4)}")
    folder.rename(grave)
    shutil.rmtree(grave, onerror=_open_and_retry)


def _open_and_retry(function: Callable[[str], object], path: str, error: object) -> None:
    """A build may leave folders that not even their owner may enter."""
    for place in (os.path.dirname(path), path):
        if not os.path.islink(place):
            os.chmod(place, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        function(path)


def remove_remains(root: Path) -> None:
    """Delete what a killed process left half made or half deleted."""
    for folder in root.glob(".*"):
        try:
            age_s = time.time() - folder.stat().st_mtime
        except FileNotFoundError:  # whoever was at it has finished
            continue
        if age_s > REMAINS_AGE_S:
            shutil.rmtree(folder, ignore_errors=True)


def spools(root: Path) -> Iterator[Spool]:
    """Every attempt's folder below `root`."""
    if root.is_dir():
        for folder in sorted(root.iterdir()):
            if _FOLDER_NAME.fullmatch(folder.name) and folder.is_dir():
                yield Spool(folder)


def write_durably(path: Path, data: bytes) -> None:
    """Visible whole or not at all, also after a power cut."""
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class FileLock:
    """An advisory lock that its holder's end releases, however it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Take it if it is free; whether it is ours now."""
        if self._descriptor is not None:
            return True
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock just now."""
    lock = FileLock(path)
    free = lock.take()
    lock.release()
    return free
