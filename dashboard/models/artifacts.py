"""Files, stored once by their content."""

from __future__ import annotations

from django.db import models


class Artifact(models.Model):
    """Bytes in the store under their SHA-256; the file is durable before the row exists.

    A row outlives a file that a policy removed: it says what went, when and why.
    """

    sha256 = models.CharField(max_length=64, unique=True)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, help_text="when a policy removed the file")
    removal = models.CharField(max_length=200, blank=True, help_text="what that policy said")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(size_bytes__gte=0), name="artifact_size_not_negative"
            ),
            models.CheckConstraint(
                condition=models.Q(removed_at__isnull=True, removal="")
                | (models.Q(removed_at__isnull=False) & ~models.Q(removal="")),
                name="removed_artifact_says_why",
            ),
        ]

    def __str__(self) -> str:
        return self.sha256[:12]


class RunArtifact(models.Model):
    """A named file of one attempt of a run: `log.txt`, `trace.json.gz` ..."""

    run = models.ForeignKey("dashboard.Run", on_delete=models.CASCADE, related_name="artifacts")
    attempt = models.PositiveIntegerField()
    name = models.CharField(max_length=80)
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "attempt", "name"], name="one_file_per_name_and_attempt"
            )
        ]

    def __str__(self) -> str:
        return f"run {self.run_id} attempt {self.attempt} {self.name}"
