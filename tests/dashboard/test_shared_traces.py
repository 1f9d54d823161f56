"""Real traces of nine kinds of device: every panel shows something or says why not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from dashboard.models import Trace, TraceState
from dashboard.panels.base import Panel
from dashboard.panels.registry import ORDER
from dashboard.services import artifacts
from profiler.analysis.ingest import ingest
from tests.dashboard.reading import page_of
from tests.factories import make_trace, store_artifact

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
TRACES = sorted(SHARED.glob("*.json.gz"))


def stored(path: Path) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        ingest([path], Path(folder))
        report = artifacts.keep(Path(folder) / "report.json")
    flame, raw = store_artifact(b"{}"), store_artifact(b"{} ")
    return make_trace(TraceState.READY, name=path.name, report=report, flame=flame, raw=raw)


def parts(client: Client, trace: Trace) -> Iterator[tuple[Panel, str]]:
    for panel in ORDER:
        yield panel, page_of(client, f"/traces/{trace.pk}/panels/{panel.name}/")


@pytest.mark.skipif(not TRACES, reason="there are no shared traces beside the repository")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_it_fills_every_panel_or_says_why_not(path: Path, viewer_client: Client) -> None:
    trace = stored(path)
    whole = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert "is missing.</b>" not in whole
    for panel, part in parts(viewer_client, trace):
        if "This trace has nothing for it" in part:
            assert panel.title in whole.partition('id="absent"')[2], panel.name
        else:
            assert f'id="{panel.name}" class="panel later"' in whole, panel.name
            assert "<td" in part or "<dd>" in part, panel.name
        assert "they differ" not in part, panel.name
