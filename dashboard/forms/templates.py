"""Templates as forms: the matrix field by field, the text, a file, and what to queue."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Self

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict

from dashboard.forms.runs import NONCE, new_nonce, platform_choices, same
from dashboard.services import template_text
from dashboard.services.spec_fields import SpecField, sections, spec_fields
from profiler.bench.templates import Template, Value
from profiler.catalog import BUILTIN
from profiler.errors import SpecError

VERSION_LIMIT = 2**31 - 1
SEED_LIMIT = 2**32 - 1
AS_TEXT_ONLY = frozenset({"config"})
"""Fields that no short line can hold; they are edited as text and kept by the matrix."""


class VersionForm(forms.Form):
    """`?version=3`: which version is meant, the newest when left out."""

    version = forms.IntegerField(required=False, min_value=1, max_value=VERSION_LIMIT)

    def chosen(self) -> int | None:
        return self.cleaned_data["version"] if self.is_valid() else None


class TextForm(forms.Form):
    """The whole template as TOML; `base` is the version the reader started from."""

    text = forms.CharField(
        label="Template as TOML",
        strip=False,
        max_length=template_text.SIZE_LIMIT,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "class": "mono"}),
        error_messages={
            "required": "Paste a template, or choose a file.",
            "max_length": "The template is longer than 64 KiB; split it into several.",
        },
    )
    base = forms.IntegerField(
        required=False, min_value=1, max_value=VERSION_LIMIT, widget=forms.HiddenInput
    )

    def clean_text(self) -> str:
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")


class NewTemplateForm(forms.Form):
    """A template that was written elsewhere: pasted, or a TOML or JSON file."""

    text = forms.CharField(
        label="Template as TOML",
        required=False,
        strip=False,
        max_length=template_text.SIZE_LIMIT,
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false", "class": "mono"}),
    )
    file = forms.FileField(
        label="or a file (.toml or .json)",
        required=False,
        widget=forms.FileInput(attrs={"accept": ".toml,.json"}),
    )

    def clean(self) -> dict[str, object]:
        """The text to store, from whichever was given."""
        cleaned = super().clean() or self.cleaned_data
        file = cleaned.get("file")
        try:
            if file is not None:
                cleaned["text"] = _text_of(file)
            elif not str(cleaned.get("text") or "").strip():
                self.add_error("text", "Paste a template, or choose a file.")
        except SpecError as error:
            self.add_error("file", error.line())
        return cleaned


def _text_of(file: UploadedFile[bytes]) -> str:
    """The file as TOML; a JSON one is rewritten."""
    if (file.size or 0) > template_text.SIZE_LIMIT:
        raise SpecError("The file is larger than 64 KiB", "split it into several templates")
    try:
        text = file.read().decode()
    except UnicodeDecodeError:
        raise SpecError("The file is no text in UTF-8", "export it as TOML or JSON") from None
    if str(file.name).lower().endswith(".json"):
        return template_text.write(template_text.read(text, kind="json"))
    return str(text).replace("\r\n", "\n")


class MatrixForm(forms.Form):
    """One line per field of a run: a single value for every run, or several to combine."""

    title = forms.CharField(max_length=template_text.TITLE_CHARS)
    about = forms.CharField(
        max_length=template_text.ABOUT_CHARS,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    base = forms.IntegerField(min_value=1, max_value=VERSION_LIMIT, widget=forms.HiddenInput)

    def __init__(self, matrix: Template, data: object = None, *, base: int = 1) -> None:
        given = {**matrix.fields, **matrix.axes}
        initial: dict[str, object] = {
            name: written(field, given[name], several=name in matrix.axes)
            for name, field in matrix_fields().items()
            if name in given
        }
        head = {"title": matrix.title, "about": matrix.about, "base": base}
        super().__init__(data, initial={**initial, **head})  # type: ignore[arg-type]
        self._matrix = matrix
        for name, field in matrix_fields().items():
            self.fields[name] = _line(field)

    def parts(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Sections with their fields."""
        found = [
            (title, [self[name] for name in names if name in self.fields])
            for title, names in sections()
        ]
        return [(title, fields) for title, fields in found if fields]

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        for name, field in matrix_fields().items():
            try:
                cleaned[name] = _values(field, str(cleaned.get(name) or ""))
            except SpecError as error:
                self.add_error(name, error.line())
        return cleaned

    def matrix(self) -> Template:
        """What the form holds; the order of the axes and what only text can say stay."""
        given: dict[str, list[Value]] = {
            name: self.cleaned_data[name] for name in matrix_fields() if self.cleaned_data[name]
        }
        axes = {name: values for name, values in given.items() if len(values) > 1}
        order = [name for name in self._matrix.axes if name in axes or name in AS_TEXT_ONLY]
        order += [name for name in axes if name not in order]
        kept = {name: v for name, v in self._matrix.fields.items() if name in AS_TEXT_ONLY}
        single = {name: values[0] for name, values in given.items() if len(values) == 1}
        return dataclasses.replace(
            self._matrix,
            title=self.cleaned_data["title"],
            about=self.cleaned_data["about"],
            fields={**kept, **single},
            axes={name: axes.get(name) or self._matrix.axes[name] for name in order},
        )

    def place_error(self, message: str) -> None:
        """Put an error of the whole matrix at the field it names first."""
        words = message.replace("spec.", "").replace(":", " ").split()
        named = next((word for word in words if word in self.fields), None)
        self.add_error(named, message.removeprefix("spec."))


def matrix_fields() -> Mapping[str, SpecField]:
    """The fields a line can hold."""
    return {name: field for name, field in spec_fields().items() if name not in AS_TEXT_ONLY}


def _line(field: SpecField) -> forms.CharField:
    default = "" if field.required else written(field, field.default, several=False)
    return forms.CharField(
        label=field.title,
        required=False,
        max_length=2000,
        help_text=field.about if field.name == "model" else field.allowed,
        widget=forms.TextInput(attrs={"placeholder": default, "autocomplete": "off"}),
    )


def written(field: SpecField, value: object, *, several: bool) -> str:
    """Values as one line: `1, 8`; a list within a list joins its parts with `+`."""
    if several:
        assert isinstance(value, list)
        return ", ".join(written(field, one, several=False) for one in value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "+".join(map(str, value)) or "none"
    return str(value)


def _values(field: SpecField, line: str) -> list[Value]:
    """The values of one line, each one possible; `SpecError` names the first that is not."""
    words = [word.strip() for word in line.split(",") if word.strip()]
    found = [_value(field, word) for word in words]
    for place, value in enumerate(found):
        if value in found[:place]:
            raise SpecError(f"{words[place]} stands there twice", "give each value once")
    return found


def _value(field: SpecField, word: str) -> Value:
    value: Value = word
    try:
        if field.kind == "whole":
            value = int(word.replace("_", ""))
        elif field.kind == "number":
            value = float(word)
    except ValueError:
        value = word
    if field.kind == "choices":
        value = [] if word == "none" else word.split("+")
    if field.kind == "yes_no":
        value = {"yes": True, "true": True, "no": False, "false": False}.get(word.lower(), word)
    if not field.accepts(value):
        raise SpecError(f"{word[:80]} is not possible", f"allowed: {field.allowed}")
    return value


class PlanForm(forms.Form):
    """What to expand for whom: platform and models, as they stand in the address."""

    platform = forms.ChoiceField(
        error_messages={"invalid_choice": "No platform of that name; choose one of the list."}
    )
    models = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "No model of that name; choose from the list."},
    )
    version = forms.IntegerField(
        required=False, min_value=1, max_value=VERSION_LIMIT, widget=forms.HiddenInput
    )

    def __init__(self, data: object, *, models: Iterable[str]) -> None:
        self.own_models = tuple(models)
        super().__init__(data)  # type: ignore[arg-type]
        field, boxes = self.fields["platform"], self.fields["models"]
        assert isinstance(field, forms.ChoiceField) and isinstance(boxes, forms.ChoiceField)
        field.choices = platform_choices()
        boxes.choices = same(BUILTIN) if self.own_models else []

    @classmethod
    def of(cls, query: QueryDict, *, models: Iterable[str]) -> Self:
        """The form from an address, which may leave out what has a usual value."""
        own, data = tuple(models), query.copy()
        data.setdefault("platform", settings.PLATFORM)
        data.setlistdefault("models", list(own))
        return cls(data, models=own)

    def wanted_models(self) -> list[str]:
        """The models ticked, the template's own when none is."""
        return list(self.cleaned_data.get("models") or self.own_models)


class QueueForm(PlanForm):
    """The plan, confirmed: with its order and the key of this showing of the button."""

    seed = forms.IntegerField(min_value=0, max_value=SEED_LIMIT, widget=forms.HiddenInput)
    nonce = forms.RegexField(NONCE, initial=new_nonce, widget=forms.HiddenInput)
