"""A worker inside the test process: one run at a time through a real supervisor."""

from __future__ import annotations

import shlex
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.models import Run
from dashboard.services import artifacts, catalog, runs
from dashboard.services.contract import WorkerIdentity
from profiler.types import RunSpec
from tests.workers.system import FAKE_BENCH
from workers.duty import places
from workers.execute import RunDuty
from workers.server import local_server


@dataclass
class Bench:
    """Runs fake benchmarks to their end."""

    var_dir: Path
    environment: pytest.MonkeyPatch

    def duty(self, stop: threading.Event | None = None) -> RunDuty:
        identity = WorkerIdentity(name="test:1", platform="cpu")
        return RunDuty(local_server(), identity, places(), stop or threading.Event())

    def queue(self, mode: str, *, limit_s: float | None = None) -> Run:
        """Queue a run that behaves as `mode` says."""
        command = [sys.executable, str(FAKE_BENCH), mode, "{spec}", "{out}"]
        self.environment.setenv("BENCHMARK_COMMAND", shlex.join(command))
        spec = RunSpec(model="llama-small", scenario="prefill")
        (run,) = runs.create_runs(
            [spec], platform=catalog.ensure_platform(), user=None, limit_s=limit_s
        )
        return run

    def run(self, mode: str, *, limit_s: float | None = None) -> Run:
        """Queue it, execute it here, and return the row as it then is."""
        run = self.queue(mode, limit_s=limit_s)
        assert self.duty().handle(run.pk, 1)
        return Run.objects.get(pk=run.pk)

    def text(self, run: Run, name: str = "log.txt") -> str:
        """A stored file of the last attempt."""
        file = run.artifacts.order_by("-attempt").get(name=name)
        return artifacts.read(file.artifact.sha256).decode()
