"""A calibration that was measured on a machine: pasted, or as a file."""

from __future__ import annotations

from django import forms
from django.core.files.uploadedfile import UploadedFile

from dashboard.services.calibrations import COMMAND, SIZE_LIMIT


class CalibrationForm(forms.Form):
    """The JSON that the calibration printed."""

    text = forms.CharField(
        label="Its output",
        required=False,
        max_length=SIZE_LIMIT,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono"}),
        help_text=f"JSON of {COMMAND}, run on a machine of this platform",
    )
    file = forms.FileField(
        label="or as a file",
        required=False,
        widget=forms.FileInput(attrs={"accept": ".json,application/json"}),
    )

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("file") and not str(cleaned.get("text") or "").strip():
            self.add_error("text", "Paste the output, or choose the file.")
        return cleaned

    def raw(self) -> bytes:
        """What was given, at most a byte more than is allowed."""
        file = self.cleaned_data.get("file")
        if isinstance(file, UploadedFile):
            return bytes(file.read(SIZE_LIMIT + 1))
        return str(self.cleaned_data["text"]).encode()
