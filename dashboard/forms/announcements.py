"""What people may ask of announcements: a filter, a subscription, an address, a webhook."""

from __future__ import annotations

from django import forms

from dashboard.forms.runs import choose, same
from dashboard.models import AnnouncementKind, Model
from dashboard.services.announcements import SEVERITIES, Wish
from dashboard.services.endpoints import URL_LIMIT, NewEndpoint

LEAST = [(str(share), f"{share:.0%} or more" if share else "any size") for share in SEVERITIES]
_ID_LIMIT = 2**63 - 1


class AnnouncementFilterForm(forms.Form):
    """`?every=1&kind=slower&model=llama-tiny&page=2`."""

    every = forms.BooleanField(required=False, label="Also what you did not subscribe to")
    kind = forms.ChoiceField(required=False)
    model = forms.ChoiceField(required=False)
    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        choose(self, "kind", AnnouncementKind.choices, "Any kind")
        names = Model.objects.order_by("name").values_list("name", flat=True)
        choose(self, "model", same(names), "Any model")

    @property
    def narrows(self) -> bool:
        return self.is_valid() and bool(self.cleaned_data["kind"] or self.cleaned_data["model"])

    def every_one(self) -> bool:
        return self.is_valid() and bool(self.cleaned_data["every"])

    def text(self, name: str) -> str:
        return str(self.cleaned_data[name]) if self.is_valid() else ""

    def number(self) -> int:
        return int(self.cleaned_data["page"] or 1) if self.is_valid() else 1


class ReadForm(forms.Form):
    """Up to which announcement the list was shown."""

    up_to = forms.IntegerField(min_value=1, max_value=_ID_LIMIT)

    def number(self) -> int | None:
        return int(self.cleaned_data["up_to"]) if self.is_valid() else None


class _WishForm(forms.Form):
    """Of which model, how large, and improvements too."""

    model = forms.ChoiceField(
        required=False,
        error_messages={"invalid_choice": "No model of that name; choose one of the list."},
    )
    least = forms.ChoiceField(choices=LEAST, initial="0.0", label="Changes of")
    improvements = forms.BooleanField(required=False, initial=True, label="Improvements and fixes")

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        names = Model.objects.order_by("name").values_list("name", flat=True)
        choose(self, "model", same(names), "Every model")

    def wish(self) -> Wish:
        """What a valid form asks for."""
        data = self.cleaned_data
        return Wish(
            model=Model.objects.filter(name=data["model"]).first(),
            least=float(data["least"]),
            improvements=data["improvements"],
            email=bool(data.get("email")),
        )


class SubscriptionForm(_WishForm):
    """One subscription of the person who sends it."""

    email = forms.BooleanField(required=False, label="By e-mail too")


class AddressForm(forms.Form):
    """One's own e-mail address; empty takes it away."""

    address = forms.EmailField(
        required=False,
        max_length=254,
        label="Your e-mail address",
        widget=forms.EmailInput({"autocomplete": "email"}),
    )


class EndpointForm(_WishForm):
    """A program that is told by HTTP."""

    name = forms.CharField(max_length=60)
    url = forms.CharField(
        max_length=URL_LIMIT,
        strip=False,
        label="Address",
        help_text="https://host/path; treat it as a secret if its path holds one",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    private_network = forms.BooleanField(
        required=False, label="Its host lies in a private network, and may be reached there"
    )
    field_order = ["name", "url", "private_network", "model", "least", "improvements"]

    def wanted(self) -> NewEndpoint:
        """The webhook described by a valid form."""
        data = self.cleaned_data
        return NewEndpoint(
            name=data["name"],
            url=data["url"],
            private_network=data["private_network"],
            wish=self.wish(),
        )


class EndpointActionForm(forms.Form):
    """One button of a webhook's page at a time."""

    action = forms.ChoiceField(choices=same(("on", "off", "test", "secret", "delete")))
