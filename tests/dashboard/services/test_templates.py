"""Templates: shipped ones, new versions, what they expand to, and queueing them."""

from __future__ import annotations

import dataclasses

import pytest

from dashboard.models import Audit, Run, RunGroup, Template, TemplateVersion
from dashboard.services import template_text, templates
from dashboard.services.runs import KeyReusedError
from dashboard.services.spec_fields import SpecField, sections, spec_fields
from dashboard.services.templates import StaleTemplateError, UnchangedTemplateError
from profiler.bench.templates import SHIPPED, Value
from profiler.errors import SpecError
from profiler.types import RunSpec
from tests.dashboard.services import scene

pytestmark = pytest.mark.django_db

TEXT = """\
# what we look at each morning
name = "mine"
version = 1
title = "Mine"

[fields]
scenario = "prefill"
prompt_tokens = 8

[axes]
model = ["llama-tiny", "qwen3-moe-tiny"]
batch = [1, 2]
"""


def saved(text: str = TEXT, *, base: int | None = None) -> TemplateVersion:
    return templates.save_template(text, scene.user(), base=base)


def queue(version: TemplateVersion, seed: int = 7, key: str = "k") -> list[Run]:
    specs = templates.runs_of(version)
    return templates.queue_template(
        version, specs, platform=scene.platform(), user=scene.user(), seed=seed, key=key
    )


def test_it_seeds_every_shipped_template_once() -> None:
    templates.ensure_shipped()
    rows = TemplateVersion.objects.filter(shipped=True)
    assert sorted(row.template.name for row in rows) == sorted(SHIPPED)
    assert {row.number for row in rows} == {1}


def test_it_stores_a_shipped_template_that_moved_on() -> None:
    old = template_text.write(dataclasses.replace(SHIPPED["quick"], fields={"batch": 2}))
    TemplateVersion.objects.filter(template__name="quick").update(text=old)
    templates.ensure_shipped()
    newest = templates.newest_version("quick")
    assert newest is not None and newest.number == 2
    assert templates.matrix_of(newest).fields == SHIPPED["quick"].fields


def test_it_keeps_the_change_of_a_person_over_the_shipped_one() -> None:
    changed = template_text.write(SHIPPED["quick"]).replace("iterations = 3", "iterations = 4")
    templates.save_template(changed, scene.user(), base=1)
    templates.ensure_shipped()
    newest = templates.newest_version("quick")
    assert newest is not None
    assert (newest.number, newest.shipped) == (2, False)


def test_it_keeps_every_version_as_it_was_saved() -> None:
    first = saved()
    second = saved(TEXT.replace("batch = [1, 2]", "batch = [1, 2, 4]"), base=1)
    first.refresh_from_db()
    assert [first.number, second.number] == [1, 2]
    assert first.text == TEXT
    assert second.text.startswith("# what we look at each morning")
    assert "version = 2\n" in second.text
    assert [first.runs, second.runs] == [4, 6]
    assert Audit.objects.filter(action="template.save").count() == 2


def test_it_refuses_a_change_of_a_version_that_is_not_the_newest() -> None:
    saved()
    saved(TEXT.replace("[1, 2]", "[1, 4]"), base=1)
    with pytest.raises(StaleTemplateError, match="Version 2 of mine was saved meanwhile"):
        saved(TEXT.replace("[1, 2]", "[1, 8]"), base=1)


def test_it_makes_no_version_of_a_change_of_words_alone() -> None:
    saved()
    with pytest.raises(UnchangedTemplateError, match="same as version 1"):
        saved(TEXT.replace("each morning", "each evening").replace("version = 1", "version = 9"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('scenario = "prefill"', 'scenario = "sleep"', "scenario is 'sleep'. allowed: prefill"),
        ("batch = [1, 2]", "batch = [1, 0]", "batch is 0. allowed: 1 to 4,096"),
        ("batch = [1, 2]", "batch = [1, true]", "batch is True. allowed: 1 to 4,096"),
        ("batch = [1, 2]", "batch = 1", "axes.batch is 1. write a list"),
        ("batch = [1, 2]", "batch = []", "axes.batch is []"),
        ("batch = [1, 2]", "bach = [1]", "axes.bach is no field of a run. allowed: model"),
        ("batch = [1, 2]", "device = ['cuda']", "axes.device is no field of a run"),
        ("batch = [1, 2]", "compile = ['fast']", "spec.compile is 'fast'. allowed: eager"),
        ("batch = [1, 2]", "batch = [1, 2", "no valid TOML"),
        ('name = "mine"', 'name = "My own"', "name is 'My own'. allowed: 1 to 40 small letters"),
        ("version = 1", 'version = "one"', "version is 'one'"),
        ('title = "Mine"', "", "title is ''"),
        ('scenario = "prefill"', "", "scenario is missing. give it under [fields] or [axes]"),
        ('"llama-tiny"', '"gpt-9"', "spec.model 'gpt-9' is unknown. known models: llama-small"),
        ("prompt_tokens = 8", "prompt_tokens = 600", "spec.prompt_tokens is 600. llama-tiny"),
        ("[fields]", "colour = 1\n[fields]", "colour is no part of a template"),
    ],
)
def test_it_names_what_is_wrong_in_one_line(old: str, new: str, said: str) -> None:
    with pytest.raises(SpecError) as error:
        saved(TEXT.replace(old, new))
    line = error.value.line()
    assert said in line
    assert "\n" not in line
    assert not Template.objects.filter(name="mine").exists()


def test_it_refuses_a_text_that_is_too_long() -> None:
    with pytest.raises(SpecError, match="longer than 64 KiB"):
        saved(TEXT + "#" * (64 << 10))


def test_it_limits_what_a_template_expands_to() -> None:
    many = TEXT.replace("batch = [1, 2]", f"batch = {list(range(1, 102))}")
    with pytest.raises(SpecError, match="expands to 202 runs"):
        saved(many)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_it_writes_what_it_reads(name: str) -> None:
    assert template_text.read(template_text.write(SHIPPED[name])) == SHIPPED[name]


def test_it_writes_hostile_and_nested_values_back() -> None:
    config: dict[str, object] = {
        "model_type": 'a"\\\n\x7f\u202e',
        "sizes": [1, 2.5],
        "rope": {"on": True},
    }
    fields: dict[str, Value] = {"config": config, "model": "own", "scenario": "prefill"}
    matrix = dataclasses.replace(SHIPPED["quick"], fields=fields, axes={"batch": [1]})
    assert template_text.read(template_text.write(matrix)) == matrix


def test_it_puts_other_models_and_the_device_of_the_platform_in() -> None:
    specs = templates.runs_of(saved(), models=["qwen3-moe-tiny"], device="cuda:0")
    assert {spec.model for spec in specs} == {"qwen3-moe-tiny"}
    assert [spec.batch for spec in specs] == [1, 2]
    assert {spec.device for spec in specs} == {"cuda:0"}


def test_it_refuses_another_name_in_an_edit() -> None:
    with pytest.raises(SpecError, match="name is 'mine'"):
        templates.save_template(TEXT, scene.user(), base=1, name="quick")


def test_it_queues_one_group_in_random_order_once() -> None:
    version = saved()
    made = queue(version)
    assert [run.pk for run in queue(version)] == [run.pk for run in made]
    group = RunGroup.objects.get()
    assert (group.version, group.seed, group.runs.count()) == (version, 7, 4)
    plain = templates.runs_of(version)
    order = [(run.spec["model"], run.spec["batch"]) for run in made]
    assert sorted(order) == sorted((spec.model, spec.batch) for spec in plain)
    assert order != [(spec.model, spec.batch) for spec in plain]


def test_it_refuses_a_key_that_came_with_another_order() -> None:
    version = saved()
    queue(version)
    with pytest.raises(KeyReusedError):
        queue(version, seed=8)


def test_it_knows_every_field_of_a_specification() -> None:
    names = {field.name for field in dataclasses.fields(RunSpec)}
    assert spec_fields().keys() == names - {"schema", "device"}


@pytest.mark.parametrize("field", spec_fields().values(), ids=lambda field: field.name)
def test_it_takes_the_default_of_every_field(field: SpecField) -> None:
    value = field.default
    plain = list(value) if isinstance(value, tuple) else value
    assert field.required or value is None or field.accepts(plain)
    assert not field.accepts(object())
    assert sum(field.name in names for _, names in sections()) == 1
