"""Steps and slow leaks of a workload's history, from the first suspicion to the end.

A *series* is what one workload took on one platform at the commits of one
repository, in one environment: another comparable hash is another series, so
a driver upgrade is no change.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q


class ChangeKind(models.TextChoices):
    """A step lies between two neighbouring commits, a leak between the best stretch and now."""

    STEP = "step", "Step"
    LEAK = "leak", "Slow leak"


class ChangeDirection(models.TextChoices):
    SLOWER = "slower", "Slower"
    FASTER = "faster", "Faster"


class ChangeState(models.TextChoices):
    NEW = "new", "New"
    CONFIRMING = "confirming", "Confirming"
    CONFIRMED = "confirmed", "Confirmed"
    REJECTED = "rejected", "Rejected"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    FIXED = "fixed", "Fixed"


class Change(models.Model):
    """One detected change of a series.

    `before` and `after` are the neighbouring measured commits (of a leak: the
    end of the best stretch and the newest commit then). `effect` is the
    relative change that the history shows, `measured_effect` what the pairs of
    the confirmation showed; `culprit` names the operator that took most of it.
    """

    repository = models.ForeignKey("dashboard.Repository", on_delete=models.CASCADE)
    workload = models.ForeignKey(
        "dashboard.Workload", on_delete=models.PROTECT, related_name="changes"
    )
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.PROTECT)
    metric = models.CharField(max_length=40)
    comparable_hash = models.CharField(max_length=64, help_text="environment of the series")
    kind = models.CharField(max_length=4, choices=ChangeKind.choices)
    direction = models.CharField(max_length=6, choices=ChangeDirection.choices)
    before_commit = models.ForeignKey(
        "dashboard.Commit", on_delete=models.PROTECT, related_name="+"
    )
    after_commit = models.ForeignKey(
        "dashboard.Commit", on_delete=models.PROTECT, related_name="changes"
    )
    before_run = models.ForeignKey(
        "dashboard.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    after_run = models.ForeignKey(
        "dashboard.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    before_value = models.FloatField(help_text="centre of the runs before, in the metric's unit")
    after_value = models.FloatField(help_text="centre of the runs after")
    effect = models.FloatField()
    p_value = models.FloatField()
    state = models.CharField(max_length=12, choices=ChangeState.choices, default=ChangeState.NEW)
    found_at = models.DateTimeField()
    state_at = models.DateTimeField(help_text="when it came into its state")
    comparison = models.ForeignKey(
        "dashboard.Comparison",
        null=True,
        on_delete=models.SET_NULL,
        related_name="changes",
        help_text="the last paired measurement of the two commits",
    )
    measured_effect = models.FloatField(null=True)
    sentence = models.CharField(max_length=1000, blank=True, help_text="what measuring again said")
    culprit = models.CharField(max_length=500, blank=True)
    culprit_detail = models.CharField(max_length=500, blank=True)
    reason = models.CharField(max_length=1000, blank=True, help_text="why it was acknowledged")
    acknowledged_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    fixed_by = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="fixes")
    fixed_commit = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["state", "-id"], name="change_by_state"),
            models.Index(fields=["workload", "platform", "-id"], name="change_by_workload"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "workload",
                    "platform",
                    "metric",
                    "comparable_hash",
                    "kind",
                    "after_commit",
                ],
                name="one_change_per_series_and_commit",
            ),
            models.CheckConstraint(
                condition=Q(state__in=ChangeState.values), name="change_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=ChangeKind.values, direction__in=ChangeDirection.values),
                name="change_kind_is_known",
            ),
            models.CheckConstraint(
                condition=~Q(state=ChangeState.ACKNOWLEDGED) | ~Q(reason=""),
                name="acknowledged_change_has_reason",
            ),
            models.CheckConstraint(
                condition=~Q(before_commit=F("after_commit")), name="change_has_two_commits"
            ),
        ]

    def __str__(self) -> str:
        return f"change {self.pk} ({self.state})"

    @property
    def shown_effect(self) -> float:
        """What the pairs showed, else what the history shows."""
        return self.effect if self.measured_effect is None else self.measured_effect


class WatchedSeries(models.Model):
    """A workload on a platform whose history is looked through when `wanted_at` is set."""

    workload = models.ForeignKey("dashboard.Workload", on_delete=models.CASCADE)
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.CASCADE)
    wanted_at = models.DateTimeField(null=True, db_index=True)
    scanned_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workload", "platform"], name="one_watch_per_series")
        ]

    def __str__(self) -> str:
        return f"{self.workload} on {self.platform}"
