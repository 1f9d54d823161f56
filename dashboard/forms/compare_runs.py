"""Which runs or traces are laid side by side, as the address says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django import forms

from dashboard.queries.side_by_side import SideBySide

MOST = 8
_LARGEST = 2**63 - 1


class NumbersField(forms.Field):
    """`?run=1&run=2`: up to `MOST` different numbers, in their order."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value: object) -> tuple[int, ...]:
        words = [str(word).strip() for word in value] if isinstance(value, Sequence) else []
        wrong = [word for word in words if word and not _is_number(word)]
        if wrong:
            raise forms.ValidationError("Only whole numbers name a row.")
        numbers = tuple(dict.fromkeys(int(word) for word in words if word))
        if len(numbers) > MOST:
            raise forms.ValidationError(f"At most {MOST} fit side by side.")
        return numbers


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 20 and 0 < int(word) <= _LARGEST


class SideBySideForm(forms.Form):
    """`?run=1&run=2&base=2` and the same with `trace`."""

    run = NumbersField(required=False)
    trace = NumbersField(required=False)
    base = forms.IntegerField(required=False, min_value=1, max_value=_LARGEST)
    candidate = forms.IntegerField(required=False, min_value=1, max_value=_LARGEST)

    def wanted(self, kind: str) -> SideBySide:
        """What is asked for; nothing when the address holds something that cannot be."""
        if not self.is_valid():
            return SideBySide()
        data: Mapping[str, object] = self.cleaned_data
        return SideBySide(
            numbers=self.cleaned_data[kind],
            baseline=_number(data["base"]),
            candidate=_number(data["candidate"]),
        )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
