"""What people may ask of bisects."""

from __future__ import annotations

from django import forms

from dashboard.forms.comparisons import clean_ref
from dashboard.forms.runs import NONCE, new_nonce, platform_choices, same
from dashboard.models import Repository, Run
from dashboard.services.bisect import NewBisect
from dashboard.services.catalog import device_of, ensure_platform
from dashboard.services.workloads import of_run
from profiler.analysis.ladder import Settings


def _commit_field(help_text: str) -> forms.CharField:
    return forms.CharField(
        max_length=200,
        strip=False,
        help_text=help_text,
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )


class NewBisectForm(forms.Form):
    """A good and a bad commit of a repository, one workload and a platform."""

    repository = forms.ChoiceField(
        error_messages={"invalid_choice": "No repository of that name; choose one of the list."}
    )
    good = _commit_field("Branch, tag or whole commit hash; the bad one is built on it")
    bad = _commit_field("The commit whose speed is not what it was")
    run = forms.IntegerField(
        min_value=1,
        max_value=2**63 - 1,
        label="Workload of run",
        help_text="The number of any run of the workload",
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
        slugs = Repository.objects.order_by("slug").values_list("slug", flat=True)
        for name, choices in (("repository", same(slugs)), ("platform", platform_choices())):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    def clean_good(self) -> str:
        return clean_ref(self.cleaned_data["good"])

    def clean_bad(self) -> str:
        return clean_ref(self.cleaned_data["bad"])

    def clean_run(self) -> int:
        number: int = self.cleaned_data["run"]
        if not Run.objects.filter(pk=number).exists():
            raise forms.ValidationError(f"There is no run {number}.")
        return number

    def wanted(self) -> NewBisect:
        """The bisect asked for; raises `UserError` when its workload cannot work."""
        data = self.cleaned_data
        (spec,) = of_run(data["run"], device_of(data["platform"])).specs
        return NewBisect(
            repository=Repository.objects.get(slug=data["repository"]),
            good=data["good"],
            bad=data["bad"],
            platform=ensure_platform(data["platform"]),
            spec=spec,
            settings=Settings(margin=data["margin"] / 100),
            key=data["nonce"],
        )


class BisectLikeForm(forms.Form):
    """`?repository=models&good=v1&run=12`: what a form for a new bisect starts from."""

    repository = forms.SlugField(required=False, max_length=40)
    good = forms.CharField(required=False, max_length=200)
    bad = forms.CharField(required=False, max_length=200)
    run = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    platform = forms.SlugField(required=False, max_length=40)
    margin = forms.FloatField(required=False, min_value=0.1, max_value=50)

    def initial_values(self) -> dict[str, object]:
        if not self.is_valid():
            return {}
        return {name: value for name, value in self.cleaned_data.items() if value}
