"""Verbs on annotations of histories: write and remove. What they said stays in the record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from dashboard.models import Annotation, Commit, Model, Platform, User
from dashboard.services import audit
from dashboard.services.clock import db_now


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationPlace:
    """Where a remark stands; `at` None is now, `model` None every model on the platform."""

    platform: Platform
    model: Model | None = None
    commit: Commit | None = None
    at: datetime | None = None


@transaction.atomic
def write_annotation(user: User, place: AnnotationPlace, text: str) -> Annotation:
    """A new annotation of `user`."""
    now = db_now()
    row = Annotation.objects.create(
        platform=place.platform,
        model=place.model,
        commit=place.commit,
        at=place.at or now,
        text=text,
        author=user,
        created_at=now,
    )
    audit.note(user, "annotation.write", f"annotation {row.pk}", {"text": text})
    return row


@transaction.atomic
def delete_annotation(annotation_id: int, user: User) -> None:
    """Remove an annotation; raises `Annotation.DoesNotExist`."""
    row = Annotation.objects.select_for_update().get(pk=annotation_id)
    audit.note(user, "annotation.delete", f"annotation {annotation_id}", {"before": row.text})
    row.delete()
