"""What every test shares."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

# A busy machine is no failure: no example has a deadline of its own.
hypothesis_settings.register_profile(
    "daybreak", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("daybreak")

# Started in the background the suite ignores Ctrl-C and hang-ups, and so would every
# program that a test starts and tells to end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_make_parametrize_id(config: pytest.Config, val: object) -> str | None:
    """A gzip file holds the time it was made: as a name it would differ in every process."""
    if isinstance(val, bytes) and val.startswith(b"\x1f\x8b"):
        return f"gzip of {len(val)} bytes"
    return None
