"""Filter, order and page of one table among several on a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django import forms

from dashboard.forms.runs import choose, signed

PAGE_LIMIT = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWish:
    """What a reader asks a table for; `sort` empty: the table's own order."""

    text: str = ""
    sort: str = ""
    page: int = 1


class TableForm(forms.Form):
    """The wish as it stands in the address: `kernels-q`, `kernels-sort`, `kernels-page`."""

    q = forms.CharField(required=False, max_length=200, label="Text")
    sort = forms.ChoiceField(required=False)
    page = forms.IntegerField(required=False, min_value=1, max_value=PAGE_LIMIT)

    def __init__(self, data: object, *, name: str, sorts: Iterable[str]) -> None:
        super().__init__(data, prefix=name)  # type: ignore[arg-type]
        choose(self, "sort", signed(sorts), "")

    def wanted(self) -> TableWish:
        """The wish; everything when the address holds something that cannot be."""
        if not self.is_valid():
            return TableWish()
        data = self.cleaned_data
        return TableWish(text=data["q"].strip(), sort=data["sort"], page=data["page"] or 1)
