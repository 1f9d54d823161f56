"""New runs with models from elsewhere, at commits, and with every field of a specification."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard.forms.runs import new_nonce
from dashboard.models import Commit, Run, RunState
from profiler import spec as specs
from profiler.types import RunSpec
from tests.dashboard.trigger_values import Values, values
from tests.factories import make_platform, make_run, make_spec
from tests.sources import make_commit, make_repository


@pytest.fixture(autouse=True)
def cpu(db: None) -> None:
    make_platform("cpu")


CONFIG = '{"model_type": "llama", "num_hidden_layers": 4, "max_position_embeddings": 64}'


def own(source: str, **changes: object) -> Values:
    return values(source=source, label="mine-1", scenarios=["prefill"], **changes)


def only_spec() -> dict[str, object]:
    spec: dict[str, object] = Run.objects.get().spec
    return spec


def test_it_runs_a_pasted_config_cut_to_some_layers(operator_client: Client) -> None:
    response = operator_client.post("/runs/new/", own("config", config=CONFIG, layers=2))
    assert response.status_code == 302
    spec = only_spec()
    assert (spec["model"], spec["layers"]) == ("mine-1", 2)
    assert spec["config"] == json.loads(CONFIG)
    row = Run.objects.get().workload.model
    assert (row.name, row.title, row.architecture) == ("mine-1", "mine-1 (config)", "llama")


def test_it_prefers_the_uploaded_config(operator_client: Client) -> None:
    file = SimpleUploadedFile("config.json", CONFIG.encode())
    operator_client.post("/runs/new/", own("config", config="{}", config_file=file))
    assert only_spec()["config"] == json.loads(CONFIG)


def test_it_runs_a_checkpoint_that_lies_with_the_worker(operator_client: Client) -> None:
    sent = own("checkpoint", checkpoint="/data/llama")
    assert operator_client.post("/runs/new/", sent).status_code == 302
    assert only_spec()["checkpoint"] == "/data/llama"
    assert only_spec()["config"] is None


@pytest.fixture
def head(db: None) -> Commit:
    """The newest of two commits of a repository."""
    repository = make_repository("models")
    make_commit(repository)
    newest = make_commit(repository)
    repository.heads = {"refs/heads/main": newest.sha}
    repository.head_sha = newest.sha
    repository.save()
    return newest


@pytest.mark.parametrize("name", ["", "main", "HEAD"])
def test_it_runs_a_factory_at_a_commit(name: str, operator_client: Client, head: Commit) -> None:
    sent = own("factory", factory="models/own.py:build", repository="models", commit=name)
    response = operator_client.post("/runs/new/", sent)
    assert operator_client.post("/runs/new/", sent).headers == response.headers
    run = Run.objects.get()
    assert (run.commit, run.spec["factory"]) == (head, "models/own.py:build")


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"repository": "moon"}, "repository", "No repository of that name"),
        ({"repository": "models", "commit": "gone"}, "commit", "is no commit that the allowed"),
        ({"repository": "models", "commit": "-x"}, "commit", "-x"),
        ({"commit": "main"}, "repository", "in which repository"),
        ({"source": "factory", "factory": "a.py:f"}, "repository", "holds the factory"),
    ],
)
def test_it_ties_an_error_of_the_commit_to_its_field(
    changes: Values, field: str, words: str, operator_client: Client, head: Commit
) -> None:
    response = operator_client.post("/runs/new/", values(label="mine-1", **changes))
    assert response.status_code == 422
    assert words in " ".join(response.context["form"].errors[field])
    assert not Run.objects.exists()


def test_it_starts_from_the_commit_of_an_earlier_run(operator_client: Client, head: Commit) -> None:
    run = make_run(commit=head)
    form = operator_client.get(f"/runs/new/?like={run.pk}").context["form"]
    assert (form["repository"].value(), form["commit"].value()) == ("models", head.sha)


def test_it_repeats_a_run_at_its_commit(operator_client: Client, head: Commit) -> None:
    run = make_run(RunState.FAILED, commit=head)
    operator_client.post(f"/runs/{run.pk}/again/", {"nonce": new_nonce()})
    assert Run.objects.get(rerun_of=run).commit == head


def test_it_leaves_out_what_was_typed_for_another_source(operator_client: Client) -> None:
    sent = values(config=CONFIG, checkpoint="/x", factory="y", scenarios=["prefill"])
    operator_client.post("/runs/new/", sent)
    spec = only_spec()
    assert [spec[name] for name in ("config", "checkpoint", "factory")] == [None] * 3


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"config": ""}, "config", "Paste a config.json, or choose the file"),
        ({"config": "{"}, "config", "This is no JSON object"),
        ({"config": "[1]"}, "config", "This is no JSON object"),
        ({"config": "{}"}, "config", "config has no model_type"),
        ({"config": CONFIG, "layers": 9}, "layers", "mine-1 has 4 layers"),
        ({"config": CONFIG, "prompt_tokens": 99}, "prompt_tokens", "up to 64 tokens"),
        ({"config": CONFIG, "label": ""}, "label", "Give the model a name."),
        ({"config": CONFIG, "label": "a b"}, "label", "is no model name"),
        ({"config": CONFIG, "label": "llama-tiny"}, "label", "is a built-in model"),
        ({"source": "checkpoint"}, "checkpoint", "Give the checkpoint"),
        ({"source": "checkpoint", "checkpoint": "here"}, "checkpoint", "give a full path"),
        ({"source": "factory", "factory": "../x.py:f"}, "factory", "is no path/file.py:function"),
        ({"source": "factory", "factory": "x.py:f", "layers": 1}, "layers", "cut the model in its"),
        ({"source": "hub"}, "source", "valid choice"),
        ({"source": "builtin", "model": ""}, "model", "Choose a model."),
    ],
)
def test_it_ties_an_error_of_the_model_to_its_field(
    changes: Values, field: str, words: str, operator_client: Client, head: Commit
) -> None:
    sent = own("config", repository="models")
    response = operator_client.post("/runs/new/", {**sent, **changes})
    assert response.status_code == 422
    assert words in " ".join(response.context["form"].errors[field])
    assert not Run.objects.exists()


def test_it_refuses_a_config_file_that_is_too_large(operator_client: Client) -> None:
    file = SimpleUploadedFile("config.json", b" " * (513 << 10))
    response = operator_client.post("/runs/new/", own("config", config_file=file))
    assert "larger than 512 KiB" in response.content.decode()


ADVANCED: Values = {
    "attention": "eager",
    "compile": "backend:vendor",
    "compile_fallback": "on",
    "profile": ["shapes", "flops", "stacks"],
    "warmup_max": 9,
    "seed": 5,
    "threads": 2,
    "peak_flops": "1e12",
    "peak_bandwidth": "2e11",
}


def test_it_takes_every_field_of_a_run(operator_client: Client) -> None:
    operator_client.post("/runs/new/", values(scenarios=["prefill"], **ADVANCED))
    spec = only_spec()
    assert spec["profile"] == ["shapes", "flops", "stacks"]
    assert (spec["compile"], spec["compile_fallback"]) == ("backend:vendor", True)
    assert (spec["warmup_max"], spec["seed"], spec["threads"]) == (9, 5, 2)
    assert (spec["peak_flops"], spec["peak_bandwidth"]) == (1e12, 2e11)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"attention": "fast"}, "attention", "Allowed: auto, sdpa, eager"),
        ({"compile": "fast"}, "compile", "backend:NAME"),
        ({"profile": ["all"]}, "profile", "Allowed: a list of shapes"),
        ({"seed": -1}, "seed", "Allowed: 0 to 2,147,483,647"),
        ({"threads": "many"}, "threads", "Allowed: 1 to 1,024"),
        ({"warmup_max": 0}, "warmup_max", "Allowed: 1 to 10,000"),
        ({"warmup": 5, "warmup_max": 2}, "warmup_max", "at least warmup, 5"),
        ({"peak_flops": "-1"}, "peak_flops", "Allowed: a positive number"),
        ({"ranks": 2}, "ranks", "parallel"),
        ({"routing": "uniform"}, "routing", "has no experts"),
        ({"layers": 7}, "layers", "has 2 layers"),
    ],
)
def test_it_opens_the_fold_on_a_wrong_field(
    changes: Values, field: str, words: str, operator_client: Client
) -> None:
    response = operator_client.post("/runs/new/", values(scenarios=["prefill"], **changes))
    assert response.status_code == 422
    assert words in " ".join(response.context["form"].errors[field])
    assert '<details class="advanced" open>' in response.content.decode()


def test_it_keeps_the_fold_shut_at_the_defaults(operator_client: Client) -> None:
    page = operator_client.get("/runs/new/").content.decode()
    assert '<details class="advanced">' in page


@pytest.mark.parametrize(
    "own_model",
    [
        {},
        {"model": "mine", "config": json.loads(CONFIG), "layers": 2},
        {"model": "mine", "checkpoint": "/data/llama"},
        {"model": "mine", "factory": "models/own.py:build"},
    ],
    ids=["builtin", "config", "checkpoint", "factory"],
)
def test_it_starts_from_every_field_of_an_earlier_run(
    own_model: Values, operator_client: Client, head: Commit
) -> None:
    rest: Values = {
        "scenario": "prefill",
        "prompt_tokens": 16,
        "attention": "eager",
        "compile": "backend:vendor",
        "compile_fallback": True,
        "profile": ("flops",),
        "warmup_max": 9,
        "seed": 5,
        "threads": 2,
        "peak_flops": 1e12,
    }
    run = make_run(spec=make_spec(**rest, **own_model), commit=head)
    form = operator_client.get(f"/runs/new/?like={run.pk}").context["form"]
    sent = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    response = operator_client.post("/runs/new/", {**sent, "nonce": new_nonce()})
    assert response.status_code == 302
    again = Run.objects.exclude(pk=run.pk).get()
    assert (again.spec_hash, again.commit) == (run.spec_hash, head)


def test_it_leaves_what_nobody_touched_at_the_defaults(operator_client: Client) -> None:
    form = operator_client.get("/runs/new/").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in shown.items() if value not in (None, False)}
    operator_client.post("/runs/new/", {**sent, "model": "llama-tiny"})
    spec = RunSpec(model="llama-tiny", scenario="decode")
    assert Run.objects.get().spec_hash == specs.spec_hash(spec)
