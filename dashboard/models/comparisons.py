"""Two commits measured against each other, pair by pair.

A comparison has one row per workload; a workload has pairs, a pair two
launches. A *session* is a run that reserves the device and measures the next
pairs of one workload; a lost session goes on with the pair it had reached.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class ComparisonState(models.TextChoices):
    RESOLVING = "resolving", "Resolving commits"
    MEASURING = "measuring", "Measuring"
    ENDED = "ended", "Ended"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


COMPARISON_ENDED = (ComparisonState.ENDED, ComparisonState.FAILED, ComparisonState.CANCELLED)


class Side(models.TextChoices):
    BASELINE = "baseline", "Baseline"
    CANDIDATE = "candidate", "Candidate"


class Comparison(models.Model):
    """A baseline and a candidate of one repository on one platform.

    The refs are kept as they were asked for; the commits they meant were looked up once.
    """

    repository = models.ForeignKey("dashboard.Repository", on_delete=models.PROTECT)
    baseline_ref = models.CharField(max_length=200)
    candidate_ref = models.CharField(max_length=200)
    baseline = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="+"
    )
    candidate = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="+"
    )
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.PROTECT)
    version = models.ForeignKey("dashboard.TemplateVersion", null=True, on_delete=models.PROTECT)
    seed = models.PositiveBigIntegerField(help_text="gives the order of every pair")
    margin = models.FloatField(help_text="smallest relative change that matters")
    rungs = models.JSONField(help_text="numbers of pairs at which a verdict is looked for")
    state = models.CharField(
        max_length=10, choices=ComparisonState.choices, default=ComparisonState.RESOLVING
    )
    failure_kind = models.CharField(max_length=20, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    hint = models.CharField(max_length=500, blank=True)
    key = models.CharField(max_length=64, blank=True, help_text="of the form that asked for it")
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "id"], name="comparison_by_state")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=ComparisonState.values), name="comparison_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=COMPARISON_ENDED, ended_at__isnull=False)
                | Q(~Q(state__in=COMPARISON_ENDED), ended_at__isnull=True),
                name="comparison_ended_iff_terminal",
            ),
            models.CheckConstraint(
                condition=~Q(state=ComparisonState.MEASURING)
                | Q(baseline__isnull=False, candidate__isnull=False),
                name="measured_comparison_has_commits",
            ),
            models.UniqueConstraint(
                fields=["created_by", "key"],
                condition=~Q(key=""),
                name="one_comparison_per_key",
            ),
        ]

    def __str__(self) -> str:
        return f"comparison {self.pk} ({self.state})"

    @property
    def is_terminal(self) -> bool:
        return self.state in COMPARISON_ENDED


class ComparedState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    MEASURING = "measuring", "Measuring"
    SETTLED = "settled", "Settled"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class ComparedWorkload(models.Model):
    """One workload of a comparison; `verdict` and the figures are those of its headline metric."""

    comparison = models.ForeignKey(Comparison, on_delete=models.CASCADE, related_name="workloads")
    position = models.PositiveIntegerField()
    workload = models.ForeignKey("dashboard.Workload", on_delete=models.PROTECT)
    spec = models.JSONField()
    metric = models.CharField(max_length=40)
    pairs_wanted = models.PositiveIntegerField(help_text="the rung that is measured for")
    state = models.CharField(
        max_length=10, choices=ComparedState.choices, default=ComparedState.WAITING
    )
    verdict = models.CharField(max_length=16, blank=True)
    sentence = models.CharField(max_length=1000, blank=True)
    effect = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    failure_kind = models.CharField(max_length=20, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    hint = models.CharField(max_length=500, blank=True)
    environments = models.JSONField(default=dict, help_text="comparable hash -> recorded facts")
    baseline_trace = models.ForeignKey(
        "dashboard.Trace", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    candidate_trace = models.ForeignKey(
        "dashboard.Trace", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    difference = models.ForeignKey(
        "dashboard.Artifact",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="the two profiled launches compared per step",
    )

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                fields=["comparison", "position"], name="one_compared_workload_per_position"
            ),
            models.CheckConstraint(
                condition=Q(state__in=ComparedState.values), name="compared_state_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workload} of comparison {self.comparison_id}"


class Pair(models.Model):
    """Two launches, one of each side, one right after the other; `order` says which came first."""

    compared = models.ForeignKey(ComparedWorkload, on_delete=models.CASCADE, related_name="pairs")
    number = models.PositiveIntegerField()
    order = models.CharField(max_length=2, choices=[("AB", "AB"), ("BA", "BA")])

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["compared", "number"], name="one_pair_per_number")
        ]

    def __str__(self) -> str:
        return f"pair {self.number + 1} ({self.order})"


class Launch(models.Model):
    """One fresh process of one side: its medians, or why it has none."""

    pair = models.ForeignKey(Pair, on_delete=models.CASCADE, related_name="launches")
    side = models.CharField(max_length=10, choices=Side.choices)
    fence = models.PositiveBigIntegerField()
    values = models.JSONField(default=dict, help_text="metric -> median of the timed iterations")
    comparable_hash = models.CharField(max_length=64, blank=True)
    result = models.ForeignKey("dashboard.Artifact", null=True, on_delete=models.PROTECT)
    failure_kind = models.CharField(max_length=20, blank=True)
    message = models.CharField(max_length=1000, blank=True)
    took_ns = models.BigIntegerField()
    ended_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["pair", "side"], name="one_launch_per_side"),
            models.CheckConstraint(
                condition=Q(failure_kind="", result__isnull=False)
                | Q(~Q(failure_kind=""), result__isnull=True),
                name="launch_has_result_or_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.side} of pair {self.pair_id}"
