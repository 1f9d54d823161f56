"""What an admin says about a repository, and what a reader looks for in it."""

from __future__ import annotations

from django import forms

from dashboard.services.repositories import BUILD_LIMIT_S, NewRepository


class NewRepositoryForm(forms.Form):
    """One repository; what is wrong with a value is found by the service that stores it."""

    slug = forms.SlugField(max_length=40, label="Name", help_text="Letters, digits, - and _")
    address = forms.CharField(
        max_length=400,
        strip=False,
        label="Address",
        help_text="https://host/path, ssh://user@host/path, or the full path of a repository on "
        "the machine of keeper and workers",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    allowed_refs = forms.CharField(
        max_length=1000,
        initial="main",
        label="Branches that may be measured",
        help_text="Separated by spaces: main release/* tags/v*. Code of these branches runs on "
        "your workers.",
    )
    import_paths = forms.CharField(
        max_length=1000,
        initial=".",
        label="Import paths",
        help_text="Folders inside the repository that Python imports from; . is its top",
    )
    factory = forms.CharField(
        max_length=310,
        required=False,
        label="Model factory",
        help_text="path/file.py:function that returns the model; empty when the repository "
        "changes operators or a framework",
    )
    build_command = forms.CharField(
        max_length=1000,
        required=False,
        label="Build command",
        help_text="Runs at the top of every checkout, without a shell; its outputs are kept per "
        "commit and environment",
    )
    build_limit_s = forms.FloatField(
        min_value=1, max_value=86_400, initial=BUILD_LIMIT_S, label="Build limit in seconds"
    )
    private_network = forms.BooleanField(
        required=False, label="Its host lies in a private network, and may be reached there"
    )

    def wanted(self) -> NewRepository:
        """The repository described by a valid form."""
        data = self.cleaned_data
        return NewRepository(
            slug=data["slug"],
            address=data["address"],
            allowed_refs=tuple(data["allowed_refs"].split()),
            import_paths=tuple(data["import_paths"].split()),
            build_command=data["build_command"],
            build_limit_s=data["build_limit_s"],
            factory=data["factory"],
            private_network=data["private_network"],
        )


class CommitFilterForm(forms.Form):
    """Text and page of the list of commits, as they stand in the address."""

    q = forms.CharField(required=False, max_length=100, label="Subject, author or hash")
    page = forms.IntegerField(required=False, min_value=1, max_value=10**6)

    def text(self) -> str:
        return str(self.cleaned_data["q"]).strip() if self.is_valid() else ""

    def number(self) -> int:
        return int(self.cleaned_data["page"] or 1) if self.is_valid() else 1
