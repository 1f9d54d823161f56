"""What every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

# A busy machine is no failure: no example has a deadline of its own.
hypothesis_settings.register_profile(
    "daybreak", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("daybreak")
