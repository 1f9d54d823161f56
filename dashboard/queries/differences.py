"""What the profiled launches of a compared workload differ in, as the worker stored it."""

from __future__ import annotations

import gzip
import io
import zlib

import msgspec

from dashboard.models import ComparedWorkload, Comparison, Trace, TraceState
from dashboard.services import artifacts
from dashboard.services.difference import Difference
from profiler.analysis.diff import Diff
from profiler.errors import UserError

SIZE_LIMIT_BYTES = 64 << 20


class DifferenceError(UserError):
    """A stored difference that cannot be shown."""

    kind = "difference"


def get_compared(comparison_id: int, position: int) -> ComparedWorkload | None:
    """One workload of a comparison with what its page names, or None."""
    comparison = Comparison.objects.filter(pk=comparison_id).first()
    if comparison is None:
        return None
    related = ("comparison", "workload__model", "difference", "baseline_trace", "candidate_trace")
    return comparison.workloads.filter(position=position).select_related(*related).first()


def ready_traces(compared: ComparedWorkload) -> tuple[int | None, int | None]:
    """The numbers of both sides' traces, None where one has not been read."""

    def ready(trace: Trace | None) -> int | None:
        return trace.pk if trace is not None and trace.state == TraceState.READY else None

    return ready(compared.baseline_trace), ready(compared.candidate_trace)


def step_change(found: Diff) -> float | None:
    """The relative change of the recorded step; None where the baseline has no time."""
    before, after = found.baseline.step_ns, found.candidate.step_ns
    return after / before - 1 if before else None


def difference_of(compared: ComparedWorkload) -> Difference | None:
    """The stored difference; None when there is none. Raises `UserError` for a damaged one."""
    if compared.difference is None:
        return None
    packed = artifacts.read(compared.difference.sha256)
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            data = file.read(SIZE_LIMIT_BYTES)
        return msgspec.json.decode(data, type=Difference)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        raise DifferenceError(
            "The difference was stored by another version and cannot be read",
            "compare the two commits again to record it anew",
        ) from None
