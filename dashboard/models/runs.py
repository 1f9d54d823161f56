"""Runs, their attempts and results.

`attempt` counts for the cap on retries, `fence` only grows and stands on every
write of a worker, so that a worker which lost its lease cannot change a run
that somebody else took over. Terminal states never change; "run again" makes a
new run.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q


class RunState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    TIMED_OUT = "timed_out", "Timed out"
    CANCELLED = "cancelled", "Cancelled"
    LOST = "lost", "Lost"
    EXPIRED = "expired", "Expired"


ACTIVE = (RunState.QUEUED, RunState.RUNNING)
TERMINAL = tuple(state for state in RunState if state not in ACTIVE)


class FailureKind(models.TextChoices):
    """Why a run did not succeed; the cause is who ended it first."""

    BAD_SPEC = "bad_spec", "Bad specification"
    CRASHED = "crashed", "Benchmark crashed"
    SIGNAL = "signal", "Killed by a signal"
    OOM_HOST = "oom_host", "Out of host memory"
    OOM_DEVICE = "oom_device", "Out of device memory"
    UNSUPPORTED = "unsupported", "Not supported by the device"
    NON_FINITE = "non_finite", "NaN or infinity in the output"
    BAD_CHECKPOINT = "bad_checkpoint", "Unusable checkpoint"
    COMPILE_FAILED = "compile_failed", "Compilation failed"
    INVALID_RESULT = "invalid_result", "Result missing or unusable"
    DISK_FULL = "disk_full", "Disk full"
    TIME_LIMIT = "time_limit", "Over its time limit"
    WORKER_LOST = "worker_lost", "Worker lost"
    WORKER_FAULT = "worker_fault", "Fault of the worker"
    CANCELLED = "cancelled", "Cancelled"
    NO_WORKER = "no_worker", "No worker took it"
    UNKNOWN_COMMIT = "unknown_commit", "Unknown commit"
    OUTSIDE_REFS = "outside_refs", "Commit outside the allowed branches"
    NO_REPOSITORY = "no_repository", "Repository not reached"
    CHECKOUT_FAILED = "checkout_failed", "Checkout failed"
    BUILD_FAILED = "build_failed", "Build failed"
    BUILD_TIMED_OUT = "build_timed_out", "Build timed out"


class Run(models.Model):
    workload = models.ForeignKey(
        "dashboard.Workload", on_delete=models.PROTECT, related_name="runs"
    )
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.PROTECT)
    commit = models.ForeignKey(
        "dashboard.Commit", null=True, on_delete=models.PROTECT, related_name="runs"
    )
    compared = models.ForeignKey(
        "dashboard.ComparedWorkload",
        null=True,
        on_delete=models.CASCADE,
        related_name="sessions",
        help_text="set for a session, which measures pairs of a comparison",
    )
    spec = models.JSONField()
    spec_hash = models.CharField(max_length=64, db_index=True)
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.QUEUED)
    phase = models.CharField(max_length=16, blank=True)
    step = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    log_tail = models.TextField(blank=True)
    attempt = models.PositiveIntegerField(default=0)
    fence = models.PositiveBigIntegerField(default=0)
    worker = models.CharField(max_length=120, blank=True)
    lease_until = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    failure_kind = models.CharField(max_length=16, choices=FailureKind.choices, blank=True)
    failure_message = models.CharField(max_length=1000, blank=True)
    failure_hint = models.CharField(max_length=500, blank=True)
    limit_s = models.FloatField(help_text="seconds the benchmark may take")
    deadline_at = models.DateTimeField(null=True)
    not_before = models.DateTimeField()
    rung_at = models.DateTimeField(null=True, help_text="when a message last went out for it")
    expires_at = models.DateTimeField()
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    rerun_of = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)
    group = models.ForeignKey(
        "dashboard.RunGroup", null=True, on_delete=models.SET_NULL, related_name="runs"
    )

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["state", "lease_until"], name="run_by_lease"),
            models.Index(fields=["platform", "state", "not_before"], name="run_by_queue"),
            models.Index(fields=["workload", "platform", "state", "id"], name="run_by_workload"),
            models.Index(fields=["state", "ended_at"], name="run_by_end"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="run_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=TERMINAL, ended_at__isnull=False)
                | Q(state__in=ACTIVE, ended_at__isnull=True),
                name="run_ended_iff_terminal",
            ),
            models.CheckConstraint(
                condition=Q(
                    ~Q(worker=""),
                    state=RunState.RUNNING,
                    lease_until__isnull=False,
                    started_at__isnull=False,
                    deadline_at__isnull=False,
                    fence__gt=0,
                )
                | Q(~Q(state=RunState.RUNNING), lease_until__isnull=True),
                name="run_lease_iff_running",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[*ACTIVE, RunState.SUCCEEDED], failure_kind="")
                | Q(~Q(state__in=[*ACTIVE, RunState.SUCCEEDED]), ~Q(failure_kind="")),
                name="run_failure_kind_iff_unsuccessful",
            ),
            models.CheckConstraint(
                condition=Q(fence__gte=F("attempt")), name="run_fence_at_least_attempt"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} ({self.state})"

    @property
    def is_terminal(self) -> bool:
        return self.state not in ACTIVE


class Attempt(models.Model):
    """One claim of a run by a worker; never deleted, so a re-run attempt stays readable."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    fence = models.PositiveBigIntegerField()
    worker = models.CharField(max_length=120)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ["fence"]
        constraints = [
            models.UniqueConstraint(fields=["run", "fence"], name="one_attempt_per_fence")
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} attempt {self.number}"


class RunEvent(models.Model):
    """What happened to a run, append only."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=24)
    attempt = models.PositiveIntegerField(default=0)
    text = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["run"],
                condition=Q(kind__in=[str(state) for state in TERMINAL]),
                name="one_terminal_event_per_run",
            )
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} {self.kind}"


class Result(models.Model):
    """What a run measured; at most one per run."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="result")
    attempt = models.PositiveIntegerField()
    fence = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the result file")
    document = models.JSONField(help_text="result.json without the samples")
    environment = models.JSONField(help_text="env.json")
    comparable_hash = models.CharField(max_length=64, db_index=True)
    exact_hash = models.CharField(max_length=64)
    profiled_ratio = models.FloatField(null=True)
    stored_at = models.DateTimeField()

    class Meta:
        indexes = [
            # Histories ask for the environment alone; the documents before it are long.
            models.Index(fields=["run", "comparable_hash"], name="result_by_environment")
        ]

    def __str__(self) -> str:
        return f"result of run {self.run_id}"


class MetricValue(models.Model):
    """One metric of a result with its spread and raw samples."""

    result = models.ForeignKey(Result, on_delete=models.CASCADE, related_name="metrics")
    name = models.CharField(max_length=40)
    unit = models.CharField(max_length=16)
    direction = models.CharField(max_length=6)
    definition = models.PositiveIntegerField()
    phase = models.CharField(max_length=16)
    method = models.CharField(max_length=500)
    value = models.FloatField()
    n = models.PositiveIntegerField()
    minimum = models.FloatField(null=True)
    maximum = models.FloatField(null=True)
    iqr = models.FloatField(null=True)
    cov = models.FloatField(null=True)
    percentiles = models.JSONField(default=dict)
    samples = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["result", "name"], name="one_value_per_metric")
        ]

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


class Outbox(models.Model):
    """A message to ring for; written with the row it speaks of, removed once published."""

    queue = models.CharField(max_length=80)
    task = models.CharField(max_length=40)
    subject_id = models.BigIntegerField()
    attempt = models.PositiveIntegerField()
    created_at = models.DateTimeField()
    not_before = models.DateTimeField(db_index=True)
    tries = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.task} {self.subject_id}"


class IdempotencyKey(models.Model):
    """The first answer to a request, so that a double click makes one run."""

    user = models.ForeignKey("dashboard.User", on_delete=models.CASCADE)
    key = models.CharField(max_length=64)
    body_hash = models.CharField(max_length=64)
    run_ids = models.JSONField(default=list)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return self.key
