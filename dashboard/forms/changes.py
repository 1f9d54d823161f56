"""What people may ask of changes: the filter of the inbox, and a reason to leave one as it is."""

from __future__ import annotations

from django import forms

from dashboard.forms.runs import choose, same
from dashboard.models import ChangeDirection, ChangeState, Model, Platform
from dashboard.queries.changes import GROUPS, OPEN, ChangeFilter

_PAGE_LIMIT = 10**6


class ChangeFilterForm(forms.Form):
    """Filter and page of the inbox, as they stand in the address."""

    state = forms.ChoiceField(required=False, widget=forms.HiddenInput)
    direction = forms.ChoiceField(required=False)
    model = forms.ChoiceField(required=False)
    platform = forms.ChoiceField(required=False)
    page = forms.IntegerField(required=False, min_value=1, max_value=_PAGE_LIMIT)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        models = Model.objects.order_by("name").values_list("name", flat=True)
        platforms = Platform.objects.order_by("slug").values_list("slug", flat=True)
        choose(self, "state", same([*GROUPS, *ChangeState.values]), OPEN)
        choose(self, "direction", ChangeDirection.choices, "Slower and faster")
        choose(self, "model", same(models), "Any model")
        choose(self, "platform", same(platforms), "Any platform")

    def wanted(self) -> ChangeFilter:
        """The filter; what is open when the address holds something that cannot be."""
        if not self.is_valid():
            return ChangeFilter()
        data = self.cleaned_data
        return ChangeFilter(
            state=data["state"] or OPEN,
            direction=data["direction"],
            model=data["model"],
            platform=data["platform"],
            page=data["page"] or 1,
        )


class AcknowledgeForm(forms.Form):
    """Why a change may stay."""

    reason = forms.CharField(
        max_length=1000,
        label="Reason",
        widget=forms.TextInput({"autocomplete": "off"}),
        help_text="For example: wanted, the price of a fix; not ours, a library",
    )

    def reason_given(self) -> str:
        """Empty where none was given: the service says what is missing."""
        return str(self.cleaned_data["reason"]) if self.is_valid() else ""
