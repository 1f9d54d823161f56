"""What people may ask of traces: filters, the operator table's order, and uploads."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler

from dashboard.forms.runs import choose, signed
from dashboard.models import TraceState
from dashboard.queries.traces import (
    OPERATOR_SORTS,
    TRACE_SORTS,
    OperatorFilter,
    TraceFilter,
)

_PAGE_LIMIT = 10**6


class TraceFilterForm(forms.Form):
    """Filter, order and page of the list of traces, as they stand in the address."""

    q = forms.CharField(required=False, max_length=100, label="Text")
    state = forms.ChoiceField(required=False)
    source = forms.ChoiceField(required=False, label="From")
    sort = forms.ChoiceField(required=False)
    page = forms.IntegerField(required=False, min_value=1, max_value=_PAGE_LIMIT)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        states = [(str(state.value), str(state.label)) for state in TraceState]
        choose(self, "state", states, "Any state")
        choose(self, "source", [("run", "A run"), ("uploaded", "An upload")], "Anywhere")
        choose(self, "sort", signed(TRACE_SORTS), "")

    def wanted(self) -> TraceFilter:
        """The filter; everything when the address holds something that cannot be."""
        if not self.is_valid():
            return TraceFilter()
        data = self.cleaned_data
        return TraceFilter(
            state=data["state"],
            source=data["source"],
            text=data["q"].strip(),
            sort=data["sort"] or "-trace",
            page=data["page"] or 1,
        )


class OperatorFilterForm(forms.Form):
    """Text, order and page of an operator table."""

    op = forms.CharField(required=False, max_length=200, label="Operator name")
    sort = forms.ChoiceField(required=False)
    page = forms.IntegerField(required=False, min_value=1, max_value=_PAGE_LIMIT)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        choose(self, "sort", signed(OPERATOR_SORTS), "")

    def wanted(self) -> OperatorFilter:
        """The filter; everything when the address holds something that cannot be."""
        if not self.is_valid():
            return OperatorFilter()
        data = self.cleaned_data
        return OperatorFilter(text=data["op"].strip(), sort=data["sort"], page=data["page"] or 1)


class ManyFilesInput(forms.ClearableFileInput):
    """A file field that takes several files at once."""

    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """Cleans to a list with at least one file."""

    widget = ManyFilesInput

    def clean(self, data: object, initial: object = None) -> list[UploadedFile[bytes]]:
        """Every file by the rules of a single one."""
        given = data if isinstance(data, list) and data else [None]
        return [super(ManyFilesField, self).clean(one, initial) for one in given]


class UploadForm(forms.Form):
    """One profiler file, or those of all ranks of a job at once."""

    file = ManyFilesField(
        label="Trace files",
        allow_empty_file=True,
        max_length=1000,
        error_messages={"required": "Choose a file first."},
    )

    @property
    def limit_bytes(self) -> int:
        return int(settings.UPLOAD_LIMIT_BYTES)


class UploadTooLargeError(Exception):
    """The body of an upload holds more bytes than allowed."""


class CountingUploadHandler(FileUploadHandler):
    """Counts the bytes that really arrive: what the sender says about the length is no limit."""

    def __init__(self) -> None:
        super().__init__()
        self.received = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.received += len(raw_data)
        if self.received > settings.UPLOAD_LIMIT_BYTES:
            raise UploadTooLargeError
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None
