"""Verbs on notes: write, edit, delete. What a note said before stays in the record of deeds."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from dashboard.models import Model, Note, NoteKind, Platform, Run, User
from dashboard.services import audit
from dashboard.services.clock import db_now


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteTarget:
    """What a note is about; only the fields of its kind are set."""

    kind: NoteKind
    run: Run | None = None
    model: Model | None = None
    operator: str = ""
    finding: str = ""
    platform: Platform | None = None


@transaction.atomic
def write_note(user: User, target: NoteTarget, text: str) -> Note:
    """A new note of `user`."""
    note = Note.objects.create(
        kind=target.kind,
        run=target.run,
        model=target.model,
        operator=target.operator,
        finding=target.finding,
        platform=target.platform,
        text=text,
        author=user,
        created_at=db_now(),
    )
    audit.note(user, "note.write", f"note {note.pk}", {"about": note.kind})
    return note


@transaction.atomic
def edit_note(note_id: int, user: User, text: str) -> Note:
    """Replace the text; the record keeps what it said before. Raises `Note.DoesNotExist`."""
    note = Note.objects.select_for_update().get(pk=note_id)
    if note.text == text:
        return note
    audit.note(user, "note.edit", f"note {note_id}", {"before": note.text})
    note.text, note.edited_at = text, db_now()
    note.save(update_fields=["text", "edited_at"])
    return note


@transaction.atomic
def delete_note(note_id: int, user: User) -> None:
    """Remove a note; the record keeps what it said. Raises `Note.DoesNotExist`."""
    note = Note.objects.select_for_update().get(pk=note_id)
    audit.note(user, "note.delete", f"note {note_id}", {"about": note.kind, "before": note.text})
    note.delete()
