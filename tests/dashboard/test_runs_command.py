"""`manage.py runs`: the list for people and for programs."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.models import RunState, TraceState
from tests.factories import make_result, make_run, make_trace

pytestmark = pytest.mark.django_db


def printed(*options: str) -> str:
    out = io.StringIO()
    call_command("runs", *options, stdout=out)
    return out.getvalue()


def test_it_prints_runs_as_json() -> None:
    done = make_result().run
    make_trace(TraceState.READY, run=done)
    waiting = make_run()
    rows = json.loads(printed("--json"))
    assert [row["id"] for row in rows] == [done.pk, waiting.pk]
    assert list(rows[0]) == [
        *("id", "model", "scenario", "state", "trace_state", "created_at", "ended_at")
    ]
    assert (rows[0]["state"], rows[0]["trace_state"]) == ("succeeded", "ready")
    assert rows[0]["ended_at"].endswith("+00:00")
    assert (rows[1]["state"], rows[1]["trace_state"], rows[1]["ended_at"]) == ("queued", None, None)


def test_it_prints_an_empty_list_without_runs() -> None:
    assert json.loads(printed("--json")) == []
    assert "No runs yet" in printed()


def test_it_prints_a_table_with_the_headline() -> None:
    run = make_result().run
    lines = printed().splitlines()
    assert lines[0].split() == [
        *("run", "model", "scenario", "state", "trace", "value", "took", "created")
    ]
    assert lines[1].split()[:4] == [str(run.pk), "llama-tiny", "decode", "succeeded"]
    assert "7.62 ms" in lines[1]


def test_it_cannot_drive_a_terminal() -> None:
    run = make_run(RunState.FAILED)
    run.workload.model.name = "\x1b]0;title\x07\u202ename"
    run.workload.model.save()
    assert "\x1b" not in printed()
    assert "\u202e" not in printed()
    assert "\\x1b" in printed()


def test_it_asks_the_database_as_often_for_one_run_as_for_five() -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            printed("--json")
        return len(queries)

    make_trace(run=make_run())
    once = asked()
    for _ in range(4):
        make_trace(run=make_run())
    assert asked() == once
