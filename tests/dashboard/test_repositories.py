"""Pages of repositories, filled and empty, and the command that registers one."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import Repository
from tests.sources import make_commit, make_repository

pytestmark = pytest.mark.django_db
FORM = {
    "slug": "models",
    "address": "https://example.org/models.git",
    "allowed_refs": "main release/*",
    "import_paths": ". src",
    "factory": "bench/model.py:make",
    "build_command": "make -j2",
    "build_limit_s": "600",
}


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_it_says_how_to_register_the_first(viewer_client: Client) -> None:
    page = text(viewer_client, "/repositories/")
    assert "No repository yet" in page
    assert "manage.py register_repository" in page


def test_it_lists_repositories(viewer_client: Client) -> None:
    row = make_repository()
    make_commit(row)
    assert f'href="/repositories/{row.pk}/"' in text(viewer_client, "/repositories/")


def test_it_registers_what_an_admin_describes(admin_client: Client) -> None:
    response = admin_client.post("/repositories/new/", FORM)
    row = Repository.objects.get()
    assert response.headers["Location"] == f"/repositories/{row.pk}/"
    assert (row.allowed_refs, row.import_paths) == (["main", "release/*"], [".", "src"])
    assert row.created_by is not None and row.wanted_at is not None


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("address", "ext::sh -c id", "not fetched from"),
        ("address", "file:///srv", "not fetched from"),
        ("address", "/etc", "is no git repository"),
        ("allowed_refs", "--all", "can be no branch"),
        ("slug", "a b", "valid"),
        ("build_limit_s", "0", "greater than or equal"),
    ],
)
def test_it_says_what_is_wrong(admin_client: Client, field: str, value: str, words: str) -> None:
    response = admin_client.post("/repositories/new/", {**FORM, field: value})
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Repository.objects.exists()


def test_it_lets_no_operator_register(operator_client: Client) -> None:
    assert operator_client.post("/repositories/new/", FORM).status_code == 403


def test_it_shows_foreign_text_as_text(viewer_client: Client) -> None:
    row = make_repository()
    make_commit(row, "<script>alert(1)</script> \u202e", author='"><svg/onload=x>')
    page = text(viewer_client, f"/repositories/{row.pk}/")
    assert "<script>alert" not in page and "<svg/onload" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\u202e" in page


def test_it_shows_why_a_fetch_failed(viewer_client: Client) -> None:
    row = make_repository(state="failed", reason="The host is not known", hint="check it")
    assert "The host is not known. check it" in text(viewer_client, f"/repositories/{row.pk}/")


def test_it_polls_only_while_a_fetch_is_wanted(viewer_client: Client) -> None:
    row = make_repository()
    assert "hx-trigger" not in text(viewer_client, f"/repositories/{row.pk}/status/").replace(
        'hx-trigger="load"', ""
    )
    Repository.objects.update(wanted_at="2026-01-01T00:00Z")
    assert 'hx-trigger="poll"' in text(viewer_client, f"/repositories/{row.pk}/status/")


def test_it_asks_for_a_fetch(operator_client: Client) -> None:
    row = make_repository()
    operator_client.post(f"/repositories/{row.pk}/fetch/")
    row.refresh_from_db()
    assert row.wanted_at is not None


def test_it_finds_commits_by_subject_author_and_hash(viewer_client: Client) -> None:
    row = make_repository()
    for number in range(7):
        make_commit(row, f"step {number}")
    wanted = make_commit(row, "fuse softmax", author="Grace")
    for query in ("softmax", "Grace", wanted.sha[:12]):
        page = text(viewer_client, f"/repositories/{row.pk}/?q={query}")
        assert "fuse softmax" in page and "step 3</td>" not in page


def test_it_needs_as_many_queries_for_many_commits_as_for_one(viewer_client: Client) -> None:
    row = make_repository()
    counts = []
    for _ in range(2):
        for _ in range(5):
            make_commit(row)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            text(viewer_client, f"/repositories/{row.pk}/")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12


def test_its_command_registers_a_local_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work" / ".git" / "objects").mkdir(parents=True)
    call_command("register_repository", "ours", str(tmp_path / "work"), "--allow", "*")
    row = Repository.objects.get()
    assert (row.address, row.allowed_refs) == (str(tmp_path / "work"), ["*"])
    assert "ours is registered" in capsys.readouterr().out


def test_its_command_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        call_command("register_repository", "ours", "http://example.org/x")
    assert left.value.code == 65
    assert capsys.readouterr().err.count("\n") == 1
