"""A migrated database file per test, and a system of processes around it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker, Settings

from tests.workers.bench import Bench
from tests.workers.system import ROOT, TIME_SCALE, System, end_strays
from workers.prepare import prepare

DATABASE = "daybreak.sqlite3"


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all tables and nothing in them."""
    folder = tmp_path_factory.mktemp("migrated")
    environment = {**os.environ, "VAR_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "manage.py", "migrate", "--verbosity=0", "--skip-checks"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder / DATABASE


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VAR_DIR that is ready for a quick start."""
    folder = tmp_path_factory.mktemp("collected")
    prepare(folder)
    return folder


@pytest.fixture
def var_dir(tmp_path: Path) -> Path:
    """A VAR_DIR of this test's own."""
    folder = tmp_path / "var"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def database(
    var_dir: Path, migrated: Path, settings: Settings, django_db_blocker: DjangoDbBlocker
) -> Iterator[Path]:
    """This process and its threads use a fresh database file in `var_dir`."""
    path = var_dir / DATABASE
    shutil.copy(migrated, path)
    _shorten_times(settings, var_dir)
    with django_db_blocker.unblock():
        before, kept = connections.settings["default"], connections["default"]
        connections.settings["default"] = {
            **before,
            "NAME": str(path),
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
        }
        connections["default"] = connections.create_connection("default")
        try:
            yield path
        finally:
            connections["default"].close()
            connections["default"] = kept
            connections.settings["default"] = before


def _shorten_times(settings: Settings, var_dir: Path) -> None:
    settings.VAR_DIR = var_dir
    settings.ARTIFACTS_URL = (var_dir / "artifacts").as_uri()
    settings.FILE_UPLOAD_TEMP_DIR = str(var_dir / "uploads")
    settings.TIME_SCALE = TIME_SCALE
    for name in ("HEARTBEAT", "LEASE", "SELF_FENCE", "SWEEP", "GRACE", "RECONCILE"):
        setattr(settings, f"{name}_S", getattr(settings, f"{name}_S") / TIME_SCALE)
    settings.CANCEL_TIMEOUT_S /= TIME_SCALE


@pytest.fixture
def system(var_dir: Path, database: Path) -> Iterator[System]:
    """No process yet; all that the test starts are ended with it."""
    system = System(var_dir)
    system.benchmark("quick")
    try:
        yield system
    finally:
        system.stop()


@pytest.fixture
def bench(database: Path, var_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """This process is the worker: runs go through a real supervisor, without broker or keeper."""
    monkeypatch.setenv("VAR_DIR", str(var_dir))
    monkeypatch.setenv("TIME_SCALE", str(TIME_SCALE))
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    yield Bench(var_dir, monkeypatch)
    end_strays(var_dir)
