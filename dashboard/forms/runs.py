"""What people may ask of runs: the filter of the list, and what several forms share."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from django import forms
from django.conf import settings

from dashboard.models import Model, Platform, RunState, Template
from dashboard.queries.runs import GROUPS, SORTS, RunFilter
from profiler import spec as specs
from profiler.types import SCENARIOS

_PAGE_LIMIT = 10**6
NONCE = r"^[A-Za-z0-9_-]{16,64}$"


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
