"""Fixtures of the services' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.dashboard.services.scene import Clock, stopped_clock


@pytest.fixture
def store_root(tmp_path: Path, settings: Settings) -> Path:
    """An artifact store of this test's own."""
    root = tmp_path / "artifacts"
    settings.ARTIFACTS_URL = root.as_uri()
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path / "uploads")
    return root


@pytest.fixture
def clock() -> Iterator[Clock]:
    """A clock that the test moves."""
    with stopped_clock() as stopped:
        yield stopped
