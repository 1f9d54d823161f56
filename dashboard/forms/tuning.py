"""What people may ask of the tuning loop."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django import forms

from dashboard.forms.runs import choose, platform_choices, same
from dashboard.models import (
    Change,
    Platform,
    Repository,
    Run,
    TargetKind,
    Template,
    Trace,
    TuningState,
    Workload,
)
from dashboard.queries.tuning_start import StartWish, measured_pairs
from dashboard.queries.tuning_target import target_from
from dashboard.services.addresses import check_ref
from dashboard.services.catalog import ensure_platform
from dashboard.services.templates import newest_version
from dashboard.services.tuning import SPEEDS, NewTuning
from profiler.errors import UserError
from profiler.metrics import METRICS

ID_LIMIT = 2**63 - 1
_NUMBERS = re.compile(r"[0-9]+")
_ORIGIN = ("trace", "kind", "subject", "change")


def checked_ref(text: str) -> str:
    """A name that can be a branch, a tag or a commit."""
    try:
        return check_ref(text)
    except UserError as error:
        raise forms.ValidationError(error.line()) from None


class StartForm(forms.Form):
    """`?trace=5&kind=host_wait&subject=aten::item`, `?change=3` or `?run=12`: where it begins."""

    run = forms.IntegerField(required=False, min_value=1, max_value=ID_LIMIT)
    trace = forms.IntegerField(required=False, min_value=1, max_value=ID_LIMIT)
    kind = forms.SlugField(required=False, max_length=40)
    subject = forms.CharField(required=False, max_length=2000, strip=False)
    change = forms.IntegerField(required=False, min_value=1, max_value=ID_LIMIT)

    def wish(self) -> StartWish:
        """What the address names; nothing when it holds something that cannot be."""
        if not self.is_valid():
            return StartWish()
        data = self.cleaned_data
        return StartWish(
            run=Run.objects.filter(pk=data["run"]).first() if data["run"] else None,
            trace=_trace(data["trace"]),
            kind=data["kind"],
            subject=data["subject"],
            change=_change(data["change"]),
        )


def _trace(number: int | None) -> Trace | None:
    if number is None:
        return None
    return Trace.objects.select_related("report", "run").filter(pk=number).first()


def _change(number: int | None) -> Change | None:
    if number is None:
        return None
    related = ("workload__model", "platform", "repository", "after_commit", "before_commit")
    return Change.objects.select_related(*related).filter(pk=number).first()


class NewTuningForm(forms.Form):
    """A measured workload, where its commits come from, and where it should go."""

    place = forms.ChoiceField(
        label="What to tune",
        help_text="A workload that was measured on a platform: its newest run is Day-0",
        error_messages={"invalid_choice": "Nothing of that kind was measured there."},
    )
    repository = forms.ChoiceField(
        error_messages={"invalid_choice": "No repository of that name; choose one of the list."},
        help_text="Where the commits come from that are tried",
    )
    runs = forms.CharField(
        required=False,
        max_length=400,
        label="Day-0 runs",
        help_text="Numbers such as 12, 13, 14: Day-0 is their median. Empty: the newest run",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    day0 = forms.CharField(
        required=False,
        max_length=200,
        strip=False,
        label="Day-0 commit",
        help_text="Needed where the runs were of no commit: branch, tag or whole commit hash",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    metric = forms.ChoiceField(
        required=False, help_text="What the ladder climbs; the headline metric if left open"
    )
    template = forms.ChoiceField(
        required=False,
        label="Compare also",
        help_text="Every comparison measures the template's other workloads of the model too",
    )
    target = forms.ChoiceField(
        choices=TargetKind.choices, initial=TargetKind.ROOFLINE, widget=forms.RadioSelect
    )
    share = forms.FloatField(
        required=False,
        min_value=1,
        max_value=100,
        initial=70,
        label="Share of the roofline in %",
    )
    rival = forms.ChoiceField(
        required=False, label="Other platform", help_text="Its newest figure of this workload"
    )
    value = forms.CharField(
        required=False,
        max_length=40,
        label="Value",
        help_text="With its unit: 4.6 ms, 1200 tok/s",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    trace = forms.IntegerField(
        required=False, min_value=1, max_value=ID_LIMIT, widget=forms.HiddenInput
    )
    kind = forms.SlugField(required=False, max_length=40, widget=forms.HiddenInput)
    subject = forms.CharField(
        required=False, max_length=2000, strip=False, widget=forms.HiddenInput
    )
    change = forms.IntegerField(
        required=False, min_value=1, max_value=ID_LIMIT, widget=forms.HiddenInput
    )

    def __init__(self, data: object = None, *, initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]
        self._pairs = {f"{pair.workload_id}-{pair.platform_id}": pair for pair in measured_pairs()}
        slugs = Repository.objects.order_by("slug").values_list("slug", flat=True)
        names = Template.objects.order_by("name").values_list("name", flat=True)
        metrics = [(name, METRICS[name].title) for found in SPEEDS.values() for name in found]
        self._choose("place", [(key, pair.words) for key, pair in self._pairs.items()])
        self._choose("repository", same(slugs))
        choose(self, "template", same(names), "The leading workload alone")
        choose(self, "metric", metrics, "Headline of its scenario")
        choose(self, "rival", platform_choices(), "Choose one")

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    @property
    def has_places(self) -> bool:
        """Whether anything was measured that could be tuned."""
        return bool(self._pairs)

    def clean_runs(self) -> tuple[int, ...]:
        text = self.cleaned_data["runs"]
        words = re.split(r"[\s,;#]+", text.strip(" ,;#\t"))
        if not any(words):
            return ()
        if not all(_NUMBERS.fullmatch(word) and int(word) <= ID_LIMIT for word in words):
            raise forms.ValidationError("Numbers of runs with commas between: 12, 13, 14.")
        return tuple(dict.fromkeys(int(word) for word in words))

    def clean_day0(self) -> str:
        return checked_ref(self.cleaned_data["day0"]) if self.cleaned_data["day0"] else ""

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        kind = cleaned.get("target")
        needed = {"roofline": "share", "rival": "rival", "value": "value"}.get(str(kind), "")
        if needed and not cleaned.get(needed) and needed not in self.errors:
            self.add_error(needed, "Say which.")
        return cleaned

    def wanted(self) -> NewTuning:
        """The tuning asked for; raises `UserError` when its target is not known."""
        data = self.cleaned_data
        pair = self._pairs[data["place"]]
        workload = Workload.objects.select_related("model").get(pk=pair.workload_id)
        platform = Platform.objects.get(pk=pair.platform_id)
        target = target_from(
            TargetKind(data["target"]),
            workload,
            platform,
            metric=data["metric"],
            share=(data["share"] or 0) / 100,
            rival=ensure_platform(data["rival"]) if data["rival"] else None,
            value=data["value"],
        )
        return NewTuning(
            workload=workload,
            platform=platform,
            repository=Repository.objects.get(slug=data["repository"]),
            target=target,
            version=newest_version(data["template"]) if data["template"] else None,
            runs=data["runs"],
            day0_ref=data["day0"],
            metric=data["metric"],
        )

    def origin(self) -> dict[str, str]:
        """The finding or change it was opened for, for the first iteration's address."""
        data = self.cleaned_data
        return {name: str(data[name]) for name in _ORIGIN if data.get(name)}


class NewIterationForm(forms.Form):
    """What is tried, what it should bring, and the commit if it exists already."""

    hypothesis = forms.CharField(
        max_length=2000,
        label="Hypothesis",
        help_text="What you change and why it should be faster",
        widget=forms.Textarea({"rows": 3}),
        error_messages={"required": "Say in a sentence what is tried."},
    )
    gain = forms.FloatField(
        required=False,
        min_value=-100,
        max_value=99,
        label="Predicted gain in % of a step",
        help_text="How much less time a step should take; empty if nothing can be said",
    )
    candidate = forms.CharField(
        required=False,
        max_length=200,
        strip=False,
        label="Commit that tries it",
        help_text="Branch, tag or whole commit hash; may come later. It is measured in pairs",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_candidate(self) -> str:
        text = self.cleaned_data["candidate"]
        return checked_ref(text) if text else ""


class MeasureForm(forms.Form):
    """The commit to measure."""

    candidate = forms.CharField(
        max_length=200,
        strip=False,
        label="Commit that tries it",
        help_text="Branch, tag or whole commit hash",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_candidate(self) -> str:
        return checked_ref(self.cleaned_data["candidate"])


class AttachForm(forms.Form):
    """A comparison that exists already."""

    comparison = forms.IntegerField(
        min_value=1,
        max_value=ID_LIMIT,
        label="or attach comparison",
        help_text="Its number; it must start from the same baseline",
    )


class DecisionForm(forms.Form):
    """Keep or revert, with the reason."""

    decision = forms.ChoiceField(
        choices=[("keep", "Keep"), ("revert", "Revert")], widget=forms.RadioSelect
    )
    reason = forms.CharField(
        max_length=1000,
        help_text="One sentence; it stays in the report",
        widget=forms.Textarea({"rows": 2}),
        error_messages={"required": "A decision needs its reason."},
    )
    despite = forms.CharField(
        required=False,
        max_length=1000,
        label="Kept all the same because",
        help_text="Needed to keep what is not verified",
        widget=forms.Textarea({"rows": 2}),
    )
    commit = forms.CharField(
        required=False,
        max_length=200,
        strip=False,
        label="Commit that is kept",
        help_text="Only where no comparison says it",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )


class CloseForm(forms.Form):
    """Why a tuning ends."""

    reason = forms.CharField(
        max_length=1000,
        help_text="What was reached, or why it stops here; it stays in the report",
        widget=forms.Textarea({"rows": 2}),
        error_messages={"required": "A tuning is closed with a reason."},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWish:
    """What a reader asks the list of tunings for."""

    state: str = ""
    page: int = 1


class ListForm(forms.Form):
    """`?state=open&page=2` of the list."""

    state = forms.ChoiceField(required=False)
    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        states = [(str(state.value), str(state.label)) for state in TuningState]
        choose(self, "state", states, "Any state")

    def wanted(self) -> ListWish:
        if not self.is_valid():
            return ListWish()
        return ListWish(state=self.cleaned_data["state"], page=self.cleaned_data["page"] or 1)
