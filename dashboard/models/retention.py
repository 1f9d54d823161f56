"""How long stored files are kept, what is exempt from that, and what was removed."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class RetentionPolicy(models.Model):
    """How many days raw traces and columns are kept; null: for ever. The newest row counts."""

    raw_days = models.PositiveIntegerField(null=True)
    columns_days = models.PositiveIntegerField(null=True)
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "retention policies"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=(Q(raw_days__isnull=True) | Q(raw_days__gte=1))
                & (Q(columns_days__isnull=True) | Q(columns_days__gte=1)),
                name="retention_is_a_day_at_least",
            )
        ]

    def __str__(self) -> str:
        return f"retention policy {self.pk}"


class Pin(models.Model):
    """A run with its traces, or one trace, that no policy touches; with who wants that and why."""

    run = models.OneToOneField(
        "dashboard.Run", null=True, on_delete=models.CASCADE, related_name="pin"
    )
    trace = models.OneToOneField(
        "dashboard.Trace", null=True, on_delete=models.CASCADE, related_name="pin"
    )
    reason = models.CharField(max_length=200)
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(run__isnull=False, trace__isnull=True)
                | Q(run__isnull=True, trace__isnull=False),
                name="pin_is_of_a_run_or_of_a_trace",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="pin_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"pin of run {self.run_id}" if self.run_id else f"pin of trace {self.trace_id}"


class Pruning(models.Model):
    """One pass over the stored files; `position` is the last one it looked at."""

    policy = models.ForeignKey(RetentionPolicy, null=True, on_delete=models.PROTECT)
    position = models.BigIntegerField(default=0)
    files = models.PositiveIntegerField(default=0)
    size_bytes = models.BigIntegerField(default=0)
    open = models.BooleanField(default=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["open"], condition=Q(open=True), name="one_pruning_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(open=True, ended_at__isnull=True)
                | Q(open=False, ended_at__isnull=False),
                name="pruning_open_iff_not_ended",
            ),
        ]

    def __str__(self) -> str:
        return f"pruning {self.pk}"
