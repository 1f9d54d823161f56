"""Before the group starts: tables and static files, touched only when something changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from dashboard import environ
from profiler.errors import ExitCode, UserError

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "profiler" / "bench" / "templates"
UNKNOWN = "unknown"
"""The stamp of a database that may be restored or replaced without our noticing."""


class PrepareError(UserError):
    """A step before the start failed; its own words are on the screen."""

    kind = "prepare"
    exit_code = ExitCode.OUR_FAULT


def prepare(var_dir: Path) -> list[str]:
    """Migrate and collect static files where needed; the names of the steps taken."""
    (var_dir / "uploads").mkdir(mode=0o700, exist_ok=True)  # a system check asks for it
    steps = {
        "migrate": (["migrate", "--verbosity=0"], tables_stamp(var_dir)),
        "collectstatic": (["collectstatic", "--noinput", "--verbosity=0"], _static_stamp()),
    }
    due = {n: s for n, s in steps.items() if _read(var_dir, n) != s[1] or s[1] == UNKNOWN}
    running = {name: _manage(var_dir, step[0]) for name, step in due.items()}
    for name, process in running.items():
        if process.wait() != 0:
            raise PrepareError(f"manage.py {name} failed", "its words stand above")
    for name in due:  # asked again: the first migration makes the database file
        stamp = tables_stamp(var_dir) if name == "migrate" else due[name][1]
        (var_dir / f"{name}.stamp").write_text(stamp)
    return list(due)


def _manage(var_dir: Path, words: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={**os.environ, "VAR_DIR": str(var_dir)},
        stdin=subprocess.DEVNULL,
    )


def _read(var_dir: Path, name: str) -> str:
    try:
        return (var_dir / f"{name}.stamp").read_text()
    except FileNotFoundError:
        return ""


def tables_stamp(var_dir: Path) -> str:
    """Covers what `migrate` stores and which database it is; another file is another database."""
    url = environ.text("DATABASE_URL")
    if url and not url.startswith("sqlite:///"):
        return UNKNOWN
    path = Path(url.removeprefix("sqlite:///")) if url else var_dir / "daybreak.sqlite3"
    if not path.exists():
        return UNKNOWN
    digest = hashlib.sha256(f"{path} {path.stat().st_ino} {version('django')}".encode())
    stored = [*(ROOT / "dashboard" / "migrations").glob("*.py"), *TEMPLATES.glob("*.toml")]
    for file in sorted(stored):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def _static_stamp() -> str:
    """Covers names, sizes and times of our files and the versions of the packages that add some."""
    packages = ("django", "django-htmx", "plotly", "whitenoise")
    digest = hashlib.sha256(" ".join(version(name) for name in packages).encode())
    for line in sorted(_listing(ROOT / "static")):
        digest.update(line.encode())
    return digest.hexdigest()


def _listing(folder: Path) -> Iterable[str]:
    for base, _, names in os.walk(folder):
        for name in names:
            status = os.stat(os.path.join(base, name))
            yield f"{base}/{name} {status.st_size} {status.st_mtime_ns}\n"
