"""Which processes are alive, as far as anybody heard."""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """Last sign of life of a long-running process: worker, ingest or keeper."""

    name = models.CharField(max_length=120, unique=True)
    kind = models.CharField(max_length=16)
    platform = models.CharField(max_length=40, blank=True)
    version = models.CharField(max_length=20)
    started_at = models.DateTimeField()
    at = models.DateTimeField(db_index=True)
    detail = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
