"""The port through which workers talk to the server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from dashboard.services.contract import (
    Answer,
    Beat,
    Claim,
    Launched,
    Outcome,
    Rung,
    StoredFile,
    TraceClaim,
    TraceOutcome,
    WorkerIdentity,
)


class Server(Protocol):
    """What a worker may ask of the server; every call may raise when the server is away."""

    def next_runs(self, platform: str, limit: int) -> list[tuple[int, int]]: ...
    def claim(self, run_id: int, attempt: int, worker: WorkerIdentity) -> Claim | None: ...
    def heartbeat(self, run_id: int, fence: int, beat: Beat) -> Answer: ...
    def deliver(self, run_id: int, fence: int, outcome: Outcome) -> None: ...
    def store_launch(self, run_id: int, fence: int, launched: Launched) -> None: ...
    def climb(self, run_id: int, fence: int) -> Rung: ...
    def store_difference(self, run_id: int, fence: int, file: StoredFile) -> None: ...
    def next_traces(self, limit: int) -> list[tuple[int, int]]: ...
    def claim_trace(
        self, trace_id: int, attempt: int, worker: WorkerIdentity
    ) -> TraceClaim | None: ...
    def renew_trace(self, trace_id: int, fence: int) -> None: ...
    def deliver_trace(self, trace_id: int, fence: int, outcome: TraceOutcome) -> None: ...
    def fetch(self, sha256: str, target: Path) -> None: ...
    def beat(self, name: str, kind: str, *, platform: str, detail: str) -> None: ...
    def farewell(self, name: str) -> None: ...
    def hang_up(self) -> None: ...


def set_up_django() -> None:
    """Load settings and rows, once per process."""
    import django
    from django.apps import apps

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    if not apps.ready:
        django.setup()


def local_server() -> Server:
    """The server of this host: its services, called in this process."""
    set_up_django()
    from workers.local import LocalServer

    return LocalServer()
