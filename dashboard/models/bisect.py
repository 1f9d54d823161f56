"""The search for the commit that changed a speed, comparison by comparison.

A bisect lies between a good and a bad commit. Each step is a comparison of
the good commit with another one; the last compares the commit that was found
with its parent. The rows are all there is to know: any keeper goes on from them.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class BisectState(models.TextChoices):
    RESOLVING = "resolving", "Resolving commits"
    MEASURING = "measuring", "Measuring"
    ENDED = "ended", "Ended"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


BISECT_ENDED = (BisectState.ENDED, BisectState.FAILED, BisectState.CANCELLED)


class BisectOutcome(models.TextChoices):
    """What an ended bisect found."""

    CONFIRMED = "confirmed", "Culprit confirmed"
    UNCONFIRMED = "unconfirmed", "Culprit not confirmed"
    SEVERAL = "several", "One of several commits"
    ALIKE = "alike", "Both ends alike"


class BisectAnswer(models.TextChoices):
    """What a measured commit said. `skipped` could not be measured, `unsure` was too noisy."""

    GOOD = "good", "Good"
    BAD = "bad", "Bad"
    SKIPPED = "skipped", "Skipped"
    UNSURE = "unsure", "Unsure"


class BisectStepKind(models.TextChoices):
    ENDS = "ends", "Good against bad"
    PROBE = "probe", "Good against a commit between"
    CONFIRM = "confirm", "Culprit against its parent"


class Bisect(models.Model):
    """One workload between two commits of a repository on one platform.

    `effect` is the relative change between the ends; half of it is the
    `threshold` that parts good from bad commits.
    """

    repository = models.ForeignKey("dashboard.Repository", on_delete=models.PROTECT)
    good_ref = models.CharField(max_length=200)
    bad_ref = models.CharField(max_length=200)
    good = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="+"
    )
    bad = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="+"
    )
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.PROTECT)
    workload = models.ForeignKey("dashboard.Workload", on_delete=models.PROTECT)
    spec = models.JSONField()
    metric = models.CharField(max_length=40)
    margin = models.FloatField(help_text="smallest relative change that matters")
    rungs = models.JSONField(help_text="numbers of pairs at which a verdict is looked for")
    seed = models.PositiveBigIntegerField(help_text="gives the order of the pairs of each step")
    threshold = models.FloatField(null=True, help_text="change from which a commit is bad")
    looked_for = models.CharField(
        max_length=8, blank=True, choices=[("slower", "slower"), ("faster", "faster")]
    )
    effect = models.FloatField(null=True)
    culprit = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="+"
    )
    outcome = models.CharField(max_length=12, choices=BisectOutcome.choices, blank=True)
    state = models.CharField(
        max_length=10, choices=BisectState.choices, default=BisectState.RESOLVING
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
        indexes = [models.Index(fields=["state", "id"], name="bisect_by_state")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=BisectState.values), name="bisect_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=BISECT_ENDED, ended_at__isnull=False)
                | Q(~Q(state__in=BISECT_ENDED), ended_at__isnull=True),
                name="bisect_ended_iff_terminal",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[BisectState.MEASURING, BisectState.ENDED])
                | Q(good__isnull=False, bad__isnull=False),
                name="measured_bisect_has_commits",
            ),
            models.CheckConstraint(
                condition=Q(state=BisectState.ENDED, outcome__in=BisectOutcome.values)
                | Q(~Q(state=BisectState.ENDED), outcome=""),
                name="bisect_outcome_iff_ended",
            ),
            models.UniqueConstraint(
                fields=["created_by", "key"], condition=~Q(key=""), name="one_bisect_per_key"
            ),
        ]

    def __str__(self) -> str:
        return f"bisect {self.pk} ({self.state})"

    @property
    def is_terminal(self) -> bool:
        return self.state in BISECT_ENDED


class BisectStep(models.Model):
    """One comparison of a bisect; `answer` is empty while it is being measured."""

    bisect = models.ForeignKey(Bisect, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=BisectStepKind.choices)
    commit = models.ForeignKey("dashboard.Commit", on_delete=models.PROTECT, related_name="+")
    comparison = models.OneToOneField(
        "dashboard.Comparison", on_delete=models.PROTECT, related_name="bisect_step"
    )
    answer = models.CharField(max_length=8, choices=BisectAnswer.choices, blank=True)
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["bisect", "number"], name="one_step_per_number"),
            models.CheckConstraint(
                condition=Q(answer="") | Q(answer__in=BisectAnswer.values),
                name="bisect_answer_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.number + 1} of bisect {self.bisect_id}"
