"""System checks: what is missing is said before it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.checks import git_present


def fake_git(folder: Path, said: str) -> None:
    path = folder / "git"
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)


@pytest.mark.parametrize("version", ["git version 2.37.0", "git version 2.50.1 (Apple Git-155)"])
def test_it_takes_a_git_that_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    fake_git(tmp_path, version)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_present(None) == []


@pytest.mark.parametrize("version", ["git version 2.30.2", "nonsense"])
def test_it_warns_of_a_git_that_is_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    fake_git(tmp_path, version)
    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = git_present(None)
    assert version in found.msg


def test_it_warns_when_git_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = git_present(None)
    assert "git is missing" in found.msg
