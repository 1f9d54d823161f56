"""What people learnt: notes on runs, operators, findings and models."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class NoteKind(models.TextChoices):
    """What a note is about."""

    RUN = "run", "Run"
    OPERATOR = "operator", "Operator"
    FINDING = "finding", "Finding"
    MODEL = "model", "Model"


class Note(models.Model):
    """Markdown by a person about one thing.

    An operator is named as vendors share it; a finding by its kind and the
    operator (or module, or collective) it is about, so that the note is found
    again in later traces. With a platform it holds for that platform only.
    """

    kind = models.CharField(max_length=10, choices=NoteKind.choices)
    run = models.ForeignKey("dashboard.Run", null=True, on_delete=models.CASCADE)
    model = models.ForeignKey("dashboard.Model", null=True, on_delete=models.CASCADE)
    operator = models.CharField(max_length=500, blank=True, help_text="also a finding's subject")
    finding = models.CharField(max_length=40, blank=True)
    platform = models.ForeignKey("dashboard.Platform", null=True, on_delete=models.PROTECT)
    text = models.TextField(max_length=20_000)
    author = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    edited_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["operator"], name="note_by_operator")]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind=NoteKind.RUN, run__isnull=False, model__isnull=True)
                | Q(kind=NoteKind.MODEL, run__isnull=True, model__isnull=False)
                | Q(
                    kind__in=[NoteKind.OPERATOR, NoteKind.FINDING],
                    run__isnull=True,
                    model__isnull=True,
                ),
                name="note_is_about_its_kind",
            ),
            models.CheckConstraint(
                condition=Q(kind=NoteKind.OPERATOR, finding="") & ~Q(operator="")
                | Q(kind=NoteKind.FINDING) & ~Q(finding="")
                | Q(kind__in=[NoteKind.RUN, NoteKind.MODEL], operator="", finding=""),
                name="note_names_its_operator_or_finding",
            ),
            models.CheckConstraint(condition=~Q(text=""), name="note_says_something"),
        ]

    def __str__(self) -> str:
        return f"note {self.pk} on a {self.kind}"
