"""Rows of what can be measured, and where."""

from __future__ import annotations

from django.conf import settings

from dashboard.models import Model, Platform
from dashboard.services.clock import db_now
from profiler.catalog import BUILTIN
from profiler.errors import SpecError

DEVICES = {"cpu": "cpu", "cuda": "cuda:0"}


def ensure_platform(slug: str = "") -> Platform:
    """The row of the platform that this installation's workers serve."""
    name = slug or settings.PLATFORM
    row, _ = Platform.objects.get_or_create(
        slug=name,
        defaults={"title": name, "device": DEVICES.get(name, name), "created_at": db_now()},
    )
    return row


def model_row(name: str) -> Model:
    """The row of a built-in model, made on first use; raises `SpecError` when unknown."""
    entry = BUILTIN.get(name)
    if entry is None:
        known = ", ".join(sorted(BUILTIN))
        raise SpecError(f"spec.model {name!r} is not known", f"known models: {known}")
    row, _ = Model.objects.get_or_create(
        name=name,
        defaults={
            "title": entry.title,
            "architecture": entry.architecture,
            "created_at": db_now(),
        },
    )
    return row
