"""Rows that an address names, or 404."""

from __future__ import annotations

from django.http import Http404

from dashboard.models import Trace, TraceState
from dashboard.queries.traces import get_trace


def trace_or_404(trace_id: int) -> Trace:
    """The trace, in whatever state."""
    trace = get_trace(trace_id)
    if trace is None:
        raise Http404(f"There is no trace {trace_id}.")
    return trace


def ready_or_404(trace_id: int) -> Trace:
    """The trace, if it was read."""
    trace = trace_or_404(trace_id)
    if trace.state != TraceState.READY:
        raise Http404(f"Trace {trace_id} is {trace.state}, so nothing was read from it.")
    return trace
