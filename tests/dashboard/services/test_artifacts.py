"""The content-addressed store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dashboard.models import Artifact
from dashboard.services import artifacts
from dashboard.services.artifacts import DamagedError, StoreFullError

pytestmark = pytest.mark.django_db

DAY = 86_400


def a_file(tmp_path: Path, content: bytes = b"hello") -> Path:
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


def stored(store_root: Path, row: Artifact) -> Path:
    return store_root / row.sha256[:2] / row.sha256


def test_it_stores_the_same_bytes_once(store_root: Path, tmp_path: Path) -> None:
    rows = {artifacts.keep(a_file(tmp_path)).pk for _ in range(3)}
    assert len(rows) == 1
    assert len([path for path in store_root.rglob("*") if path.is_file()]) == 1


def test_it_gives_back_what_was_stored(store_root: Path, tmp_path: Path) -> None:
    row = artifacts.keep(a_file(tmp_path, b"\x00\xffbytes"))
    assert artifacts.read(row.sha256) == b"\x00\xffbytes"
    artifacts.fetch(row.sha256, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"\x00\xffbytes"


def test_files_are_private(store_root: Path, tmp_path: Path) -> None:
    row = artifacts.keep(a_file(tmp_path))
    assert stored(store_root, row).stat().st_mode & 0o777 == 0o600


def test_it_says_when_a_file_was_damaged(store_root: Path, tmp_path: Path) -> None:
    row = artifacts.keep(a_file(tmp_path))
    stored(store_root, row).write_bytes(b"jello")
    with pytest.raises(DamagedError, match="damaged on disk"):
        artifacts.read(row.sha256)
    with pytest.raises(DamagedError):
        artifacts.fetch(row.sha256, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "A" * 64, "0" * 63, "/" * 64])
def test_nothing_but_a_hash_is_a_name(store_root: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        artifacts.open_artifact(name)


def test_it_does_not_follow_a_link_in_the_store(store_root: Path, tmp_path: Path) -> None:
    row = artifacts.keep(a_file(tmp_path))
    path = stored(store_root, row)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic link"):
        artifacts.open_artifact(row.sha256)


def test_it_refuses_when_the_disk_is_full(
    store_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "FREE_BYTES_FLOOR", 1 << 62)
    with pytest.raises(StoreFullError, match="disk is full"):
        artifacts.keep(a_file(tmp_path))
    assert not Artifact.objects.exists()


def test_garbage_is_what_no_row_names_after_a_day(store_root: Path, tmp_path: Path) -> None:
    kept = artifacts.keep(a_file(tmp_path))
    orphan = artifacts.keep(a_file(tmp_path, b"orphan"))
    young = artifacts.keep(a_file(tmp_path, b"young"))
    Artifact.objects.filter(pk__in=[orphan.pk, young.pk]).delete()
    for row in (kept, orphan):
        path = stored(store_root, row)
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - DAY - 60))
    assert artifacts.collect_garbage() == 1
    left = {stored(store_root, row).exists() for row in (kept, young)}
    assert left == {True} and not stored(store_root, orphan).exists()


def test_storing_again_spares_a_file_from_collection(store_root: Path, tmp_path: Path) -> None:
    row = artifacts.keep(a_file(tmp_path))
    path = stored(store_root, row)
    os.utime(path, (0, 0))
    Artifact.objects.all().delete()
    artifacts.keep(a_file(tmp_path))
    Artifact.objects.all().delete()
    assert artifacts.collect_garbage() == 0
