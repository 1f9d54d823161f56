"""What people may ask of comparisons."""

from __future__ import annotations

from django import forms

from dashboard.figures.diff_flame import FlameWish
from dashboard.forms.runs import NONCE, new_nonce, platform_choices, same
from dashboard.models import Repository, Run, Template
from dashboard.services.addresses import check_ref
from dashboard.services.catalog import device_of, ensure_platform
from dashboard.services.comparisons import NewComparison
from dashboard.services.workloads import of_run, of_template
from profiler.analysis.ladder import Settings
from profiler.errors import UserError

MORE_PAIRS = 10


class NewComparisonForm(forms.Form):
    """Two commits of a repository, workloads and a platform."""

    repository = forms.ChoiceField(
        error_messages={"invalid_choice": "No repository of that name; choose one of the list."}
    )
    baseline = forms.CharField(
        max_length=200,
        strip=False,
        initial="main",
        help_text="Branch, tag, HEAD or a whole commit hash; looked up once",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    candidate = forms.CharField(
        max_length=200,
        strip=False,
        initial="HEAD",
        help_text="What is to be tried against it",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    template = forms.ChoiceField(
        required=False, label="Workloads", help_text="Every run of the template is one workload"
    )
    run = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        label="or the workload of run",
        help_text="Its number; the template is not used then",
    )
    platform = forms.ChoiceField(
        error_messages={"invalid_choice": "No platform of that name; choose one of the list."}
    )
    margin = forms.FloatField(
        min_value=0.1,
        max_value=50,
        initial=2.0,
        label="Margin in %",
        help_text="A change below it does not matter",
    )
    nonce = forms.RegexField(NONCE, initial=new_nonce, widget=forms.HiddenInput)

    def __init__(self, data: object = None, *, initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]
        names = Template.objects.order_by("name").values_list("name", flat=True)
        slugs = Repository.objects.order_by("slug").values_list("slug", flat=True)
        self._choose("repository", same(slugs))
        self._choose("template", same(names))
        self._choose("platform", platform_choices())

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def clean_baseline(self) -> str:
        return clean_ref(self.cleaned_data["baseline"])

    def clean_candidate(self) -> str:
        return clean_ref(self.cleaned_data["candidate"])

    def clean_run(self) -> int | None:
        number: int | None = self.cleaned_data["run"]
        if number is not None and not Run.objects.filter(pk=number).exists():
            raise forms.ValidationError(f"There is no run {number}.")
        return number

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("template") and not cleaned.get("run") and "run" not in self.errors:
            self.add_error("template", "Choose a template, or name a run.")
        return cleaned

    def wanted(self) -> NewComparison:
        """The comparison asked for; raises `UserError` when its workloads cannot work."""
        data = self.cleaned_data
        device = device_of(data["platform"])
        chosen = (
            of_run(data["run"], device) if data["run"] else of_template(data["template"], device)
        )
        return NewComparison(
            repository=Repository.objects.get(slug=data["repository"]),
            baseline=data["baseline"],
            candidate=data["candidate"],
            platform=ensure_platform(data["platform"]),
            specs=chosen.specs,
            version=chosen.version,
            settings=Settings(margin=data["margin"] / 100),
            key=data["nonce"],
        )


def clean_ref(text: str) -> str:
    """A name that can be a commit, as it was written; else a `ValidationError` saying why."""
    try:
        return check_ref(text)
    except UserError as error:
        raise forms.ValidationError(error.line()) from None


class LikeForm(forms.Form):
    """`?repository=models&run=12`: what a form for a new comparison starts from."""

    repository = forms.SlugField(required=False, max_length=40)
    baseline = forms.CharField(required=False, max_length=200)
    candidate = forms.CharField(required=False, max_length=200)
    template = forms.SlugField(required=False, max_length=40)
    run = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    platform = forms.SlugField(required=False, max_length=40)

    def initial_values(self) -> dict[str, object]:
        if not self.is_valid():
            return {}
        return {name: value for name, value in self.cleaned_data.items() if value}


class MoreForm(forms.Form):
    """How many more pairs to measure."""

    pairs = forms.IntegerField(min_value=2, max_value=100, initial=MORE_PAIRS)

    def number(self) -> int:
        return int(self.cleaned_data["pairs"]) if self.is_valid() else MORE_PAIRS


class PageForm(forms.Form):
    """`?page=2` of the list."""

    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def number(self) -> int:
        return int(self.cleaned_data["page"] or 1) if self.is_valid() else 1


class FlameForm(forms.Form):
    """How the diff flame graph is drawn, as it stands in the address."""

    width = forms.ChoiceField(required=False, choices=same(("candidate", "baseline")))
    by = forms.ChoiceField(required=False, choices=same(("time", "share")))
    root = forms.IntegerField(required=False, min_value=0, max_value=10**6)

    def wish(self) -> FlameWish:
        if not self.is_valid():
            return FlameWish()
        data = self.cleaned_data
        return FlameWish(
            side=data["width"] or "candidate", by=data["by"] or "time", root=data["root"]
        )
