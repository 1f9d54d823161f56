"""Reads of notes: search, those about one thing, and those that speak of operators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.urls import reverse

from dashboard.models import Note, NoteKind
from dashboard.services.notes import NoteTarget

PAGE_SIZE = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFilter:
    """What a reader asks the list of notes for."""

    text: str = ""
    kind: str = ""
    page: int = 1

    @property
    def narrows(self) -> bool:
        return bool(self.text or self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteView:
    """A note with the words and the address of what it is about."""

    row: Note
    about: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePage:
    """One page of notes, and how many there are in all."""

    rows: tuple[NoteView, ...]
    total: int
    page: int
    pages: int


def get_note(note_id: int) -> Note | None:
    """The note with the rows its page names."""
    return _related(Note.objects.filter(pk=note_id)).first()


def note_view(note: Note) -> NoteView:
    """The note as pages show it."""
    return NoteView(row=note, about=about(target_of(note)), address=address_of(target_of(note)))


def note_page(wanted: NoteFilter) -> NotePage:
    """The page asked for, the newest first; a page past the end is the last one."""
    found = _found(wanted)
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(wanted.page, pages)
    start = (page - 1) * PAGE_SIZE
    rows = _related(found).order_by("-created_at", "-id")[start : start + PAGE_SIZE]
    return NotePage(rows=tuple(map(note_view, rows)), total=total, page=page, pages=pages)


def notes_about(target: NoteTarget) -> tuple[NoteView, ...]:
    """Every note about exactly this, the newest first."""
    found = Note.objects.filter(
        kind=target.kind,
        run=target.run,
        model=target.model,
        operator=target.operator,
        finding=target.finding,
    )
    if target.platform is not None:
        found = found.filter(Q(platform=target.platform) | Q(platform=None))
    return tuple(map(note_view, _related(found).order_by("-created_at", "-id")))


def notes_of_operators(
    operators: Iterable[str], platform: str = ""
) -> dict[str, tuple[NoteView, ...]]:
    """Notes on operators and on findings about them, by the name that vendors share.

    With a platform, notes that hold for another one only are left out.
    """
    found = Note.objects.filter(operator__in=sorted({name for name in operators if name}))
    if platform:
        found = found.filter(Q(platform__slug=platform) | Q(platform=None))
    gathered: dict[str, list[NoteView]] = {}
    for note in _related(found).order_by("-created_at", "-id"):
        gathered.setdefault(note.operator, []).append(note_view(note))
    return {name: tuple(notes) for name, notes in gathered.items()}


def target_of(note: Note) -> NoteTarget:
    """What a note is about."""
    return NoteTarget(
        kind=NoteKind(note.kind),
        run=note.run,
        model=note.model,
        operator=note.operator,
        finding=note.finding,
        platform=note.platform,
    )


def about(target: NoteTarget) -> str:
    """`run 12`, `aten::mm on h100`, `host_wait at aten::item`, `llama-tiny`."""
    where = f" on {target.platform.slug}" if target.platform else ""
    if target.run is not None:
        return f"run {target.run.pk}"
    if target.model is not None:
        return target.model.name
    if target.kind == NoteKind.OPERATOR:
        return f"{target.operator}{where}"
    subject = f" at {target.operator}" if target.operator else ""
    return f"{target.finding.replace('_', ' ')}{subject}{where}"


def query_of(target: NoteTarget) -> str:
    """The target as it stands in an address."""
    values = {
        "kind": target.kind.value,
        "run": target.run.pk if target.run else "",
        "model": target.model.name if target.model else "",
        "operator": target.operator,
        "finding": target.finding,
        "platform": target.platform.slug if target.platform else "",
    }
    return urlencode({key: value for key, value in values.items() if value})


def address_of(target: NoteTarget) -> str:
    """The page on which all notes about it stand."""
    if target.kind == NoteKind.OPERATOR:
        return f"{reverse('operator')}?{urlencode({'name': target.operator})}"
    return f"{reverse('note-about')}?{query_of(target)}"


def _found(wanted: NoteFilter) -> QuerySet[Note]:
    notes = Note.objects.all()
    if wanted.kind:
        notes = notes.filter(kind=wanted.kind)
    # Every word must be there, wherever it is.
    for word in wanted.text.split():
        hit = Q(text__icontains=word) | Q(operator__icontains=word) | Q(finding__icontains=word)
        hit |= Q(author__username__icontains=word) | Q(model__name__icontains=word)
        notes = notes.filter(hit | Q(platform__slug__icontains=word))
    return notes


def _related(notes: QuerySet[Note]) -> QuerySet[Note]:
    return notes.select_related("author", "run", "model", "platform")
