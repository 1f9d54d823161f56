"""`manage.py queue_template`."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from dashboard.models import Audit, Run, RunGroup
from tests.factories import make_platform

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("queue_template", *arguments, stdout=out)
    return out.getvalue()


def test_it_queues_every_run_as_one_group() -> None:
    line = said("nightly", "--seed", "7")
    group = RunGroup.objects.get()
    assert (group.seed, group.runs.count(), group.platform.slug) == (7, 6, "cpu")
    assert line == (
        f"Queued 6 runs (time unknown: no history) on cpu as group {group.pk}, order of seed 7.\n"
    )
    assert {note.actor for note in Audit.objects.filter(action="run.create")} == {"system"}


def test_it_only_says_what_it_would_queue() -> None:
    make_platform("gpu", device="cuda:0")
    line = said("quick", "--platform", "gpu", "--model", "llama-small", "--dry-run")
    assert line == "Would queue 3 runs (time unknown: no history) on gpu.\n"
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "There is no template 'none'. see the page Templates"),
        (["quick", "--model", "gpt-9"], "known models"),
    ],
)
def test_it_names_what_cannot_be_queued(arguments: list[str], words: str) -> None:
    error = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("queue_template", *arguments, stderr=error)
    assert ended.value.code == 65
    assert words in error.getvalue()
