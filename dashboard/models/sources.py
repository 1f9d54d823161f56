"""Repositories whose commits are measured, and their commits.

An admin registers a repository; its code then runs with the rights of a
worker. Names, authors and subjects in it are foreign text.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class FetchState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    FETCHING = "fetching", "Fetching"
    READY = "ready", "Ready"
    FAILED = "failed", "Failed"


class Repository(models.Model):
    """Where commits come from and how a checked-out tree is made ready to run."""

    slug = models.SlugField(max_length=40, unique=True)
    address = models.CharField(max_length=400, help_text="https, ssh, or a path on the worker")
    private_network = models.BooleanField(
        default=False, help_text="whether its host may lie in a private network"
    )
    allowed_refs = models.JSONField(help_text="patterns of branches, such as main or release/*")
    import_paths = models.JSONField(help_text="folders put on the import path, `.` is the top")
    build_command = models.CharField(max_length=1000, blank=True)
    build_limit_s = models.FloatField(help_text="seconds the build may take")
    build_memory_bytes = models.BigIntegerField(default=0, help_text="0: as much as a run")
    factory = models.CharField(max_length=310, blank=True, help_text="path/file.py:function")
    state = models.CharField(
        max_length=10, choices=FetchState.choices, default=FetchState.WAITING, db_index=True
    )
    fence = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    wanted_at = models.DateTimeField(null=True, help_text="when a fetch was last asked for")
    fetched_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=1000, blank=True)
    hint = models.CharField(max_length=500, blank=True)
    heads = models.JSONField(default=dict, help_text="allowed ref -> SHA at the last fetch")
    default_branch = models.CharField(max_length=200, blank=True)
    head_sha = models.CharField(max_length=64, blank=True, help_text="what HEAD is there")
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "repositories"
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=FetchState.values), name="repository_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state=FetchState.FETCHING, lease_until__isnull=False)
                | Q(~Q(state=FetchState.FETCHING), lease_until__isnull=True),
                name="repository_lease_iff_fetching",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class Commit(models.Model):
    """A commit that an allowed ref reaches. `position` grows from parents to children."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="commits")
    sha = models.CharField(max_length=64)
    parents = models.JSONField(default=list, help_text="SHAs, first parent first")
    position = models.PositiveIntegerField(help_text="a topological order of the repository")
    author = models.CharField(max_length=200, blank=True)
    authored_at = models.DateTimeField()
    committed_at = models.DateTimeField()
    subject = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-position"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "sha"], name="one_commit_per_sha")
        ]
        indexes = [models.Index(fields=["repository", "-position"], name="commit_by_position")]

    def __str__(self) -> str:
        return self.sha[:10]
