"""What people may ask of schedules: a new one, a budget, a page of what was fired."""

from __future__ import annotations

from django import forms

from dashboard.forms.runs import NONCE, choose, new_nonce, platform_choices, same
from dashboard.models import Repository, ScheduleKind, Template
from dashboard.services.automation import HOURS_LIMIT, NEWEST_LIMIT, NewSchedule
from dashboard.services.catalog import ensure_platform


class NewScheduleForm(forms.Form):
    """One schedule; what cannot work together is found by the service that stores it."""

    name = forms.CharField(max_length=60, help_text="For example nightly-quick")
    kind = forms.ChoiceField(
        choices=ScheduleKind.choices, initial=ScheduleKind.INTERVAL, label="Queue it"
    )
    template = forms.ChoiceField(
        help_text="Its newest version at that moment",
        error_messages={"invalid_choice": "No template of that name; choose one of the list."},
    )
    platform = forms.ChoiceField(
        error_messages={"invalid_choice": "No platform of that name; choose one of the list."}
    )
    repository = forms.ChoiceField(
        required=False,
        help_text="Whose code is measured; without one, what the workers have installed",
        error_messages={"invalid_choice": "No repository of that name; choose one of the list."},
    )
    branch = forms.CharField(
        required=False,
        max_length=200,
        help_text="A branch of it that may be measured",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    every_h = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=HOURS_LIMIT,
        initial=24,
        label="Every … hours",
        help_text=f"1 to {HOURS_LIMIT}; for fixed times only",
    )
    at = forms.TimeField(
        required=False,
        initial="02:00",
        input_formats=["%H:%M"],
        label="Counted from (UTC)",
        help_text="HH:MM; for fixed times only",
    )
    newest = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=NEWEST_LIMIT,
        initial=5,
        label="Commits of one push",
        help_text=f"The newest 1 to {NEWEST_LIMIT}; how many are left out is shown",
    )

    def __init__(self, data: object = None, *, initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]
        for name in ("template", "platform"):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            names = Template.objects.order_by("name").values_list("name", flat=True)
            field.choices = platform_choices() if name == "platform" else same(names)
        slugs = Repository.objects.order_by("slug").values_list("slug", flat=True)
        choose(self, "repository", same(slugs), "None")

    def wanted(self) -> NewSchedule:
        """The schedule described by a valid form."""
        data = self.cleaned_data
        kind = ScheduleKind(data["kind"])
        at = data["at"]
        timed = kind == ScheduleKind.INTERVAL
        return NewSchedule(
            name=data["name"],
            kind=kind,
            template=Template.objects.get(name=data["template"]),
            platform=ensure_platform(data["platform"]),
            repository=Repository.objects.filter(slug=data["repository"]).first(),
            branch=data["branch"],
            every_h=(data["every_h"] or 24) if timed else None,
            at_minute=at.hour * 60 + at.minute if timed and at else 0,
            newest=data["newest"] or 5,
        )


class StartForm(forms.Form):
    """`?kind=commits&repository=models`: what a form for a new schedule starts from."""

    kind = forms.ChoiceField(required=False, choices=ScheduleKind.choices)
    template = forms.SlugField(required=False, max_length=40)
    platform = forms.SlugField(required=False, max_length=40)
    repository = forms.SlugField(required=False, max_length=40)
    branch = forms.CharField(required=False, max_length=200)

    def initial_values(self) -> dict[str, object]:
        if not self.is_valid():
            return {}
        return {name: value for name, value in self.cleaned_data.items() if value}


class ActionForm(forms.Form):
    """One button of a schedule's page at a time."""

    ACTIONS = ("on", "off", "fire", "delete")

    action = forms.ChoiceField(choices=same(ACTIONS))
    nonce = forms.RegexField(NONCE, required=False, initial=new_nonce, widget=forms.HiddenInput)


class BudgetForm(forms.Form):
    """Device minutes a day; empty is no limit."""

    minutes = forms.FloatField(
        required=False,
        min_value=0,
        max_value=144_000,
        label="Device minutes a day",
        help_text="For schedules alone; empty: no limit, 0: they queue nothing",
    )


class PageForm(forms.Form):
    """`?page=2` of what was fired."""

    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def number(self) -> int:
        return int(self.cleaned_data["page"] or 1) if self.is_valid() else 1
