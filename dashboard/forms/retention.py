"""What people may ask of retention: how long files are kept, and what is pinned why."""

from __future__ import annotations

from django import forms

from dashboard.models import RetentionPolicy
from dashboard.services.retention import REASON_LIMIT

DAYS_LIMIT = 36_500


class PolicyForm(forms.Form):
    """Days for each kind of file; an empty field keeps it for ever."""

    raw_days = forms.IntegerField(
        label="Keep raw traces for (days)",
        required=False,
        min_value=1,
        max_value=DAYS_LIMIT,
        help_text="Files as the profiler wrote them. Empty: for ever.",
    )
    columns_days = forms.IntegerField(
        label="Keep columns for (days)",
        required=False,
        min_value=1,
        max_value=DAYS_LIMIT,
        help_text="Single events behind cut-out steps, what-if and ranks. Empty: for ever.",
    )

    @classmethod
    def showing(cls, policy: RetentionPolicy | None) -> PolicyForm:
        """The form with what is in force."""
        if policy is None:
            return cls()
        return cls(initial={"raw_days": policy.raw_days, "columns_days": policy.columns_days})


class PinForm(forms.Form):
    """Why something is kept."""

    reason = forms.CharField(
        label="Kept for",
        max_length=REASON_LIMIT,
        strip=True,
        widget=forms.TextInput(attrs={"placeholder": "for example: report to the customer"}),
        error_messages={"required": "A pin needs a reason: say what it is kept for."},
    )
