"""What people may ask of notes: write about something, and search."""

from __future__ import annotations

from typing import TypeVar

from django import forms
from django.core.exceptions import ValidationError

from dashboard.forms.runs import choose
from dashboard.models import Model, NoteKind, Platform, Run
from dashboard.queries.notes import NoteFilter
from dashboard.services.notes import NoteTarget

Row = TypeVar("Row", Run, Model, Platform)
TEXT_LIMIT = 20_000
_PAGE_LIMIT = 10**6
_ID_LIMIT = 2**63 - 1
_NEEDED = {
    NoteKind.RUN: "run",
    NoteKind.MODEL: "model",
    NoteKind.OPERATOR: "operator",
    NoteKind.FINDING: "finding",
}


class TargetForm(forms.Form):
    """What a note is about, as it stands in the address: `?kind=operator&operator=aten::mm`."""

    kind = forms.ChoiceField(choices=NoteKind.choices)
    run = forms.IntegerField(required=False, min_value=1, max_value=_ID_LIMIT)
    model = forms.CharField(required=False, max_length=64)
    operator = forms.CharField(required=False, max_length=500, strip=False)
    finding = forms.SlugField(required=False, max_length=40)
    platform = forms.SlugField(required=False, max_length=40)

    def clean_run(self) -> Run | None:
        number = self.cleaned_data["run"]
        runs = Run.objects.select_related("workload__model")
        return _row(runs.filter(pk=number).first(), number, "run")

    def clean_model(self) -> Model | None:
        name = self.cleaned_data["model"]
        return _row(Model.objects.filter(name=name).first(), name, "model")

    def clean_platform(self) -> Platform | None:
        slug = self.cleaned_data["platform"]
        return _row(Platform.objects.filter(slug=slug).first(), slug, "platform")

    def clean(self) -> None:
        kind = self.cleaned_data.get("kind")
        if kind and not self.errors and not self.cleaned_data.get(_NEEDED[NoteKind(kind)]):
            self.add_error(_NEEDED[NoteKind(kind)], f"Say which {kind} the note is about.")

    def target(self) -> NoteTarget:
        """The target; only of a valid form. Fields of other kinds are left out."""
        data = self.cleaned_data
        kind = NoteKind(data["kind"])
        named = kind in {NoteKind.OPERATOR, NoteKind.FINDING}
        return NoteTarget(
            kind=kind,
            run=data["run"] if kind == NoteKind.RUN else None,
            model=data["model"] if kind == NoteKind.MODEL else None,
            operator=data["operator"] if named else "",
            finding=data["finding"] if kind == NoteKind.FINDING else "",
            platform=data["platform"] if named else None,
        )


class NoteForm(forms.Form):
    """The text of a note."""

    text = forms.CharField(
        max_length=TEXT_LIMIT,
        label="Note",
        help_text="Markdown: **bold**, `code`, lists, tables, links. No HTML, no pictures.",
        widget=forms.Textarea(attrs={"rows": 8}),
        error_messages={"required": "Write something first."},
    )


class NoteFilterForm(forms.Form):
    """Text, kind and page of the list of notes."""

    q = forms.CharField(required=False, max_length=200, label="Text")
    kind = forms.ChoiceField(required=False, label="About")
    page = forms.IntegerField(required=False, min_value=1, max_value=_PAGE_LIMIT)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        choices = [(str(kind.value), str(kind.label)) for kind in NoteKind]
        choose(self, "kind", choices, "Anything")

    def wanted(self) -> NoteFilter:
        """The filter; everything when the address holds something that cannot be."""
        if not self.is_valid():
            return NoteFilter()
        data = self.cleaned_data
        return NoteFilter(text=data["q"].strip(), kind=data["kind"], page=data["page"] or 1)


def _row(found: Row | None, wanted: object, what: str) -> Row | None:
    if wanted and found is None:
        raise ValidationError(f"There is no {what} {wanted}.")
    return found
