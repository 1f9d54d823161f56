"""`/healthz`: what a probe sees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from dashboard import assets
from tests.factories import make_heartbeat, make_user


def ask(client: Client, status: int = 200) -> dict[str, Any]:
    response = client.get("/healthz")
    assert response.status_code == status
    body: dict[str, Any] = json.loads(response.content)
    return body


def test_it_is_well_when_every_kind_of_process_lives(db: None, client: Client) -> None:
    for kind in ("keeper", "worker", "worker", "ingest"):
        make_heartbeat(kind)
    body = ask(client)
    assert body["status"] == "ok"
    assert body["database"] == {"up": True, "kind": "sqlite"}
    assert body["workers"]["alive"] == 2
    assert body["keeper"]["age_s"] < 60


def test_it_serves_while_others_are_gone_and_says_so(
    db: None, client: Client, settings: Settings
) -> None:
    make_heartbeat("keeper", age_s=5 * settings.HEARTBEAT_S)
    body = ask(client)
    assert body["status"] == "degraded"
    assert body["keeper"]["up"] is False
    assert body["keeper"]["age_s"] >= 75
    assert body["workers"] == {"up": False, "alive": 0, "age_s": None}


def test_it_does_not_take_the_sweep_mark_for_a_process(db: None, client: Client) -> None:
    make_heartbeat("sweep")
    assert ask(client)["status"] == "degraded"


def test_it_is_503_when_the_database_does_not_answer(
    transactional_db: None, client: Client
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE dashboard_heartbeat RENAME TO away")
    try:
        assert ask(client, 503)["database"] == {"up": False}
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO dashboard_heartbeat")


def test_it_tells_no_names_and_no_paths(db: None, client: Client, settings: Settings) -> None:
    make_heartbeat("worker", name="secret-host:1:x", detail="run 7")
    make_user("ada")
    text = client.get("/healthz").content.decode()
    assert not [
        word for word in ("secret-host", "run 7", "ada", str(settings.VAR_DIR)) if word in text
    ]


def test_it_says_whether_the_viewer_is_there(
    db: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "SPEEDSCOPE", "vendor/nowhere.html")
    assert ask(client)["assets"] == {"viewer": False}


def test_it_is_never_cached(db: None, client: Client) -> None:
    assert "no-store" in client.get("/healthz").headers["Cache-Control"]
