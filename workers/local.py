"""The server port, answered by the services in this process. Import after Django is set up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

from dashboard.services import artifacts, lifecycle, pairs, traces, workers
from dashboard.services.contract import (
    Answer,
    Beat,
    Claim,
    Launched,
    Outcome,
    Rung,
    StoredFile,
    SupersededError,
    TraceClaim,
    TraceOutcome,
    WorkerIdentity,
)
from profiler.errors import UserError


class LocalServer:
    """Calls the services; a failed call gets a new database connection the next time."""

    def next_runs(self, platform: str, limit: int) -> list[tuple[int, int]]:
        with fresh_connection():
            return lifecycle.next_runs(platform, limit)

    def claim(self, run_id: int, attempt: int, worker: WorkerIdentity) -> Claim | None:
        with fresh_connection():
            return lifecycle.claim_run(run_id, attempt, worker)

    def heartbeat(self, run_id: int, fence: int, beat: Beat) -> Answer:
        with fresh_connection():
            return lifecycle.heartbeat_run(run_id, fence, beat)

    def deliver(self, run_id: int, fence: int, outcome: Outcome) -> None:
        with fresh_connection():
            lifecycle.deliver_run(run_id, fence, outcome)

    def store_launch(self, run_id: int, fence: int, launched: Launched) -> None:
        with fresh_connection():
            pairs.store_launch(run_id, fence, launched)

    def climb(self, run_id: int, fence: int) -> Rung:
        with fresh_connection():
            return pairs.climb(run_id, fence)

    def store_difference(self, run_id: int, fence: int, file: StoredFile) -> None:
        with fresh_connection():
            pairs.store_difference(run_id, fence, file)

    def next_traces(self, limit: int) -> list[tuple[int, int]]:
        with fresh_connection():
            return traces.next_traces(limit)

    def claim_trace(self, trace_id: int, attempt: int, worker: WorkerIdentity) -> TraceClaim | None:
        with fresh_connection():
            return traces.claim_trace(trace_id, attempt, worker)

    def renew_trace(self, trace_id: int, fence: int) -> None:
        with fresh_connection():
            traces.renew_trace(trace_id, fence)

    def deliver_trace(self, trace_id: int, fence: int, outcome: TraceOutcome) -> None:
        with fresh_connection():
            traces.deliver_trace(trace_id, fence, outcome)

    def fetch(self, sha256: str, target: Path) -> None:
        with fresh_connection():
            artifacts.fetch(sha256, target)

    def beat(self, name: str, kind: str, *, platform: str, detail: str) -> None:
        with fresh_connection():
            workers.beat(name, kind, platform=platform, detail=detail)

    def farewell(self, name: str) -> None:
        with fresh_connection():
            workers.farewell(name)

    def hang_up(self) -> None:
        """Close this thread's connection: threads call it before they end."""
        connection.close()


@contextmanager
def fresh_connection() -> Iterator[None]:
    """Drop the thread's database connection after an error, so that the next call gets a new one.

    An answer that the server gave on purpose leaves the connection as it is.
    """
    connection.close_if_unusable_or_obsolete()
    try:
        yield
    except (SupersededError, UserError):
        raise
    except Exception:
        connection.close()
        raise
