"""What a history chart should remember: "driver updated", "new model revision"."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Annotation(models.Model):
    """A remark at a place of the history, by a person.

    With a commit it stands there, in every series that has the commit;
    without one at the first run that was asked for at `at` or later. Without
    a model it holds for every model on the platform, as a new driver does.
    """

    platform = models.ForeignKey("dashboard.Platform", on_delete=models.CASCADE)
    model = models.ForeignKey("dashboard.Model", null=True, on_delete=models.CASCADE)
    commit = models.ForeignKey("dashboard.Commit", null=True, on_delete=models.CASCADE)
    at = models.DateTimeField()
    text = models.CharField(max_length=300)
    author = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["platform", "at"], name="annotation_by_platform")]
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="annotation_says_something")
        ]

    def __str__(self) -> str:
        return self.text[:80]
