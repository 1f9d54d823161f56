"""Which view of the flame graph is asked for; zoom, search and colour are the script's own."""

from __future__ import annotations

from django import forms

from dashboard.forms.runs import choose

VIEWS = {
    "device": "Device time",
    "host": "Host self time",
    "idle": "Idle by cause",
}


class FlameForm(forms.Form):
    """The view as it stands in the address."""

    flame = forms.ChoiceField(required=False)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        choose(self, "flame", VIEWS.items(), "")

    def wanted(self) -> str:
        """The view, empty for the first that the trace has."""
        return str(self.cleaned_data["flame"]) if self.is_valid() else ""
