"""Answers that are files: CSV tables and stored artifacts. Stored bytes are never rendered."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.utils.cache import get_conditional_response, patch_vary_headers

from dashboard.models import Artifact
from dashboard.services import artifacts
from dashboard.views.errors import refusal
from profiler.errors import UserError, printable

Cell = str | int | float | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


def csv_cell(value: Cell) -> Cell:
    """Text that a spreadsheet would run as a formula gets an apostrophe; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def csv_response(
    name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> StreamingHttpResponse:
    """A table as CSV in UTF-8, streamed; `name` is ours, never foreign text."""

    def lines() -> Iterator[str]:
        yield _line(header)
        for row in rows:
            yield _line([csv_cell(cell) for cell in row])

    response = StreamingHttpResponse(lines(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def json_response(
    name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> StreamingHttpResponse:
    """A table as a JSON list of objects, streamed; `name` is ours, never foreign text."""

    def parts() -> Iterator[str]:
        yield "["
        for number, row in enumerate(rows):
            said = json.dumps(dict(zip(header, row, strict=True)), allow_nan=False)
            yield f",\n {said}" if number else f"\n {said}"
        yield "\n]\n"

    response = StreamingHttpResponse(parts(), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _line(row: Sequence[Cell]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(row)
    return buffer.getvalue()


def _opened(artifact: Artifact) -> BinaryIO | None:
    """The stored bytes; None when a policy removed them or the store has lost them."""
    try:
        return artifacts.open_artifact(artifact.sha256)
    except (FileNotFoundError, artifacts.RemovedError):
        return None


def _gone(request: HttpRequest, artifact: Artifact) -> HttpResponse:
    """410: the row is there, its bytes are not."""
    if artifact.removed_at is not None:
        return refusal(request, artifacts.removal_of(artifact), status=410)
    error = UserError(
        f"The stored file {artifact.sha256[:12]} is no longer there",
        "ask an admin to restore it from a backup; what can be made anew comes back when the "
        "trace is read again",
    )
    return refusal(request, error, status=410)


def download(request: HttpRequest, artifact: Artifact, name: str) -> HttpResponseBase:
    """Stored bytes to be saved, whatever they are: never shown, never sniffed, no scripts."""
    handle = _opened(artifact)
    if handle is None:
        return _gone(request, artifact)
    response = FileResponse(
        handle,
        as_attachment=True,
        filename=name,
        content_type="application/octet-stream",
    )
    response["Content-Length"] = str(artifact.size_bytes)
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def json_file(request: HttpRequest, artifact: Artifact) -> HttpResponseBase:
    """A JSON document of our own making."""
    handle = _opened(artifact)
    if handle is None:
        return _gone(request, artifact)
    response = FileResponse(handle, content_type="application/json")
    response["Content-Length"] = str(artifact.size_bytes)
    return response


class _Unpacked(gzip.GzipFile):
    """The bytes inside; closing it also closes the file it reads, which gzip leaves open."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self._packed = packed

    def fileno(self) -> int:
        """None: a server that sends files by their number would send the packed bytes."""
        raise io.UnsupportedOperation("fileno")

    def close(self) -> None:
        super().close()
        self._packed.close()


def unchanged(request: HttpRequest, artifact: Artifact) -> HttpResponseBase | None:
    """304 for whoever holds these very bytes; a file is known by its hash."""
    response = get_conditional_response(request, etag=etag_of(artifact))
    return response if response is not None and response.status_code == 304 else None


def etag_of(artifact: Artifact) -> str:
    """The hash as an entity tag. Weak, as the same file goes out packed and unpacked."""
    return f'W/"{artifact.sha256}"'


def gzipped_json(request: HttpRequest, artifact: Artifact) -> HttpResponseBase:
    """A JSON document stored gzipped: passed on as it is to whoever understands gzip."""
    handle = _opened(artifact)
    if handle is None:
        return _gone(request, artifact)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        response = FileResponse(handle, content_type="application/json")
        response["Content-Encoding"] = "gzip"
        response["Content-Length"] = str(artifact.size_bytes)
    else:
        response = FileResponse(_Unpacked(handle), content_type="application/json")
    response["ETag"] = etag_of(artifact)
    patch_vary_headers(response, ["Accept-Encoding"])
    return response
