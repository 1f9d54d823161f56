"""Reading answers: pages as one line, CSV as rows, files as bytes."""

from __future__ import annotations

import csv
import io
import json

from django.http import FileResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client

HTMX = {"HX-Request": "true"}


def page_of(client: Client, address: str) -> str:
    """A page with its white space folded."""
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def body_of(response: HttpResponseBase) -> bytes:
    """The bytes of a file answer, which is then closed."""
    assert isinstance(response, FileResponse)
    data = b"".join(response.streaming_content)  # type: ignore[arg-type]
    response.close()
    return data


def csv_of(response: HttpResponseBase) -> list[dict[str, str]]:
    """The rows of a CSV answer, by heading."""
    assert isinstance(response, StreamingHttpResponse)
    text = b"".join(response.streaming_content).decode()  # type: ignore[arg-type]
    return list(csv.DictReader(io.StringIO(text)))


def json_of(response: HttpResponseBase) -> list[dict[str, str | int | float | None]]:
    """The rows of a JSON answer."""
    assert isinstance(response, StreamingHttpResponse)
    text = b"".join(response.streaming_content).decode()  # type: ignore[arg-type]
    found: list[dict[str, str | int | float | None]] = json.loads(text)
    return found
