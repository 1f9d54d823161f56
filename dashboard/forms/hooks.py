"""What an admin may do with the webhook of a repository."""

from __future__ import annotations

from django import forms

from dashboard.forms.runs import same


class HookForm(forms.Form):
    """Open it with a new secret, or close it."""

    action = forms.ChoiceField(choices=same(("open", "close")))
