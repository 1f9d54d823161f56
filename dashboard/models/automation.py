"""Schedules that queue templates by themselves, what they queued, and what limits them.

A schedule writes a *firing* for every cause: a moment of its clock, a new
commit, a changed software stack, a person. The key of a firing is unique
within its schedule, so looking twice never queues twice.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class ScheduleKind(models.TextChoices):
    INTERVAL = "interval", "At fixed times"
    COMMITS = "commits", "New commits"
    STACK = "stack", "Changed software stack"


class Schedule(models.Model):
    """A template, a platform and when it is queued; `branch` is empty without a repository."""

    name = models.CharField(max_length=60, unique=True)
    kind = models.CharField(max_length=10, choices=ScheduleKind.choices)
    template = models.ForeignKey("dashboard.Template", on_delete=models.PROTECT)
    platform = models.ForeignKey("dashboard.Platform", on_delete=models.PROTECT)
    repository = models.ForeignKey("dashboard.Repository", null=True, on_delete=models.PROTECT)
    branch = models.CharField(max_length=200, blank=True)
    every_h = models.PositiveIntegerField(null=True, help_text="hours between two times")
    at_minute = models.PositiveIntegerField(default=0, help_text="minute of the UTC day")
    newest = models.PositiveIntegerField(
        default=5, help_text="commits of one push that are measured, counted from the newest"
    )
    enabled = models.BooleanField(default=True)
    enabled_at = models.DateTimeField(help_text="nothing from before is made up for")
    polled_at = models.DateTimeField(null=True, help_text="when a fetch was last asked for")
    looked_at = models.DateTimeField(null=True, help_text="fetch whose commits were looked at")
    seen_sha = models.CharField(max_length=64, blank=True, help_text="newest commit looked at")
    problem = models.CharField(max_length=500, blank=True, help_text="why it cannot look now")
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=ScheduleKind.values), name="schedule_kind_is_known"
            ),
            models.CheckConstraint(
                condition=Q(kind=ScheduleKind.INTERVAL, every_h__gt=0, at_minute__lt=1440)
                | Q(~Q(kind=ScheduleKind.INTERVAL), every_h__isnull=True),
                name="schedule_has_hours_iff_interval",
            ),
            models.CheckConstraint(
                condition=~Q(kind=ScheduleKind.COMMITS) | Q(repository__isnull=False),
                name="schedule_of_commits_has_repository",
            ),
            models.CheckConstraint(
                condition=Q(~Q(branch=""), repository__isnull=False)
                | Q(branch="", repository__isnull=True),
                name="schedule_has_branch_iff_repository",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class FiringState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    QUEUED = "queued", "Queued"
    SKIPPED = "skipped", "Skipped"


class Cause(models.TextChoices):
    """Why a schedule fired."""

    TIME = "time", "Its time came"
    COMMIT = "commit", "New commit"
    PARENT = "parent", "Parent to compare with"
    STACK = "stack", "Changed software stack"
    PERSON = "person", "Somebody asked"


class Wait(models.TextChoices):
    """What a waiting firing waits for; only `budget` holds back those behind it."""

    FETCH = "fetch", "a fetch of the repository"
    BUDGET = "budget", "device time"
    TOO_LARGE = "too_large", "a larger budget"


class Firing(models.Model):
    """One time a schedule queued its template, or wants to."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="firings")
    key = models.CharField(max_length=200)
    cause = models.CharField(max_length=10, choices=Cause.choices)
    cause_text = models.CharField(max_length=300, blank=True)
    state = models.CharField(
        max_length=10, choices=FiringState.choices, default=FiringState.WAITING
    )
    wait = models.CharField(max_length=10, choices=Wait.choices, blank=True)
    reason = models.CharField(max_length=500, blank=True, help_text="why it waits or was skipped")
    version = models.ForeignKey("dashboard.TemplateVersion", on_delete=models.PROTECT)
    commit = models.ForeignKey("dashboard.Commit", null=True, on_delete=models.PROTECT)
    left_out = models.PositiveIntegerField(
        default=0, help_text="older commits of the same push that are not measured"
    )
    group = models.OneToOneField(
        "dashboard.RunGroup", null=True, on_delete=models.SET_NULL, related_name="firing"
    )
    runs = models.PositiveIntegerField(default=0)
    usual_ns = models.FloatField(null=True, help_text="usual time of its runs that have history")
    unknown_runs = models.PositiveIntegerField(default=0, help_text="runs without history")
    not_before = models.DateTimeField(help_text="when a waiting one is looked at again")
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "id"], name="firing_by_state")]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "key"], name="one_firing_per_key"),
            models.CheckConstraint(
                condition=Q(state__in=FiringState.values), name="firing_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state=FiringState.WAITING, decided_at__isnull=True)
                | Q(~Q(state=FiringState.WAITING), decided_at__isnull=False, wait=""),
                name="firing_decided_iff_not_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"firing {self.pk} of {self.schedule_id} ({self.state})"


class Budget(models.Model):
    """Device time per UTC day that schedules may use on a platform; no row: no limit."""

    platform = models.OneToOneField(
        "dashboard.Platform", on_delete=models.CASCADE, related_name="budget"
    )
    minutes_per_day = models.FloatField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(minutes_per_day__gte=0), name="budget_is_possible")
        ]

    def __str__(self) -> str:
        return f"{self.minutes_per_day:g} min a day on {self.platform}"


class Stack(models.Model):
    """A software stack that a worker of a platform reported with a result.

    `hash` covers what makes environments comparable, without what a
    workload chooses for itself. Commits of a repository bring packages of
    their own, so each repository has its own stacks.
    """

    platform = models.ForeignKey(
        "dashboard.Platform", on_delete=models.CASCADE, related_name="stacks"
    )
    repository = models.ForeignKey("dashboard.Repository", null=True, on_delete=models.CASCADE)
    hash = models.CharField(max_length=64)
    fields = models.JSONField(default=dict, help_text="field -> value")
    is_change = models.BooleanField(help_text="whether another stack was known before")
    difference = models.CharField(max_length=300, blank=True, help_text="from the one before")
    run = models.ForeignKey("dashboard.Run", null=True, on_delete=models.SET_NULL)
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["platform", "repository", "hash"], name="one_stack_per_repository"
            ),
            models.UniqueConstraint(
                fields=["platform", "hash"],
                condition=Q(repository__isnull=True),
                name="one_stack_without_repository",
            ),
        ]

    def __str__(self) -> str:
        return f"stack {self.hash[:10]} of {self.platform_id}"


class Hook(models.Model):
    """The address a repository's host calls after a push. Its secret is derived, never stored."""

    repository = models.OneToOneField(
        "dashboard.Repository", on_delete=models.CASCADE, related_name="hook"
    )
    generation = models.PositiveIntegerField(default=1, help_text="a new one ends the old secret")
    enabled = models.BooleanField(default=True)
    accepted_at = models.DateTimeField(null=True)
    refused_at = models.DateTimeField(null=True)
    refused_why = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return f"webhook of {self.repository}"


class Push(models.Model):
    """One call of a webhook that was signed right; the same body twice is one push."""

    hook = models.ForeignKey(Hook, on_delete=models.CASCADE, related_name="pushes")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the body")
    event = models.CharField(max_length=40, blank=True)
    ref = models.CharField(max_length=200, blank=True)
    head_sha = models.CharField(max_length=64, blank=True, help_text="as told, not yet fetched")
    at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "pushes"
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["hook", "digest"], name="one_push_per_body")]

    def __str__(self) -> str:
        return f"push {self.pk} of {self.hook_id}"
