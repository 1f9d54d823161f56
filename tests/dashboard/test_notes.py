"""Notes: written, found, changed by their author, shown as text whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from dashboard.markdown import rendered
from dashboard.models import Audit, Note, NoteKind, RunState, User
from tests.dashboard.reading import HTMX, page_of
from tests.factories import make_model, make_note, make_platform, make_run, make_user

pytestmark = pytest.mark.django_db

OPERATOR = "/notes/new/?kind=operator&operator=aten%3A%3Amm"


# Writing


def test_it_keeps_a_note_on_an_operator(operator_client: Client, operator: User) -> None:
    answer = operator_client.post(OPERATOR, {"text": "**Fuse** it."})
    assert answer["Location"] == "/operators/?name=aten%3A%3Amm"
    note = Note.objects.get()
    assert (note.kind, note.operator, note.author) == ("operator", "aten::mm", operator)
    page = page_of(operator_client, answer["Location"])
    assert "<strong>Fuse</strong> it." in page
    assert "otto" in page


@pytest.mark.parametrize("kind", ["run", "model", "finding"])
def test_it_keeps_a_note_on_anything_else(kind: str, operator_client: Client) -> None:
    run = make_run(RunState.SUCCEEDED)
    about = {
        "run": f"kind=run&run={run.pk}",
        "model": f"kind=model&model={make_model().name}",
        "finding": "kind=finding&finding=host_wait&operator=aten::item&platform=cpu",
    }
    answer = operator_client.post(f"/notes/new/?{about[kind]}", {"text": "Known."}, follow=True)
    assert "Known." in answer.content.decode()
    assert Note.objects.get().kind == kind


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "This field is required"),
        ("kind=run", "Say which run"),
        ("kind=run&run=987654", "There is no run 987654"),
        ("kind=model&model=none", "There is no model none"),
        ("kind=operator&operator=x&platform=none", "There is no platform none"),
        ("kind=finding&finding=a%3Cb", "valid"),
        (f"kind=run&run={2**70}", "less than or equal"),
        ("kind=cat", "not one of the available"),
    ],
)
def test_it_says_what_is_missing(query: str, said: str, operator_client: Client) -> None:
    page = page_of(operator_client, f"/notes/new/?{query}")
    assert said in page
    assert operator_client.post(f"/notes/new/?{query}", {"text": "a"}).status_code == 422
    assert not Note.objects.exists()


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 20_001])
def test_it_refuses_an_empty_or_endless_note(text: str, operator_client: Client) -> None:
    assert operator_client.post(OPERATOR, {"text": text}).status_code == 422
    assert not Note.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": NoteKind.RUN},
        {"kind": NoteKind.OPERATOR},
        {"kind": NoteKind.FINDING, "operator": "x"},
        {"kind": NoteKind.OPERATOR, "operator": "x", "text": ""},
    ],
)
def test_the_database_refuses_a_note_about_nothing(fields: dict[str, str]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_note(**{"text": "a", **fields})


# Changing


def test_its_author_changes_it_and_the_record_keeps_what_it_said(
    operator_client: Client, operator: User
) -> None:
    note = make_note("first", author=operator)
    operator_client.post(f"/notes/{note.pk}/edit/", {"text": "second"})
    note.refresh_from_db()
    assert note.text == "second" and note.edited_at is not None
    deed = Audit.objects.get(action="note.edit")
    assert (deed.subject, deed.detail) == (f"note {note.pk}", {"before": "first"})


def test_an_unchanged_note_is_no_deed(operator_client: Client, operator: User) -> None:
    note = make_note("same", author=operator)
    operator_client.post(f"/notes/{note.pk}/edit/", {"text": "same"})
    assert not Audit.objects.filter(action="note.edit").exists()


def test_its_author_deletes_it_and_the_record_keeps_what_it_said(
    operator_client: Client, operator: User
) -> None:
    note = make_note("gone", author=operator)
    operator_client.post(f"/notes/{note.pk}/delete/")
    assert not Note.objects.exists()
    assert Audit.objects.get(action="note.delete").detail["before"] == "gone"


def test_only_its_author_and_admins_change_it(
    operator_client: Client, admin_client: Client, viewer_client: Client
) -> None:
    note = make_note(author=make_user("somebody"))
    for client in (operator_client, viewer_client):
        assert client.get(f"/notes/{note.pk}/edit/").status_code == 403
        assert client.post(f"/notes/{note.pk}/edit/", {"text": "x"}).status_code == 403
        assert client.post(f"/notes/{note.pk}/delete/").status_code == 403
        assert "Edit" not in page_of(client, "/notes/")
    assert f'href="/notes/{note.pk}/edit/"' in page_of(admin_client, "/notes/")
    assert admin_client.post(f"/notes/{note.pk}/delete/").status_code == 302


def test_a_viewer_reads_but_does_not_write(viewer_client: Client) -> None:
    make_note("Fuse it.")
    page = page_of(viewer_client, "/operators/?name=aten%3A%3Amm")
    assert "Fuse it." in page
    assert "Write a note" not in page
    assert viewer_client.post(OPERATOR, {"text": "x"}).status_code == 403


def test_it_outlives_its_author(viewer_client: Client) -> None:
    author = make_user("left")
    make_note(author=author)
    author.delete()
    assert "somebody who left" in page_of(viewer_client, "/notes/")


# Finding


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["b", "a"]),
        ("?q=graph", ["a"]),
        ("?q=GRAPH+capture", ["a"]),
        ("?q=graph+other", []),
        ("?q=softmax", ["b"]),
        ("?q=ann", ["a"]),
        ("?kind=finding", ["b"]),
        ("?kind=nonsense", ["b", "a"]),
        ("?page=99", ["b", "a"]),
    ],
)
def test_it_searches(query: str, found: list[str], viewer_client: Client) -> None:
    make_note("a: use graph capture", author=make_user("ann"))
    finding = {"kind": NoteKind.FINDING, "finding": "host_wait", "operator": "aten::softmax"}
    make_note("b: nothing to win", author=make_user("bob"), **finding)
    page = viewer_client.get(f"/notes/{query}").context["page"]
    assert [note.row.text[0] for note in page.rows] == found


def test_it_pages_the_list_with_few_queries(
    viewer_client: Client, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    for number in range(26):
        make_note(f"note {number}", author=make_user(f"author{number}"))
    with django_assert_max_num_queries(5):  # type: ignore[attr-defined]
        page = viewer_client.get("/notes/")
    assert "1–25 of 26 notes" in " ".join(page.content.decode().split())
    assert len(viewer_client.get("/notes/?page=2").context["page"].rows) == 1


def test_it_says_that_there_are_none(viewer_client: Client) -> None:
    assert "No notes yet" in page_of(viewer_client, "/notes/")
    assert "No note matches" in page_of(viewer_client, "/notes/?q=x")


def test_it_shows_those_about_one_thing_as_a_part(viewer_client: Client) -> None:
    run = make_run(RunState.SUCCEEDED)
    make_note("of this run", kind=NoteKind.RUN, run=run)
    make_note("of an operator")
    answer = viewer_client.get(f"/notes/about/?kind=run&run={run.pk}", headers=HTMX)
    text = answer.content.decode()
    assert "of this run" in text and "of an operator" not in text
    assert "<html" not in text
    assert "HX-Request" in answer["Vary"]


def test_the_notes_of_a_run_lead_to_those_of_its_model(viewer_client: Client) -> None:
    run = make_run(RunState.SUCCEEDED)
    make_note("of the model", kind=NoteKind.MODEL, model=run.workload.model)
    page = page_of(viewer_client, f"/notes/about/?kind=run&run={run.pk}")
    assert '<a href="/notes/about/?kind=model&amp;model=llama-tiny">Notes on llama-tiny</a>' in page
    assert "of the model" in page_of(viewer_client, "/notes/about/?kind=model&model=llama-tiny")


def test_it_says_for_which_platform_it_holds(viewer_client: Client) -> None:
    make_note("slow here", platform=make_platform("h100"))
    assert '<span class="chip">only h100</span>' in page_of(
        viewer_client, "/operators/?name=aten::mm"
    )


# Markdown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a `b` **c**", "<p>a <code>b</code> <strong>c</strong></p>\n"),
        ("# big", "<h4>big</h4>\n"),
        ("~~no~~", "<p><s>no</s></p>\n"),
        ("- one", "<ul>\n<li>one</li>\n</ul>\n"),
    ],
)
def test_it_renders_markdown(text: str, html: str) -> None:
    assert rendered(text) == html


def test_it_renders_links_that_tell_nobody_where_they_come_from() -> None:
    html = rendered("[docs](https://pytorch.org/docs)")
    assert 'href="https://pytorch.org/docs"' in html
    assert 'rel="nofollow noopener noreferrer"' in html


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    '[x](https://a.example "onmouseover=alert(1)")',
    "![x](https://evil.example/p.png)",
    '<https://a.example/"onclick=x>',
    "[x]: javascript:alert(1)\n\n[x]",
    "`<b>`",
    "```<script>\n</script>\n```",
    "| <b> |\n|---|\n| <i> |",
    "a\u202egnp.exe\x00\x1b[31m",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_it_keeps_hostile_text_harmless(text: str, viewer_client: Client) -> None:
    html = rendered(text)
    for tag in ("<script", "<img", "<b>", "<i>", "onerror=alert(1)>"):
        assert tag not in html
    for address in ("javascript", "vbscript", "data:", "file:", "//evil"):
        assert f'href="{address}' not in html.lower()
    assert not {"\u202e", "\x00", "\x1b"} & set(html)
    kept = text.replace("\x00", "")
    make_note(kept)
    assert rendered(kept).strip() in viewer_client.get("/notes/").content.decode()


@pytest.mark.parametrize("text", ["[" * 20_000, "*a " * 6_000, "> " * 10_000, "`" * 20_000])
def test_it_comes_to_an_end_with_anything(text: str) -> None:
    assert rendered(text).startswith("<")


def test_it_shows_hostile_names_of_operators_as_text(operator_client: Client) -> None:
    name = "<b>&\"'\u202e/../?x=1#y"
    client = operator_client
    client.post("/notes/new/?" + _query(kind="operator", operator=name), {"text": "odd"})
    page = page_of(client, "/operators/?" + _query(name=name))
    assert "odd" in page
    assert "&lt;b&gt;&amp;&quot;" in page and "<b>&" not in page
    assert "odd" in page_of(client, "/notes/")


def _query(**values: str) -> str:
    return urlencode(values)
