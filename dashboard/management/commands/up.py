"""`manage.py up`: becomes the process group that runs everything on one machine."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser

from dashboard.management.base import ContractCommand


class Command(ContractCommand):
    help = "Start broker, keeper, workers and web as one group; Ctrl-C ends them all."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-demo", action="store_true")
        parser.add_argument("--workers", type=int, default=1)

    def handle(self, *_: object, no_demo: bool, workers: int, **__: object) -> None:
        words = ["--workers", str(workers), *(["--no-demo"] if no_demo else [])]
        os.execv(sys.executable, [sys.executable, "-m", "workers.up", *words])
