"""Pages of templates: list, one version, edit, import, plan, and the group that comes of it."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard.models import Template, TemplateVersion, User
from dashboard.services import templates
from profiler.bench.templates import SHIPPED
from tests.dashboard.reading import page_of
from tests.dashboard.template_text import HOSTILE, TEXT


def matrix(**changes: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "title": "Mine",
        "base": 1,
        "scenario": "prefill",
        "prompt_tokens": "8",
        "model": "llama-tiny, qwen3-moe-tiny",
        "batch": "1, 2",
    }
    return plain | changes


def newest() -> TemplateVersion:
    found = templates.newest_version("mine")
    assert found is not None
    return found


def test_it_lists_the_shipped_templates_with_their_runs(viewer_client: Client) -> None:
    page = page_of(viewer_client, "/templates/")
    for name, template in SHIPPED.items():
        assert f'href="/templates/{name}/"' in page
        assert template.title in page
    assert "New or import" not in page


def test_it_says_what_to_do_without_templates(viewer_client: Client) -> None:
    Template.objects.all().delete()
    assert "No templates yet" in page_of(viewer_client, "/templates/")


def test_it_shows_what_a_version_expands_to(viewer_client: Client, mine: TemplateVersion) -> None:
    page = page_of(viewer_client, "/templates/mine/")
    assert "<b>4 runs</b>: model (2) × batch (2)." in page
    assert "qwen3-moe-tiny" in page
    assert "scenario is prefill in every row" in page
    assert HOSTILE not in page
    assert "Edit" not in page.split("<main")[1].split("</h1>")[1].split("<section")[0]


def test_it_keeps_an_earlier_version_readable(
    viewer_client: Client, operator: User, mine: TemplateVersion
) -> None:
    templates.save_template(TEXT.replace("[1, 2]", "[1, 2, 4]"), operator, base=1)
    old = page_of(viewer_client, "/templates/mine/?version=1")
    assert "<b>4 runs</b>" in old
    assert "Version 2 is the newest." in old
    assert "<b>6 runs</b>" in page_of(viewer_client, "/templates/mine/")


@pytest.mark.parametrize("query", ["", "?version=x", "?version=-1", "?version=99999999999"])
def test_it_takes_the_newest_for_a_version_that_cannot_be(
    query: str, viewer_client: Client
) -> None:
    assert viewer_client.get(f"/templates/quick/{query}").status_code == 200


@pytest.mark.parametrize("address", ["/templates/none/", "/templates/quick/?version=9"])
def test_it_says_not_found(address: str, viewer_client: Client) -> None:
    assert viewer_client.get(address).status_code == 404


def test_it_says_which_stored_version_cannot_run_any_more(
    viewer_client: Client, mine: TemplateVersion
) -> None:
    TemplateVersion.objects.filter(pk=mine.pk).update(text=TEXT.replace("llama-tiny", "gone"))
    assert "cannot be queued any more" in page_of(viewer_client, "/templates/mine/")


def test_it_gives_the_template_as_a_file_and_takes_it_back(
    operator_client: Client, mine: TemplateVersion
) -> None:
    saved = operator_client.get("/templates/mine.toml")
    assert saved.headers["Content-Disposition"] == 'attachment; filename="mine-v1.toml"'
    changed = saved.content.replace(b'name = "mine"', b'name = "yours"')
    file = SimpleUploadedFile("yours.toml", changed)
    response = operator_client.post("/templates/new/", {"file": file})
    assert response.headers["Location"] == "/templates/yours/"
    stored = TemplateVersion.objects.get(template__name="yours")
    assert templates.matrix_of(stored).axes == templates.matrix_of(mine).axes


def test_it_takes_json_too(operator_client: Client) -> None:
    tree = {
        "name": "from-json",
        "version": 1,
        "title": "J",
        "fields": {"model": "llama-tiny", "scenario": "prefill"},
        "axes": {"batch": [1, 2]},
    }
    file = SimpleUploadedFile("x.json", json.dumps(tree).encode())
    assert operator_client.post("/templates/new/", {"file": file}).status_code == 302
    assert 'name = "from-json"' in TemplateVersion.objects.get(template__name="from-json").text


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.toml", b"\xff\xfe", "no text in UTF-8"),
        ("a.toml", b"x" * (65 << 10), "larger than 64 KiB"),
        ("a.toml", b"name = ", "no valid TOML"),
        ("a.json", b"[1]", "no table"),
        ("a.json", b"{", "no valid JSON"),
    ],
)
def test_it_names_what_is_wrong_with_a_file(
    name: str, data: bytes, said: str, operator_client: Client
) -> None:
    file = SimpleUploadedFile(name, data)
    response = operator_client.post("/templates/new/", {"file": file})
    assert response.status_code == 422
    assert said in response.content.decode()


def test_it_asks_for_a_text_or_a_file(operator_client: Client) -> None:
    response = operator_client.post("/templates/new/", {"text": " "})
    assert response.status_code == 422
    assert "Paste a template, or choose a file." in response.content.decode()


def test_it_shows_the_matrix_line_by_line(operator_client: Client, mine: TemplateVersion) -> None:
    page = page_of(operator_client, "/templates/mine/edit/")
    assert 'name="batch" value="1, 2"' in page
    assert 'name="model" value="llama-tiny, qwen3-moe-tiny"' in page
    assert 'placeholder="float32"' in page


def test_it_stores_the_changed_matrix_as_a_new_version(
    operator_client: Client, mine: TemplateVersion
) -> None:
    sent = matrix(batch="1,2, 4", dtype="bfloat16", profile="shapes+flops", warmup_max="9")
    response = operator_client.post("/templates/mine/edit/", sent)
    assert response.headers["Location"] == "/templates/mine/"
    stored = templates.matrix_of(newest())
    assert stored.axes == {"model": ["llama-tiny", "qwen3-moe-tiny"], "batch": [1, 2, 4]}
    assert stored.fields["profile"] == ["shapes", "flops"]
    assert (newest().number, newest().runs) == (2, 6)
    mine.refresh_from_db()
    assert mine.text == TEXT


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"batch": "1, zero"}, "batch", "zero is not possible. allowed: 1 to 4,096"),
        ({"batch": "1, 1"}, "batch", "stands there twice"),
        ({"dtype": "int3"}, "dtype", "allowed: float32, bfloat16, float16"),
        ({"compile_fallback": "maybe"}, "compile_fallback", "allowed: true or false"),
        ({"profile": "everything"}, "profile", "allowed: a list of shapes"),
        ({"peak_flops": "-1"}, "peak_flops", "allowed: a positive number"),
        ({"model": "gpt-9"}, "model", "known models"),
        ({"model": ""}, "model", "model is missing"),
        ({"prompt_tokens": "600"}, "prompt_tokens", "takes up to 512 tokens"),
        ({"compile": "fast"}, "compile", "backend:NAME"),
        ({"title": ""}, "title", "required"),
    ],
)
def test_it_ties_an_error_of_the_matrix_to_its_line(
    changes: dict[str, object],
    field: str,
    said: str,
    operator_client: Client,
    mine: TemplateVersion,
) -> None:
    response = operator_client.post("/templates/mine/edit/", matrix(**changes))
    assert response.status_code == 422
    assert said in " ".join(response.context["matrix"].errors[field])
    assert newest().number == 1


def test_it_stores_the_changed_text(operator_client: Client, mine: TemplateVersion) -> None:
    text = TEXT.replace("[1, 2]", "[1, 8]").replace("\n", "\r\n")
    response = operator_client.post("/templates/mine/edit/", {"text": text, "base": 1})
    assert response.status_code == 302
    assert newest().text == TEXT.replace("[1, 2]", "[1, 8]").replace("version = 1", "version = 2")


@pytest.mark.parametrize(
    ("old", "new", "base", "said"),
    [
        ("batch = [1, 2]", "batch = [0]", 1, "batch is 0. allowed: 1 to 4,096"),
        ("", "", 1, "says the same as version 1"),
        ("[1, 2]", "[1]", 7, "was saved meanwhile"),
        ('"mine"', '"quick"', 1, "name is"),
    ],
)
def test_it_keeps_a_text_that_cannot_be_stored(
    old: str, new: str, base: int, said: str, operator_client: Client, mine: TemplateVersion
) -> None:
    sent = {"text": TEXT.replace(old, new, 1), "base": base}
    response = operator_client.post("/templates/mine/edit/", sent)
    assert response.status_code == 422
    page = response.content.decode()
    assert said in page
    assert "<details open>" in page
    assert newest().number == 1
