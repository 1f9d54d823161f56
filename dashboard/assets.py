"""Viewer assets: where they come from, and whether they are there."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, overload

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

SPEEDSCOPE = "vendor/speedscope/index.html"


def plotly_folder() -> Path:
    """The folder of the installed plotly wheel that holds plotly.min.js; plotly is not imported."""
    spec = importlib.util.find_spec("plotly")
    assert spec is not None and spec.origin is not None, "plotly is a dependency of this project"
    return Path(spec.origin).parent / "package_data"


class PlotlyFinder(BaseFinder):
    """Serves exactly `vendor/plotly.min.js` out of the wheel: Python and JS versions stay equal."""

    NAME = "plotly.min.js"

    @overload
    def find(self, path: str, find_all: Literal[False] = ...) -> str | None: ...
    @overload
    def find(self, path: str, find_all: Literal[True]) -> list[str]: ...
    def find(self, path: str, find_all: bool = False) -> str | list[str] | None:
        found = str(plotly_folder() / self.NAME) if path == f"vendor/{self.NAME}" else None
        if find_all:
            return [found] if found else []
        return found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        storage = FileSystemStorage(location=plotly_folder())
        setattr(storage, "prefix", "vendor")  # noqa: B010 - collectstatic reads it
        yield self.NAME, storage


def speedscope_present() -> bool:
    """Whether the viewer's files lie where the pages link to."""
    return (Path(settings.BASE_DIR) / "static" / SPEEDSCOPE).is_file()
