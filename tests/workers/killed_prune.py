"""`python -m tests.workers.killed_prune WHERE`: a pass of retention that is killed on its way."""

from __future__ import annotations

import os
import signal
import sys

import django

django.setup()

from dashboard.services import artifacts, retention  # noqa: E402


def die() -> None:
    """kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def before_the_mark(*_: object) -> None:
    die()


def before_the_removal(_sha256: str) -> None:
    die()


def after_the_removal(sha256: str) -> None:
    artifacts.store().remove(sha256)
    die()


PLACES = {
    "before the mark": (retention, "_said", before_the_mark),
    "before the removal": (artifacts, "drop_file", before_the_removal),
    "after the removal": (artifacts, "drop_file", after_the_removal),
}
module, name, killed = PLACES[sys.argv[1]]
setattr(module, name, killed)
retention.prune()
