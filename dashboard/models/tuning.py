"""The tuning loop: from Day-0 towards a target, one tried optimisation at a time.

A decision is terminal: a mistaken one is corrected by a new iteration, so that
the ladder always tells what was really tried.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class TuningState(models.TextChoices):
    OPEN = "open", "Open"
    REACHED = "reached", "Target reached"
    STOPPED = "stopped", "Stopped"


class TargetKind(models.TextChoices):
    ROOFLINE = "roofline", "A share of the roofline"
    RIVAL = "rival", "The figure of another platform"
    VALUE = "value", "A value"


class IterationState(models.TextChoices):
    IDEA = "idea", "Idea"
    MEASURING = "measuring", "Measuring"
    KEPT = "kept", "Kept"
    REVERTED = "reverted", "Reverted"


DECIDED = (IterationState.KEPT, IterationState.REVERTED)


class Numerics(models.TextChoices):
    """Whether the answers are still right."""

    BIT_EXACT = "bit-exact", "Bit-exact"
    WITHIN = "within tolerance", "Within tolerance"
    DRIFTED = "drifted", "Drifted"
    DIVERGED = "diverged", "Diverged"
    NOT_CHECKED = "not checked", "Not checked"


NUMERICS_RIGHT = (Numerics.BIT_EXACT, Numerics.WITHIN)
FASTER = "faster"


class Tuning(models.Model):
    """One workload on one platform, tuned commit by commit.

    The workload leads: its metric is what the ladder climbs. With a template
    every comparison also measures the template's other workloads of the model.
    `day0_value` is the median over the Day-0 runs, `target_value` the figure
    that the target meant when it was set; both in the unit of the metric.
    """

    workload = models.ForeignKey(
        "dashboard.Workload", on_delete=models.PROTECT, related_name="tunings"
    )
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.PROTECT)
    repository = models.ForeignKey("dashboard.Repository", on_delete=models.PROTECT)
    version = models.ForeignKey("dashboard.TemplateVersion", null=True, on_delete=models.PROTECT)
    spec = models.JSONField(help_text="the leading workload as it is measured")
    metric = models.CharField(max_length=40)
    day0_commit = models.ForeignKey("dashboard.Commit", on_delete=models.PROTECT, related_name="+")
    day0_runs = models.ManyToManyField("dashboard.Run", related_name="tunings")
    day0_value = models.FloatField()
    target_kind = models.CharField(max_length=10, choices=TargetKind.choices)
    target_value = models.FloatField()
    target_share = models.FloatField(null=True, help_text="of the roofline")
    rival = models.ForeignKey(
        "dashboard.Platform", null=True, on_delete=models.PROTECT, related_name="+"
    )
    state = models.CharField(
        max_length=10, choices=TuningState.choices, default=TuningState.OPEN, db_index=True
    )
    reason = models.CharField(max_length=1000, blank=True, help_text="why it was closed")
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=TuningState.values), name="tuning_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state=TuningState.OPEN, ended_at__isnull=True, reason="")
                | Q(~Q(state=TuningState.OPEN), ~Q(reason=""), ended_at__isnull=False),
                name="tuning_ended_iff_closed",
            ),
            models.CheckConstraint(
                condition=Q(day0_value__gt=0, target_value__gt=0), name="tuning_values_positive"
            ),
            models.CheckConstraint(
                condition=Q(target_kind=TargetKind.ROOFLINE, target_share__gt=0, rival__isnull=True)
                | Q(target_kind=TargetKind.RIVAL, target_share__isnull=True, rival__isnull=False)
                | Q(target_kind=TargetKind.VALUE, target_share__isnull=True, rival__isnull=True),
                name="tuning_target_is_of_its_kind",
            ),
            models.UniqueConstraint(
                fields=["workload", "platform", "repository", "metric"],
                condition=Q(state=TuningState.OPEN),
                name="one_open_tuning_per_workload",
            ),
        ]

    def __str__(self) -> str:
        return f"tuning {self.pk} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state == TuningState.OPEN


class Iteration(models.Model):
    """One tried optimisation: finding, hypothesis, commit, verdicts, decision.

    `predicted_effect` and `effect` are relative changes of the tuning's metric
    (-0.06 is 6 % less). `baseline` is the commit it is held against;
    `stands_on` the kept iteration below it on the ladder (none: Day-0).
    `setback` is what was lost between the two, by a change that the iteration
    mends. The verdict and its figures are copied when it is decided, so that
    pairs measured later do not rewrite the ladder.
    """

    tuning = models.ForeignKey(Tuning, on_delete=models.CASCADE, related_name="iterations")
    number = models.PositiveIntegerField()
    hypothesis = models.TextField(max_length=2000)
    finding_kind = models.CharField(max_length=40, blank=True)
    finding_subject = models.CharField(max_length=500, blank=True)
    finding_title = models.CharField(max_length=500, blank=True)
    trace = models.ForeignKey(
        "dashboard.Trace", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    predicted_ns = models.BigIntegerField(null=True, help_text="per profiled step")
    predicted_effect = models.FloatField(null=True)
    change = models.ForeignKey(
        "dashboard.Change", null=True, on_delete=models.SET_NULL, related_name="iterations"
    )
    setback = models.FloatField(null=True)
    stands_on = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")
    baseline = models.ForeignKey("dashboard.Commit", on_delete=models.PROTECT, related_name="+")
    candidate_ref = models.CharField(max_length=200, blank=True)
    comparison = models.ForeignKey(
        "dashboard.Comparison", null=True, on_delete=models.PROTECT, related_name="iterations"
    )
    commit = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="+"
    )
    numerics = models.CharField(
        max_length=20, choices=Numerics.choices, default=Numerics.NOT_CHECKED
    )
    state = models.CharField(
        max_length=10, choices=IterationState.choices, default=IterationState.IDEA
    )
    verdict = models.CharField(max_length=16, blank=True, help_text="when it was decided")
    effect = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    pairs = models.PositiveIntegerField(default=0)
    reason = models.CharField(max_length=1000, blank=True)
    despite = models.CharField(
        max_length=1000, blank=True, help_text="why it is kept though something speaks against it"
    )
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        "dashboard.User", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        indexes = [
            models.Index(fields=["finding_kind", "decided_at"], name="iteration_by_kind"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["tuning", "number"], name="one_iteration_per_number"),
            models.UniqueConstraint(
                fields=["tuning", "comparison"],
                condition=Q(comparison__isnull=False),
                name="one_iteration_per_comparison",
            ),
            models.CheckConstraint(
                condition=Q(state__in=IterationState.values), name="iteration_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(numerics__in=Numerics.values), name="iteration_numerics_is_known"
            ),
            models.CheckConstraint(
                condition=Q(~Q(reason=""), state__in=DECIDED, decided_at__isnull=False)
                | Q(~Q(state__in=DECIDED), reason="", despite="", decided_at__isnull=True),
                name="iteration_reason_iff_decided",
            ),
            models.CheckConstraint(
                condition=~Q(state=IterationState.MEASURING) | Q(comparison__isnull=False),
                name="measuring_iteration_has_comparison",
            ),
            models.CheckConstraint(
                condition=~Q(state=IterationState.IDEA) | Q(comparison__isnull=True),
                name="idea_has_no_comparison",
            ),
            models.CheckConstraint(
                condition=~Q(state=IterationState.KEPT) | Q(commit__isnull=False),
                name="kept_iteration_has_a_commit",
            ),
            models.CheckConstraint(
                condition=~Q(state=IterationState.KEPT)
                | Q(verdict=FASTER, numerics__in=NUMERICS_RIGHT)
                | ~Q(despite=""),
                name="kept_unverified_says_why",
            ),
            models.CheckConstraint(condition=~Q(hypothesis=""), name="iteration_says_something"),
        ]

    def __str__(self) -> str:
        return f"iteration {self.number} ({self.state})"

    @property
    def is_decided(self) -> bool:
        return self.state in DECIDED
