"""The content-addressed store: the file is durable first, the row follows.

A crash between the two leaves a file without a row, which `collect_garbage`
removes after a day. Removing goes the other way round: the row is marked
first, the file follows. A row that is not marked always has its file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol, cast
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import transaction

from dashboard.models import Artifact
from dashboard.services.clock import db_now
from profiler.errors import UserError

CHUNK = 1 << 20
GRACE = timedelta(hours=24)
FREE_BYTES_FLOOR = 256 << 20
"""New files are refused when less than this would stay free."""


class StoreFullError(UserError):
    """The store has no room."""

    kind = "disk_full"


class DamagedError(UserError):
    """The stored bytes are not those that were stored."""

    kind = "damaged"


class RemovedError(UserError):
    """A retention policy removed the file."""

    kind = "removed"


class Store(Protocol):
    """Where bytes live under their SHA-256."""

    def add(self, source: Path, sha256: str) -> None: ...
    def open(self, sha256: str) -> BinaryIO: ...
    def renew(self, sha256: str) -> bool: ...
    def remove(self, sha256: str) -> None: ...
    def old(self, age: timedelta) -> Iterator[str]: ...
    def is_old(self, sha256: str, age: timedelta) -> bool: ...
    def free_bytes(self) -> int | None: ...


class FolderStore:
    """A folder; files are named by their hash, so no name of anybody's is ever a path."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _path(self, sha256: str) -> Path:
        if len(sha256) != 64 or not all(c in "0123456789abcdef" for c in sha256):
            raise ValueError(f"not a SHA-256: {sha256!r}")
        return self.root / sha256[:2] / sha256

    def add(self, source: Path, sha256: str) -> None:
        """Copy, flush to disk, rename: visible whole or not at all."""
        target = self._path(sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            with source.open("rb") as reader, draft.open("xb") as writer:
                shutil.copyfileobj(reader, writer, CHUNK)
                writer.flush()
                os.fsync(writer.fileno())
            draft.chmod(0o600)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def open(self, sha256: str) -> BinaryIO:
        descriptor = os.open(self._path(sha256), os.O_RDONLY | os.O_NOFOLLOW)
        return cast(BinaryIO, os.fdopen(descriptor, "rb"))

    def renew(self, sha256: str) -> bool:
        """Whether the file is there; if so its age starts anew, so garbage collection spares it."""
        try:
            os.utime(self._path(sha256))
        except FileNotFoundError:
            return False
        return True

    def remove(self, sha256: str) -> None:
        self._path(sha256).unlink(missing_ok=True)

    def old(self, age: timedelta) -> Iterator[str]:
        limit = db_now().timestamp() - age.total_seconds()
        for path in self.root.glob("??/*"):
            if path.stat().st_mtime < limit:
                if path.name.endswith(".part"):
                    path.unlink(missing_ok=True)
                else:
                    yield path.name

    def is_old(self, sha256: str, age: timedelta) -> bool:
        """Whether nobody stored it within `age`; also what is not there."""
        try:
            stored_s = self._path(sha256).stat().st_mtime
        except FileNotFoundError:
            return True
        return stored_s < db_now().timestamp() - age.total_seconds()

    def free_bytes(self) -> int | None:
        self.root.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self.root).free


class BucketStore:
    """An S3 bucket through django-storages (extra `s3`); `s3://bucket/prefix`."""

    def __init__(self, bucket: str, prefix: str) -> None:
        from storages.backends.s3 import S3Storage

        self.prefix = prefix.strip("/")
        self.storage = S3Storage(bucket_name=bucket, location=self.prefix, file_overwrite=True)

    def add(self, source: Path, sha256: str) -> None:
        from django.core.files import File

        with source.open("rb") as reader:
            self.storage.save(sha256, File(reader))
        if self.storage.size(sha256) != source.stat().st_size:
            raise DamagedError(f"artifact {sha256[:12]} arrived incomplete", "try again")

    def open(self, sha256: str) -> BinaryIO:
        return cast(BinaryIO, self.storage.open(sha256, "rb"))

    def renew(self, sha256: str) -> bool:
        """Never: uploading again is what starts the age of an object anew."""
        return False

    def remove(self, sha256: str) -> None:
        self.storage.delete(sha256)

    def old(self, age: timedelta) -> Iterator[str]:
        limit = db_now() - age
        for name in self.storage.listdir("")[1]:
            if self.storage.get_modified_time(name) < limit:
                yield name

    def is_old(self, sha256: str, age: timedelta) -> bool:
        """Whether nobody stored it within `age`; also what is not there."""
        if not self.storage.exists(sha256):
            return True
        return bool(self.storage.get_modified_time(sha256) < db_now() - age)

    def free_bytes(self) -> int | None:
        return None


@cache
def _store_at(url: str) -> Store:
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return BucketStore(parts.netloc, parts.path)
    return FolderStore(Path(unquote(parts.path)))


def store() -> Store:
    """The store that `ARTIFACTS_URL` names."""
    return _store_at(settings.ARTIFACTS_URL)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def require_room(size_bytes: int) -> None:
    """Raise `StoreFullError` when `size_bytes` more would leave too little free space."""
    free = store().free_bytes()
    if free is not None and free - size_bytes < FREE_BYTES_FLOOR:
        raise StoreFullError("The server's disk is full", "ask an admin to make room, then retry")


def keep(path: Path) -> Artifact:
    """Store a file; the same bytes are stored once and give the same row."""
    size = path.stat().st_size
    require_room(size)
    sha256 = digest_of(path)
    if not store().renew(sha256):
        store().add(path, sha256)
    return _row(path, sha256, size)


def _row(path: Path, sha256: str, size: int) -> Artifact:
    """The row of bytes that were just stored, or stored again.

    One that was there is looked at under its lock, as whoever removes files does
    (`drop_file`): either sees what the other did, so the bytes stay.
    """
    while True:
        row, made = Artifact.objects.get_or_create(
            sha256=sha256, defaults={"size_bytes": size, "created_at": db_now()}
        )
        if made:
            return row
        with transaction.atomic():
            held = Artifact.objects.select_for_update().filter(pk=row.pk).first()
            if held is None:
                continue
            if held.removed_at is not None:
                held.removed_at, held.removal = None, ""
                held.save(update_fields=["removed_at", "removal"])
                if not store().renew(sha256):
                    store().add(path, sha256)
        return held


def keep_all(paths: Iterable[tuple[str, Path]]) -> dict[str, Artifact]:
    """Store named files; name -> row."""
    return {name: keep(path) for name, path in paths}


def open_artifact(sha256: str) -> BinaryIO:
    """The stored bytes for reading; use as a context manager.

    Raises `RemovedError` when a policy removed them, `FileNotFoundError` when they are lost.
    """
    try:
        return store().open(sha256)
    except FileNotFoundError:
        row = Artifact.objects.filter(sha256=sha256, removed_at__isnull=False).first()
        if row is None:
            raise
        raise removal_of(row) from None


def removal_of(row: Artifact) -> RemovedError:
    """When a file was removed and by which policy, as an error to show."""
    return RemovedError(
        f"The stored file {row.sha256[:12]} was removed on {row.removed_at:%Y-%m-%d} by policy: "
        f"{row.removal}",
        "its summaries stay; pin a run or a trace to keep its files",
    )


def read(sha256: str) -> bytes:
    """The stored bytes, checked against their hash; raises `DamagedError`."""
    with open_artifact(sha256) as handle:
        data = handle.read()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DamagedError(f"artifact {sha256[:12]} is damaged on disk", "restore it from a backup")
    return data


def fetch(sha256: str, target: Path) -> None:
    """Copy the stored bytes to `target`, checked against their hash; raises `DamagedError`."""
    with open_artifact(sha256) as reader, target.open("wb") as writer:
        shutil.copyfileobj(reader, writer, CHUNK)
    if digest_of(target) != sha256:
        target.unlink()
        raise DamagedError(f"artifact {sha256[:12]} is damaged on disk", "restore it from a backup")


def collect_garbage() -> int:
    """Remove stored files older than a day that no row names or wants any more; how many."""
    names = list(store().old(GRACE))
    rows = Artifact.objects.filter(sha256__in=names, removed_at__isnull=True)
    known = set(rows.values_list("sha256", flat=True))
    return sum(drop_file(name, age=GRACE) for name in names if name not in known)


def drop_file(sha256: str, *, age: timedelta = GRACE) -> bool:
    """Remove a file that no row names or whose row is marked, unless it was stored within `age`."""
    with transaction.atomic():
        row = Artifact.objects.select_for_update().filter(sha256=sha256).first()
        unwanted = row is None or row.removed_at is not None
        if not unwanted or not store().is_old(sha256, age):
            return False
        store().remove(sha256)
    return True
