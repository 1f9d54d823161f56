"""Profiler files and what was read from them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class TraceState(models.TextChoices):
    PENDING = "pending", "Pending"
    INGESTING = "ingesting", "Ingesting"
    READY = "ready", "Ready"
    REJECTED = "rejected", "Rejected"


class TraceSet(models.Model):
    """Traces uploaded together: the ranks of one job, compared on a page of their own."""

    uploaded_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"trace set {self.pk}"


class Trace(models.Model):
    """A profiler file of one rank: of a run, or uploaded without one.

    Its life is its own: a file that cannot be read never costs the run its
    measurements, and reading it again never runs a benchmark again.
    """

    run = models.ForeignKey(
        "dashboard.Run", null=True, on_delete=models.CASCADE, related_name="traces"
    )
    set = models.ForeignKey(TraceSet, null=True, on_delete=models.CASCADE, related_name="traces")
    rank = models.PositiveIntegerField(
        default=0, help_text="as recorded, else from the name, else the place in the upload"
    )
    name = models.CharField(max_length=255, help_text="file name as given; foreign text")
    raw = models.ForeignKey(
        "dashboard.Artifact", on_delete=models.PROTECT, related_name="raw_traces"
    )
    report = models.ForeignKey(
        "dashboard.Artifact", null=True, on_delete=models.PROTECT, related_name="report_traces"
    )
    flame = models.ForeignKey(
        "dashboard.Artifact", null=True, on_delete=models.PROTECT, related_name="flame_traces"
    )
    graph = models.ForeignKey(
        "dashboard.Artifact", null=True, on_delete=models.PROTECT, related_name="graph_traces"
    )
    replay = models.ForeignKey(
        "dashboard.Artifact", null=True, on_delete=models.PROTECT, related_name="replay_traces"
    )
    columns = models.ForeignKey(
        "dashboard.Artifact", null=True, on_delete=models.PROTECT, related_name="column_traces"
    )
    collectives = models.ForeignKey(
        "dashboard.Artifact", null=True, on_delete=models.PROTECT, related_name="collective_traces"
    )
    profile = models.ForeignKey(
        "dashboard.Artifact",
        null=True,
        on_delete=models.PROTECT,
        related_name="profile_traces",
        help_text="time per step by operator, for comparing; absent in readings of before",
    )
    redacted = models.ForeignKey(
        "dashboard.Artifact", null=True, on_delete=models.PROTECT, related_name="redacted_traces"
    )
    redaction_wanted = models.BooleanField(
        default=False, help_text="reading it also writes a copy without personal details"
    )
    state = models.CharField(
        max_length=10, choices=TraceState.choices, default=TraceState.PENDING, db_index=True
    )
    attempt = models.PositiveIntegerField(default=0)
    fence = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    hint = models.CharField(max_length=500, blank=True)
    parser_version = models.CharField(max_length=40, blank=True)
    device_kind = models.CharField(max_length=40, blank=True)
    events = models.BigIntegerField(null=True)
    span_ns = models.BigIntegerField(null=True)
    steps = models.PositiveIntegerField(null=True, help_text="absent in readings of before")
    uploaded_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    rung_at = models.DateTimeField(null=True, help_text="when a message last went out for it")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=TraceState.values), name="trace_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state=TraceState.INGESTING, lease_until__isnull=False)
                | Q(~Q(state=TraceState.INGESTING), lease_until__isnull=True),
                name="trace_lease_iff_ingesting",
            ),
            models.CheckConstraint(
                condition=Q(
                    state__in=[TraceState.READY, TraceState.REJECTED], ended_at__isnull=False
                )
                | Q(state__in=[TraceState.PENDING, TraceState.INGESTING], ended_at__isnull=True),
                name="trace_ended_iff_terminal",
            ),
            models.CheckConstraint(
                condition=~Q(state=TraceState.READY)
                | Q(report__isnull=False, flame__isnull=False, events__isnull=False),
                name="ready_trace_has_results",
            ),
            models.CheckConstraint(
                condition=~Q(state=TraceState.REJECTED) | ~Q(reason=""),
                name="rejected_trace_has_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(run__isnull=True) | Q(set__isnull=True),
                name="trace_of_a_run_or_of_a_set",
            ),
            models.UniqueConstraint(
                fields=["run", "rank"], condition=Q(run__isnull=False), name="one_trace_per_rank"
            ),
        ]

    def __str__(self) -> str:
        return f"trace {self.pk} ({self.state})"

    @property
    def is_terminal(self) -> bool:
        return self.state in {TraceState.READY, TraceState.REJECTED}


class Operator(models.Model):
    """One row of a trace's operator table: totals over the whole trace, in nanoseconds."""

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="operators")
    name = models.CharField(max_length=500)
    canonical = models.CharField(max_length=500, help_text="the name used across vendors")
    count = models.BigIntegerField()
    host_total_ns = models.BigIntegerField()
    host_self_ns = models.BigIntegerField()
    device_total_ns = models.BigIntegerField()
    device_self_ns = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["trace", "-host_self_ns"], name="operator_by_host_self"),
            models.Index(fields=["trace", "-device_self_ns"], name="operator_by_device_self"),
            models.Index(fields=["canonical", "trace"], name="operator_by_canonical_trace"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["trace", "name"], name="one_row_per_operator"),
            models.CheckConstraint(
                condition=Q(host_self_ns__gte=0, device_self_ns__gte=0, count__gte=0),
                name="operator_times_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return self.name[:80]
