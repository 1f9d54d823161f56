"""A small real repository that a test makes, commit by commit."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_AUTHOR = {
    "GIT_AUTHOR_NAME": "Ann Author",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann Author",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass
class Upstream:
    """A working repository; `commit` writes files and gives the new hash."""

    folder: Path
    commits: int = 0

    @classmethod
    def make(cls, folder: Path) -> Upstream:
        folder.mkdir(parents=True)
        upstream = cls(folder)
        upstream.git("init", "--quiet", "--initial-branch=main")
        return upstream

    def git(self, *words: str, **variables: str) -> str:
        """git in it, the way its owner would call it."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **_AUTHOR, **variables},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def commit(self, subject: str = "a change", **files: str) -> str:
        """Write files (`a__b.py` is the keyword for a/b.py), commit, and give the hash."""
        self.commits += 1
        for name, text in (files or {"count.txt": str(self.commits)}).items():
            path = self.folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        at = f"{1_700_000_000 + self.commits * 60} +0000"
        dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        self.git("commit", "--quiet", "--allow-empty", "-m", subject, **dates)
        return self.git("rev-parse", "HEAD")
