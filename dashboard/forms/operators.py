"""Which operator, or which operators, a page is asked for."""

from __future__ import annotations

from django import forms


class OperatorForm(forms.Form):
    """A name opens its page, a text filters the list."""

    name = forms.CharField(required=False, max_length=500, strip=False)
    q = forms.CharField(required=False, max_length=200, label="Operator name")

    def name_wanted(self) -> str:
        """The operator, empty for the list."""
        return str(self.cleaned_data["name"]) if self.is_valid() else ""

    def text(self) -> str:
        """The filter of the list, empty when the address holds something that cannot be."""
        return str(self.cleaned_data["q"]).strip() if self.is_valid() else ""
