"""Settings come from the environment; a wrong one stops the start with one line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard import environ, sqlite

ROOT = Path(__file__).resolve().parents[1]


def manage(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VAR_DIR": str(tmp_path), **variables}
    command = [sys.executable, "manage.py", "check"]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DATABASE_URL", "foo://secret@x", "scheme 'foo' is not known"),
        ("ARTIFACTS_URL", "ftp://x", "use file:///folder or s3://bucket"),
        ("DEBUG", "perhaps", "DEBUG='perhaps' is neither yes nor no"),
        ("RUN_LIMIT_S", "long", "RUN_LIMIT_S='long' is not a number"),
        ("TIME_SCALE", "0", "TIME_SCALE=0 is outside 1 to 1000"),
        ("SECRET_KEY_FILE", "/nowhere", "SECRET_KEY_FILE=/nowhere: No such file"),
        ("VAR_DIR", "/proc/nothing", "/proc/nothing"),
        ("EMAIL_URL", "mail://a:secret@host", "EMAIL_URL cannot be read; use smtp://host"),
        ("BASE_URL", "daybreak.example", "BASE_URL=daybreak.example: use https://host"),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path: Path, name: str, value: str, said: str) -> None:
    done = manage(tmp_path, **{name: value})
    assert done.returncode == 64
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
    assert "secret" not in done.stderr


def test_the_secret_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secret"
    first = environ.private_secret(path)
    assert environ.private_secret(path) == first and len(first) > 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret"]


def test_a_value_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "value").write_text("from a file\n")
    monkeypatch.setenv("THING_FILE", str(tmp_path / "value"))
    monkeypatch.setenv("THING", "from the variable")
    assert environ.text("THING") == "from a file"


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 53, 4), True),
    ],
)
def test_it_knows_which_sqlite_corrupts(version: tuple[int, int, int], *, safe: bool) -> None:
    assert sqlite.is_safe(version) is safe


def test_a_safe_sqlite_is_in_use() -> None:
    import sqlite3

    major, minor, patch = sqlite3.sqlite_version_info
    assert sqlite.is_safe((major, minor, patch))
