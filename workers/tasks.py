"""What a message asks for. The database says whether there is anything to do."""

from __future__ import annotations

from dashboard.services.events import RUN_TASK, TRACE_TASK
from workers.app import app
from workers.slot import current_slot


@app.task(name=RUN_TASK)  # type: ignore[untyped-decorator]
def run_benchmark(run_id: int, attempt: int) -> None:
    """Claim this attempt of a run and execute it."""
    current_slot().handle(run_id, attempt)


@app.task(name=TRACE_TASK)  # type: ignore[untyped-decorator]
def ingest_trace(trace_id: int, attempt: int) -> None:
    """Claim this attempt at a trace and read it."""
    current_slot().handle(trace_id, attempt)
