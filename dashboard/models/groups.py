"""Runs that were asked for together, and what an A/A group of them says of its platform."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class GroupKind(models.TextChoices):
    TEMPLATE = "template", "Template"
    NOISE = "noise", "A/A control"


class RunGroup(models.Model):
    """The runs of one request. `seed` gave their random order."""

    kind = models.CharField(max_length=10, choices=GroupKind.choices)
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.PROTECT)
    version = models.ForeignKey("dashboard.TemplateVersion", null=True, on_delete=models.PROTECT)
    seed = models.PositiveBigIntegerField(null=True)
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind=GroupKind.TEMPLATE, version__isnull=False, seed__isnull=False)
                | Q(kind=GroupKind.NOISE, version__isnull=True),
                name="group_has_version_iff_template",
            )
        ]

    def __str__(self) -> str:
        return f"group {self.pk} ({self.kind})"


class NoiseFloor(models.Model):
    """How far apart two of `n` equal launches lay: what no comparison can undercut.

    `floor` is the median over the pairs, `worst` the largest; both are shares of the value.
    """

    group = models.ForeignKey(RunGroup, on_delete=models.CASCADE, related_name="floors")
    platform = models.ForeignKey(
        "dashboard.Platform", on_delete=models.PROTECT, related_name="floors"
    )
    workload = models.ForeignKey("dashboard.Workload", on_delete=models.PROTECT)
    metric = models.CharField(max_length=40)
    n = models.PositiveIntegerField(help_text="launches")
    floor = models.FloatField(help_text="median relative difference of a pair")
    worst = models.FloatField(help_text="largest relative difference of a pair")
    comparable_hash = models.CharField(max_length=64, help_text="environment of the launches")
    measured_at = models.DateTimeField()

    class Meta:
        ordering = ["-measured_at", "-id"]
        indexes = [
            models.Index(fields=["platform", "workload", "metric", "-id"], name="floor_by_workload")
        ]
        constraints = [
            models.UniqueConstraint(fields=["group", "metric"], name="one_floor_per_metric"),
            models.CheckConstraint(condition=Q(floor__gte=0, n__gte=2), name="floor_is_possible"),
        ]

    def __str__(self) -> str:
        return f"{self.metric} on {self.platform}: {self.floor}"
