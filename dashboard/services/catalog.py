"""Rows of what can be measured, and where."""

from __future__ import annotations

from django.conf import settings

from dashboard.models import Model, Platform
from dashboard.services.clock import db_now
from profiler.catalog import BUILTIN
from profiler.errors import SpecError, printable
from profiler.spec import SOURCES
from profiler.types import RunSpec

DEVICES = {"cpu": "cpu", "cuda": "cuda:0"}


def ensure_platform(slug: str = "") -> Platform:
    """The row of the platform that this installation's workers serve."""
    name = slug or settings.PLATFORM
    row, _ = Platform.objects.get_or_create(
        slug=name,
        defaults={"title": name, "device": DEVICES.get(name, name), "created_at": db_now()},
    )
    return row


def device_of(slug: str) -> str:
    """The device runs on that platform use, also before its first worker was up."""
    found = Platform.objects.filter(slug=slug).values_list("device", flat=True).first()
    return found or DEVICES.get(slug, slug)


def model_row(spec: RunSpec) -> Model:
    """The row of the model of `spec`, made on first use; raises `SpecError` when unknown.

    A model that the spec brings itself has a row under the name the spec gives it.
    """
    entry = BUILTIN.get(spec.model)
    own = next((name for name in SOURCES if getattr(spec, name) is not None), None)
    if entry is None and own is None:
        known = ", ".join(sorted(BUILTIN))
        raise SpecError(f"spec.model {spec.model!r} is not known", f"known models: {known}")
    title = entry.title if entry else f"{spec.model} ({own})"
    architecture = entry.architecture if entry else str((spec.config or {}).get("model_type", ""))
    row, _ = Model.objects.get_or_create(
        name=spec.model,
        defaults={
            "title": title,
            "architecture": printable(architecture, 80),
            "created_at": db_now(),
        },
    )
    return row
