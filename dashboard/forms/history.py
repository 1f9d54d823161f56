"""What people may ask of histories, and the annotations they write on them."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms

from dashboard.forms.runs import choose
from dashboard.models import Commit, Model, Platform, Run
from dashboard.queries.history import RUNS, HistoryWish
from dashboard.services.annotations import AnnotationPlace
from profiler.types import SCENARIOS

NO_COMMIT = "none"
"""How runs without a commit are called in an address; no repository has this slug."""

_PK_LIMIT = 2**63 - 1


def source_choices(sources: Sequence[str]) -> list[tuple[str, str]]:
    """Repositories by their slug, and the runs that have no commit."""
    return [(name or NO_COMMIT, name or "runs without a commit") for name in sources]


class HistoryForm(forms.Form):
    """`?decode=12&runs=50&source=models`: what the charts of a model show."""

    prefill = forms.IntegerField(required=False, min_value=1, max_value=_PK_LIMIT)
    decode = forms.IntegerField(required=False, min_value=1, max_value=_PK_LIMIT)
    training = forms.IntegerField(required=False, min_value=1, max_value=_PK_LIMIT)
    source = forms.SlugField(required=False, max_length=40)
    runs = forms.ChoiceField(
        required=False,
        choices=[("", f"the last {RUNS[0]}"), *((str(n), f"the last {n:,}") for n in RUNS[1:])],
        label="Runs drawn",
    )

    def wanted(self) -> HistoryWish:
        """The wish; the page's own choice when the address holds something that cannot be."""
        if not self.is_valid():
            return HistoryWish(workloads={})
        data = self.cleaned_data
        source = data["source"]
        return HistoryWish(
            workloads={name: data[name] for name in SCENARIOS if data[name]},
            source=None if not source else "" if source == NO_COMMIT else source,
            runs=int(data["runs"] or RUNS[0]),
        )


class WorkloadForm(forms.Form):
    """`?workload=12&op=aten::mm`: one history, and the operator that is looked at in it."""

    workload = forms.IntegerField(required=False, min_value=1, max_value=_PK_LIMIT)
    source = forms.SlugField(required=False, max_length=40)
    runs = forms.ChoiceField(required=False, choices=[("", ""), *((str(n), "") for n in RUNS)])
    op = forms.CharField(required=False, max_length=500, strip=False)

    def number(self) -> int | None:
        """The workload, None for the page's own choice."""
        return self.cleaned_data["workload"] if self.is_valid() else None

    def source_wanted(self) -> str | None:
        source = self.cleaned_data["source"] if self.is_valid() else ""
        return None if not source else "" if source == NO_COMMIT else source

    def runs_wanted(self) -> int:
        return int(self.cleaned_data["runs"] or RUNS[0]) if self.is_valid() else RUNS[0]

    def operator(self) -> str:
        """The operator, empty for the one with most time."""
        return str(self.cleaned_data["op"]) if self.is_valid() else ""


class ModelListForm(forms.Form):
    """`?q=llama&page=2`: which models are listed."""

    q = forms.CharField(required=False, max_length=100, label="Model or platform")
    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def number(self) -> int:
        return int(self.cleaned_data["page"] or 1) if self.is_valid() else 1

    def text(self) -> str:
        return str(self.cleaned_data["q"]).strip() if self.is_valid() else ""


class AnnotationForm(forms.Form):
    """A remark at a commit, at a run, or from now on."""

    text = forms.CharField(max_length=300, label="What happened")
    commit = forms.RegexField(
        r"^[0-9a-f]{7,64}$",
        required=False,
        help_text="At least 7 letters of its hash",
        error_messages={"invalid": "Give at least the first 7 characters of a commit hash."},
    )
    run = forms.IntegerField(
        required=False, min_value=1, max_value=_PK_LIMIT, label="or run", help_text="Its number"
    )
    everywhere = forms.BooleanField(required=False, label="For every model on this platform")

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("commit") and cleaned.get("run"):
            self.add_error("run", "Name a commit or a run, not both.")
        return cleaned

    def place(self, model: Model, platform: Platform) -> AnnotationPlace | None:
        """Where it stands; None, with an error on its field, where the address means nothing."""
        data = self.cleaned_data
        owner = None if data["everywhere"] else model
        if data["run"]:
            run = Run.objects.filter(pk=data["run"]).select_related("commit").first()
            if run is None:
                self.add_error("run", f"There is no run {data['run']}.")
                return None
            return AnnotationPlace(
                platform=platform, model=owner, commit=run.commit, at=run.created_at
            )
        if not data["commit"]:
            return AnnotationPlace(platform=platform, model=owner)
        found = list(Commit.objects.filter(sha__startswith=data["commit"])[:2])
        if len(found) != 1:
            said = "No measured repository has" if not found else "More than one commit starts with"
            self.add_error("commit", f"{said} {data['commit']}.")
            return None
        return AnnotationPlace(
            platform=platform, model=owner, commit=found[0], at=found[0].committed_at
        )


class RemoveForm(forms.Form):
    """Which annotation is to go."""

    annotation = forms.IntegerField(min_value=1, max_value=_PK_LIMIT)

    def number(self) -> int | None:
        return self.cleaned_data["annotation"] if self.is_valid() else None


def with_sources(form: HistoryForm, sources: Sequence[str]) -> HistoryForm:
    """The form with the sources there are to choose from."""
    field = forms.ChoiceField(required=False, label="Order")
    form.fields["source"] = field
    choose(form, "source", source_choices(sources), "of the newest result")
    return form
