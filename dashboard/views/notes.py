"""Pages of notes: search, those about one thing, write, edit and delete."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.forms.notes import NoteFilterForm, NoteForm, TargetForm
from dashboard.models import Note
from dashboard.queries.notes import (
    PAGE_SIZE,
    about,
    address_of,
    get_note,
    note_page,
    note_view,
    notes_about,
    query_of,
    target_of,
)
from dashboard.services.notes import NoteTarget, delete_note, edit_note, write_note
from dashboard.views.requests import SignedInRequest, may_change, operators_only, post_only


@require_safe
def note_list(request: SignedInRequest) -> HttpResponse:
    form = NoteFilterForm(request.GET)
    wanted = form.wanted()
    context = {"form": form, "wanted": wanted, "page": note_page(wanted), "size": PAGE_SIZE}
    return render(request, "dashboard/note_list.html", context)


@require_safe
@vary_on_headers("HX-Request")
def note_about(request: SignedInRequest) -> HttpResponse:
    """All notes about one thing; for htmx the panel alone. Without a target: the whole list."""
    form = TargetForm(request.GET)
    if not form.is_valid():
        return redirect("note-list")
    target = form.target()
    context = {
        "about": about(target),
        "notes": notes_about(target),
        "query": query_of(target),
        "target": target,
    }
    part = "dashboard/partials/notes.html" if request.htmx else "dashboard/note_about.html"
    return render(request, part, context)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def note_new(request: SignedInRequest) -> HttpResponse:
    """Write about what the address names."""
    subject = TargetForm(request.GET)
    form = NoteForm(request.POST if request.method == "POST" else None)
    target = subject.target() if subject.is_valid() else None
    if request.method == "POST" and target is not None and form.is_valid():
        write_note(request.user, target, form.cleaned_data["text"])
        messages.success(request, "The note is kept.")
        return redirect(address_of(target))
    context = {"form": form, "subject": subject, "about": about(target) if target else ""}
    context["back"] = address_of(target) if target else ""
    return render(request, "dashboard/note_edit.html", context, status=_status(request))


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def note_edit(request: SignedInRequest, note_id: int) -> HttpResponse:
    note = _own_or_403(request, note_id)
    target = target_of(note)
    given = request.POST if request.method == "POST" else None
    form = NoteForm(given, initial={"text": note.text})
    if given is not None and form.is_valid():
        edit_note(note_id, request.user, form.cleaned_data["text"])
        messages.success(request, "The note is changed.")
        return redirect(address_of(target))
    context = {"form": form, "note": note_view(note), "about": about(target)}
    context["back"] = address_of(target)
    return render(request, "dashboard/note_edit.html", context, status=_status(request))


@post_only
@operators_only
def note_delete(request: SignedInRequest, note_id: int) -> HttpResponse:
    target: NoteTarget = target_of(_own_or_403(request, note_id))
    delete_note(note_id, request.user)
    messages.success(request, "The note is deleted; the record of deeds keeps what it said.")
    return redirect(address_of(target))


def _status(request: SignedInRequest) -> int:
    return 422 if request.method == "POST" else 200


def _own_or_403(request: SignedInRequest, note_id: int) -> Note:
    note = get_note(note_id)
    if note is None:
        raise Http404(f"There is no note {note_id}.")
    if not may_change(request.user, note):
        raise PermissionDenied("Only its author or an admin may change a note.")
    return note
