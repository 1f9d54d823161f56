"""What people may ask about sign-in, their own account and other people's."""

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.http import QueryDict

from dashboard.models import Role, User

NAME_HELP = "Letters, digits and @ . + - _"


class SignInForm(forms.Form):
    """Name and password; `next` is where the reader was going."""

    username = forms.CharField(
        max_length=150,
        label="User name",
        widget=forms.TextInput({"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "current-password"}),
    )
    next = forms.CharField(required=False, max_length=2000, widget=forms.HiddenInput)


class NewUserForm(forms.Form):
    """A name and a role; the person gets in by a link and may then set a password."""

    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text=NAME_HELP,
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=Role.choices, initial=Role.VIEWER)


class UserChangeForm(forms.Form):
    """One change of an account at a time."""

    ACTIONS = ("role", "disable", "enable", "link")

    action = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])
    role = forms.ChoiceField(choices=Role.choices, required=False)

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("action") == "role" and not cleaned.get("role"):
            self.add_error("role", "Choose a role.")
        return cleaned


class AccountForm(forms.Form):
    """Which part of the account page was sent."""

    action = forms.ChoiceField(choices=[("password", "password"), ("elsewhere", "elsewhere")])


def password_form(user: User, data: QueryDict | None = None) -> SetPasswordForm[User]:
    """The change asks for the old password where there is one."""
    kind = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    form = kind(user, data)
    for field in form.fields.values():
        field.widget.attrs.pop("autofocus", None)
    return form
