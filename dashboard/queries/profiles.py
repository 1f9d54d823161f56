"""The step profiles that reading traces left, for comparing any two of them."""

from __future__ import annotations

from dataclasses import replace

from dashboard.models import Trace
from dashboard.services import artifacts
from profiler.analysis.stepprofile import StepProfile, load_profile
from profiler.errors import TraceError, UserError, printable


class NoProfileError(UserError):
    """A trace without a step profile that this version can read."""

    kind = "no_profile"


def step_profile_of(trace: Trace) -> StepProfile:
    """The stored profile of a trace, under the trace's own name.

    Raises `NoProfileError` when reading it left none, or one of another version.
    """
    name = printable(trace.name, 255)
    if trace.profile is None:
        raise NoProfileError(
            f"{name} was read before its time per step was kept", "read the trace again"
        )
    try:
        found = load_profile(artifacts.read(trace.profile.sha256))
    except TraceError as error:
        raise NoProfileError(f"{name}: {error.message}", error.hint) from None
    return replace(found, path=name)
