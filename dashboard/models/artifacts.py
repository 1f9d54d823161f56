"""Files, stored once by their content."""

from __future__ import annotations

from django.db import models


class Artifact(models.Model):
    """Bytes in the store under their SHA-256; the file is durable before the row exists."""

    sha256 = models.CharField(max_length=64, unique=True)
    size_bytes = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(size_bytes__gte=0), name="artifact_size_not_negative"
            )
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
