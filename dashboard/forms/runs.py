"""What people may ask of runs: the filter of the list and the request for new ones."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable

from django import forms
from django.conf import settings

from dashboard.models import Model, Platform, RunState, Template
from dashboard.queries.runs import GROUPS, SORTS, RunFilter
from dashboard.services import catalog
from profiler import spec as specs
from profiler.catalog import BUILTIN
from profiler.errors import SpecError
from profiler.types import DTYPES, SCENARIOS, RunSpec

_PAGE_LIMIT = 10**6
NONCE = r"^[A-Za-z0-9_-]{16,64}$"
_PARAMETERS = ("batch", "prompt_tokens", "output_tokens", "iterations", "warmup", "profiled_steps")


def choose(form: forms.Form, field: str, choices: Iterable[tuple[str, str]], any_of: str) -> None:
    """Give an optional choice its choices, the first of them being none."""
    found = form.fields[field]
    assert isinstance(found, forms.ChoiceField)
    found.choices = [("", any_of), *choices]


def same(names: Iterable[str]) -> list[tuple[str, str]]:
    """Choices that read as they are stored."""
    return [(name, name) for name in names]


def platform_choices() -> list[tuple[str, str]]:
    """That of this installation can be asked for before its first worker was up."""
    slugs = Platform.objects.values_list("slug", flat=True)
    return same(sorted({settings.PLATFORM, *slugs}))


def signed(names: Iterable[str]) -> list[tuple[str, str]]:
    """Both directions of every sortable column."""
    return same(f"{sign}{name}" for name in names for sign in ("", "-"))


class RunFilterForm(forms.Form):
    """Filter, order and page of the list, as they stand in the address."""

    q = forms.CharField(required=False, max_length=100, label="Text")
    model = forms.ChoiceField(required=False)
    scenario = forms.ChoiceField(required=False)
    state = forms.ChoiceField(required=False)
    platform = forms.ChoiceField(required=False)
    template = forms.ChoiceField(required=False)
    group = forms.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput
    )
    sort = forms.ChoiceField(required=False)
    page = forms.IntegerField(required=False, min_value=1, max_value=_PAGE_LIMIT)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        models = Model.objects.order_by("name").values_list("name", flat=True)
        platforms = Platform.objects.order_by("slug").values_list("slug", flat=True)
        groups = [(name, name.capitalize()) for name in GROUPS]
        states = [(str(state.value), str(state.label)) for state in RunState]
        choose(self, "model", same(models), "Any model")
        choose(self, "platform", same(platforms), "Any platform")
        templates = Template.objects.order_by("name").values_list("name", flat=True)
        choose(self, "template", same(templates), "Any template")
        choose(self, "scenario", same(SCENARIOS), "Any scenario")
        choose(self, "state", [*groups, *states], "Any state")
        choose(self, "sort", signed(SORTS), "")

    def wanted(self) -> RunFilter:
        """The filter; everything when the address holds something that cannot be."""
        if not self.is_valid():
            return RunFilter()
        data = self.cleaned_data
        return RunFilter(
            model=data["model"],
            scenario=data["scenario"],
            state=data["state"],
            platform=data["platform"],
            template=data["template"],
            group=data["group"],
            text=data["q"].strip(),
            sort=data["sort"] or "-run",
            page=data["page"] or 1,
        )


class LikeForm(forms.Form):
    """`?like=12`: start the new run from the values of run 12."""

    like = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)

    def chosen(self) -> int | None:
        return self.cleaned_data["like"] if self.is_valid() else None


class MetricForm(forms.Form):
    """`?metric=tpot`: which metric's samples are meant; empty is the page's own choice."""

    metric = forms.RegexField(r"^[a-z_]{1,40}$", required=False)

    def chosen(self) -> str:
        return str(self.cleaned_data["metric"]) if self.is_valid() else ""


class FileForm(forms.Form):
    """`?attempt=2`: which attempt's file is meant; the last one that has it when left out."""

    attempt = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def chosen(self) -> int | None:
        return self.cleaned_data["attempt"] if self.is_valid() else None


class NonceForm(forms.Form):
    """The key of one showing of a button, so that a double click acts once."""

    nonce = forms.RegexField(NONCE)

    def key(self) -> str | None:
        return self.cleaned_data["nonce"] if self.is_valid() else None


def new_nonce() -> str:
    """A key for one showing of the form, so that sending it twice makes the runs once."""
    return secrets.token_urlsafe(18)


def whole_number(
    name: str, initial: int, label: str, *, required: bool = True
) -> forms.IntegerField:
    """A whole number within the limits of the specification; its messages name the limits."""
    low, high = specs.LIMITS[name]
    wrong = f"Enter a whole number from {low:,} to {high:,}."
    return forms.IntegerField(
        min_value=low,
        max_value=high,
        initial=initial,
        label=label,
        required=required,
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), wrong),
        help_text=f"{low:,} to {high:,}",
    )


class NewRunForm(forms.Form):
    """A model, scenarios and sizes; every scenario chosen becomes one run."""

    model = forms.ChoiceField(
        error_messages={"invalid_choice": "No model of that name; choose one of the list."}
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
        error_messages={"invalid_choice": f"Choose one of {', '.join(DTYPES)}."},
    )
    batch = whole_number("batch", 1, "Batch")
    prompt_tokens = whole_number("prompt_tokens", 128, "Prompt tokens")
    output_tokens = whole_number("output_tokens", 32, "Output tokens", required=False)
    iterations = whole_number("iterations", 10, "Timed iterations")
    warmup = whole_number("warmup", 3, "Warm-up iterations")
    profiled_steps = whole_number("profiled_steps", 3, "Profiled steps")
    nonce = forms.RegexField(r"^[A-Za-z0-9_-]{16,64}$", initial=new_nonce, widget=forms.HiddenInput)

    def __init__(self, data: object = None, *, initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]
        model = self.fields["model"]
        assert isinstance(model, forms.ChoiceField)
        model.choices = [(entry.name, entry.title) for entry in BUILTIN.values()]
        platform = self.fields["platform"]
        assert isinstance(platform, forms.ChoiceField)
        self._devices = catalog.DEVICES | dict(Platform.objects.values_list("slug", "device"))
        platform.choices = platform_choices()

    def clean(self) -> dict[str, object]:
        """Sizes that only fail together are reported at the field that can change it."""
        cleaned = super().clean() or self.cleaned_data
        if "decode" in cleaned.get("scenarios", ()) and cleaned.get("output_tokens") is None:
            self.add_error("output_tokens", self.fields["output_tokens"].error_messages["required"])
        if not self.errors:
            for spec in self.specs():
                self._check(spec)
        return cleaned

    def specs(self) -> tuple[RunSpec, ...]:
        """One specification per chosen scenario."""
        data = self.cleaned_data
        sizes = {name: data[name] for name in _PARAMETERS if data[name] is not None}
        device = self._devices.get(data["platform"], data["platform"])
        shared = {"model": data["model"], "dtype": data["dtype"], "device": device}
        return tuple(RunSpec(scenario=name, **shared, **sizes) for name in data["scenarios"])

    def _check(self, spec: RunSpec) -> None:
        try:
            specs.check_model(specs.check(spec))
        except SpecError as error:
            said = [word for word in re.findall(r"[a-z_]+", error.message) if word in self.fields]
            field = said[0] if said else None
            self.add_error(
                field, f"{spec.scenario}: {error.message.removeprefix('spec.')}; {error.hint}."
            )


def initial_from(spec: dict[str, object], platform: str) -> dict[str, object]:
    """The values of an earlier run, for a form that starts from it."""
    known = {name: spec[name] for name in ("model", "dtype", *_PARAMETERS) if name in spec}
    return {**known, "scenarios": [spec.get("scenario")], "platform": platform}
