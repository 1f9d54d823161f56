"""Measured ceilings of a platform: checked, stored, and read back as peaks."""

from __future__ import annotations

import math

import msgspec
from django.db import transaction

from dashboard.models import Calibration, Platform, User
from dashboard.services import audit
from dashboard.services.clock import db_now
from profiler.analysis.bounds import PeakFacts
from profiler.errors import SpecError
from profiler.types import Calibration as Ceilings

SIZE_LIMIT = 64 << 10
COMMAND = "python -m profiler env --calibrate --json"


def store_calibration(raw: bytes, *, platform: Platform, user: User) -> Calibration:
    """Keep what the calibration of a machine of `platform` printed.

    Raises `SpecError` for what is no calibration, or one of another device.
    """
    ceilings = _parsed(raw)
    if ceilings.device != platform.device:
        raise SpecError(
            f"device is {ceilings.device!r}",
            f"runs of {platform.slug} use {platform.device}: add --device {platform.device}",
        )
    with transaction.atomic():
        row = Calibration.objects.create(
            platform=platform,
            document=msgspec.to_builtins(ceilings),
            created_by=user,
            created_at=db_now(),
        )
        audit.note(user, "platform.calibrate", platform.slug)
    return row


def ceilings_of(row: Calibration) -> Ceilings:
    """The stored numbers."""
    return msgspec.convert(row.document, Ceilings)


def measured_peaks(platform_id: int) -> PeakFacts | None:
    """The newest calibration of a platform as peaks; `None` when it never was calibrated."""
    row = Calibration.objects.filter(platform_id=platform_id).first()
    if row is None:
        return None
    ceilings = ceilings_of(row)
    return PeakFacts(
        device=ceilings.device,
        label="measured",
        source="calibration of the platform",
        as_of=f"{row.created_at:%Y-%m-%d}",
        flops=dict(ceilings.matmul_flops),
        bandwidth=ceilings.copy_bandwidth,
    )


def _parsed(raw: bytes) -> Ceilings:
    if len(raw) > SIZE_LIMIT:
        raise SpecError("This is longer than 64 KiB", f"give the output of {COMMAND}")
    try:
        found = msgspec.json.decode(raw, type=Ceilings, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"This is no calibration: {error}"
        raise SpecError(message, f"give the output of {COMMAND}") from None
    numbers = [*found.matmul_flops.values(), found.copy_bandwidth, found.dispatch_ns]
    if not found.matmul_flops or not all(math.isfinite(n) and n > 0 for n in numbers):
        raise SpecError("A measured rate is missing or not positive", "calibrate again")
    return found
