"""What the profiled launches of a compared workload differ in, as the worker stored it."""

from __future__ import annotations

import gzip
import io

import msgspec

from dashboard.models import ComparedWorkload, Comparison
from dashboard.services import artifacts
from dashboard.services.difference import Difference
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
    found = comparison.workloads.filter(position=position)
    return found.select_related("comparison", "workload__model", "difference").first()


def difference_of(compared: ComparedWorkload) -> Difference | None:
    """The stored difference; None when there is none. Raises `UserError` for a damaged one."""
    if compared.difference is None:
        return None
    packed = artifacts.read(compared.difference.sha256)
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            data = file.read(SIZE_LIMIT_BYTES)
        return msgspec.json.decode(data, type=Difference)
    except (OSError, EOFError, msgspec.DecodeError, UnicodeDecodeError):
        raise DifferenceError(
            "The difference was stored by another version and cannot be read",
            "measure more pairs to record it anew",
        ) from None
