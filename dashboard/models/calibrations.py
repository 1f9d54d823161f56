"""Ceilings that were measured on a platform."""

from __future__ import annotations

from django.db import models


class Calibration(models.Model):
    """What `python -m profiler env --calibrate --json` told; the newest one counts."""

    platform = models.ForeignKey(
        "dashboard.Platform", on_delete=models.CASCADE, related_name="calibrations"
    )
    document = models.JSONField()
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"calibration of {self.platform}"
