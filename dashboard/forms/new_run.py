"""The request for new runs: a model from anywhere, scenarios, and every field of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec
from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from dashboard.forms.runs import NONCE, choose, new_nonce, platform_choices, same, whole_number
from dashboard.models import Commit, Platform, Repository, Run
from dashboard.services import catalog
from dashboard.services.repositories import resolve
from dashboard.services.spec_fields import SpecField, sections, spec_fields
from profiler import spec as specs
from profiler.catalog import BUILTIN
from profiler.errors import SpecError, UserError
from profiler.types import DTYPES, SCENARIOS, RunSpec

BUILT_IN = "builtin"
SOURCES = (
    (BUILT_IN, "Built in"),
    ("config", "A config.json"),
    ("checkpoint", "A checkpoint folder"),
    ("factory", "A Python factory"),
)
COMPILE_MODES = (specs.EAGER, *specs.INDUCTOR_MODES, specs.BACKEND_PREFIX)
MAIN = ("batch", "prompt_tokens", "output_tokens", "dtype", "iterations", "warmup")
"""Fields in sight; those of the sections stand behind a fold."""

_OWN = ("model", "scenario", "config", "checkpoint", "factory", *MAIN, "profiled_steps")
_CONFIG_LIMIT = specs.SPEC_BYTES_LIMIT // 2


def _advanced() -> Mapping[str, SpecField]:
    """The fields that have no place of their own, those the profiler gained since included."""
    return {name: field for name, field in spec_fields().items() if name not in _OWN}


class NewRunForm(forms.Form):
    """Every scenario chosen becomes one run."""

    source = forms.ChoiceField(
        label="Model from", choices=SOURCES, required=False, widget=forms.RadioSelect
    )
    model = forms.ChoiceField(
        required=False,
        choices=[(entry.name, entry.title) for entry in BUILTIN.values()],
        error_messages={"invalid_choice": "No model of that name; choose one of the list."},
    )
    label = forms.CharField(
        label="Name of the model",
        required=False,
        max_length=64,
        help_text="letters, digits, dots, hyphens; runs are listed under it",
    )
    config = forms.CharField(
        label="config.json",
        required=False,
        max_length=_CONFIG_LIMIT,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono"}),
        help_text="of transformers; weights are random. Remote code is never run.",
    )
    config_file = forms.FileField(
        label="or as a file",
        required=False,
        widget=forms.FileInput(attrs={"accept": ".json,application/json"}),
    )
    checkpoint = forms.CharField(
        label="Checkpoint folder",
        required=False,
        max_length=1000,
        help_text=spec_fields()["checkpoint"].about,
    )
    factory = forms.CharField(
        label="Factory", required=False, max_length=320, help_text=spec_fields()["factory"].about
    )
    repository = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": "No repository of that name; choose one of the list."},
        help_text="whose code is measured; checked out and built first",
    )
    commit = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="branch, tag, HEAD or a whole hash, as of the last fetch; empty: HEAD",
    )
    scenarios = forms.MultipleChoiceField(
        choices=same(SCENARIOS),
        initial=["decode"],
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "Choose at least one scenario.",
            "invalid_choice": "No scenario of that name; choose prefill, decode or training.",
        },
    )
    platform = forms.ChoiceField(
        error_messages={"invalid_choice": "No platform of that name; choose one of the list."},
    )
    dtype = forms.ChoiceField(
        label="Number type",
        choices=same(DTYPES),
        initial=DTYPES[0],
        error_messages={"invalid_choice": f"Choose one of {', '.join(DTYPES)}."},
    )
    batch = whole_number("batch", 1, "Batch")
    prompt_tokens = whole_number("prompt_tokens", 128, "Prompt tokens")
    output_tokens = whole_number("output_tokens", 32, "Output tokens", required=False)
    iterations = whole_number("iterations", 10, "Timed iterations")
    warmup = whole_number("warmup", 3, "Warm-up iterations")
    profiled_steps = whole_number("profiled_steps", 3, "Profiled steps")
    nonce = forms.RegexField(NONCE, initial=new_nonce, widget=forms.HiddenInput)

    def __init__(
        self,
        data: object = None,
        files: object = None,
        *,
        initial: dict[str, object] | None = None,
    ) -> None:
        start = {"source": BUILT_IN, **(initial or {})}
        super().__init__(data, files, initial=start)  # type: ignore[arg-type]
        platform = self.fields["platform"]
        assert isinstance(platform, forms.ChoiceField)
        self._devices = catalog.DEVICES | dict(Platform.objects.values_list("slug", "device"))
        platform.choices = platform_choices()
        platform.initial = settings.PLATFORM
        slugs = Repository.objects.order_by("slug").values_list("slug", flat=True)
        choose(self, "repository", same(slugs), "None: what the worker has")
        for name, field in _advanced().items():
            self.fields[name] = form_field(field)
        self.fields["compile"].widget.attrs["list"] = "compile-modes"

    def folded(self) -> list[tuple[str, list[forms.BoundField]]]:
        """The sections behind the fold, with their fields."""
        names = _advanced()
        found = [(title, [self[n] for n in own if n in names]) for title, own in sections()]
        return [(title, fields) for title, fields in found if fields]

    def changed_words(self) -> list[str]:
        """Titles of folded fields that are wrong or not at their default: the fold is open then."""
        return [
            field.title
            for name, field in _advanced().items()
            if name in self.errors or _plain(self[name].value()) != _plain(field.default)
        ]

    def clean(self) -> dict[str, object]:
        """Sizes that only fail together are reported at the field that can change it."""
        cleaned = super().clean() or self.cleaned_data
        if "decode" in cleaned.get("scenarios", ()) and cleaned.get("output_tokens") is None:
            self.add_error("output_tokens", self.fields["output_tokens"].error_messages["required"])
        cleaned["source"] = cleaned.get("source") or BUILT_IN
        self._clean_model(cleaned)
        self._clean_commit(cleaned)
        if not self.errors:
            for spec in self.specs():
                self._check(spec)
        return cleaned

    def _clean_model(self, cleaned: dict[str, object]) -> None:
        source = str(cleaned["source"])
        if source == BUILT_IN:
            if not cleaned.get("model") and "model" not in self.errors:
                self.add_error("model", "Choose a model.")
            return
        if not cleaned.get("label"):
            self.add_error("label", "Give the model a name.")
        if source == "config":
            try:
                cleaned["config"] = _config(str(cleaned.get("config") or ""), cleaned)
            except SpecError as error:
                self.add_error("config", error.line())
        elif not cleaned.get(source):
            self.add_error(source, f"Give the {source}: {spec_fields()[source].about}.")

    def _clean_commit(self, cleaned: dict[str, object]) -> None:
        """Look the commit up; a factory lies nowhere else than in a repository."""
        cleaned["at"] = None
        if cleaned.get("repository"):
            row = Repository.objects.get(slug=cleaned["repository"])
            try:
                cleaned["at"] = resolve(row, str(cleaned.get("commit") or "HEAD"))
            except UserError as error:
                self.add_error("commit", error.line())
        elif cleaned.get("commit") and "repository" not in self.errors:
            self.add_error("repository", "Say in which repository the commit is.")
        elif cleaned["source"] == "factory" and "repository" not in self.errors:
            self.add_error("repository", "Choose the repository that holds the factory.")

    def commit_chosen(self) -> Commit | None:
        """The commit to check out, if any."""
        found = self.cleaned_data["at"]
        assert found is None or isinstance(found, Commit)
        return found

    def specs(self) -> tuple[RunSpec, ...]:
        """One specification per chosen scenario."""
        data = self.cleaned_data
        values = {name: data[name] for name in (*MAIN, "profiled_steps") if data[name] is not None}
        values |= {name: _value(field, data.get(name)) for name, field in _advanced().items()}
        source = data["source"]
        values["model"] = data["model"] if source == BUILT_IN else data["label"]
        if source != BUILT_IN:
            values[source] = data[source]
        values["device"] = self._devices.get(data["platform"], data["platform"])
        return tuple(RunSpec(scenario=name, **values) for name in data["scenarios"])

    def _check(self, spec: RunSpec) -> None:
        try:
            specs.check_model(specs.check(spec))
        except SpecError as error:
            said = [word for word in re.findall(r"[a-z_]+", error.message) if word in self.fields]
            field = said[0] if said else None
            if field == "model" and self.cleaned_data["source"] != BUILT_IN:
                field = "label"
            self.add_error(
                field, f"{spec.scenario}: {error.message.removeprefix('spec.')}; {error.hint}."
            )


def _config(text: str, cleaned: dict[str, object]) -> dict[str, object]:
    """The configuration from the file if there is one, else as pasted."""
    file = cleaned.get("config_file")
    raw = text.encode()
    if isinstance(file, UploadedFile):
        if (file.size or 0) > _CONFIG_LIMIT:
            raise SpecError("The file is larger than 512 KiB", "a config.json is a few KiB")
        raw = file.read()
    if not raw.strip():
        raise SpecError("Paste a config.json, or choose the file")
    try:
        return msgspec.json.decode(raw, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"This is no JSON object: {error}") from None


def form_field(field: SpecField) -> forms.Field:
    """A form field for a field of a run; empty means its default."""
    wrong = f"Allowed: {field.allowed}."
    common: dict[str, object] = {"label": field.title, "required": False}
    about = [field.about] if field.about else []
    common["help_text"] = ". ".join(about)
    common["error_messages"] = dict.fromkeys(
        ("invalid", "invalid_choice", "min_value", "max_value", "max_length"), wrong
    )
    common["initial"] = field.default
    match field.kind:
        case "whole":
            common["help_text"] = ". ".join([field.allowed, *about])
            return forms.IntegerField(min_value=field.low, max_value=field.high, **common)  # type: ignore[arg-type]
        case "number":
            return forms.FloatField(min_value=5e-324, max_value=1e21, **common)  # type: ignore[arg-type]
        case "yes_no":
            return forms.BooleanField(**common)  # type: ignore[arg-type]
        case "choice":
            return forms.ChoiceField(choices=same(field.choices), **common)  # type: ignore[arg-type]
        case "choices":
            boxes = forms.CheckboxSelectMultiple
            return forms.MultipleChoiceField(choices=same(field.choices), widget=boxes, **common)  # type: ignore[arg-type]
    common["help_text"] = ". ".join([field.allowed, *about])
    return forms.CharField(max_length=1000, **common)  # type: ignore[arg-type]


def _plain(value: object) -> str:
    """A value as text, however the form or the specification holds it."""
    if isinstance(value, list | tuple):
        return " ".join(sorted(map(str, value)))
    return "" if value is None else str(value)


def _value(field: SpecField, cleaned: object) -> object:
    """What the field says, for a specification."""
    if field.kind == "choices":
        assert isinstance(cleaned, list)
        return tuple(cleaned)
    return field.default if cleaned is None or cleaned == "" else cleaned


def initial_of(run: Run) -> dict[str, object]:
    """The values of an earlier run, its commit included, for a form that starts from it."""
    values = initial_from(run.spec, run.platform.slug)
    if run.commit is None:
        return values
    return {**values, "repository": run.commit.repository.slug, "commit": run.commit.sha}


def initial_from(spec: Mapping[str, object], platform: str) -> dict[str, object]:
    """The values of a specification as the fields hold them."""
    known = {name: spec[name] for name in spec_fields() if name in spec and name != "scenario"}
    source = next((name for name in specs.SOURCES if spec.get(name) is not None), BUILT_IN)
    if source != BUILT_IN:
        known["label"] = known.pop("model", "")
    if known.get("config") is not None:
        known["config"] = json.dumps(known["config"], indent=2, ensure_ascii=False)
    first = {"source": source, "scenarios": [spec.get("scenario")], "platform": platform}
    return {**known, **first}
