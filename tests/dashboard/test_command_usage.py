"""Wrong arguments of `manage.py` never look like a verdict."""

from __future__ import annotations

import io

import pytest
from django.core.management import load_command_class

from profiler.errors import ExitCode


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("compare", "--nope"),
        ("bisect", "--nope"),
        ("seed_demo", "--seed=x"),
        ("prune", "--nope"),
        ("fetch_assets", "--nope"),
    ],
)
def test_it_leaves_with_the_code_for_usage_and_one_line(name: str, option: str) -> None:
    command = load_command_class("dashboard", name)
    said = io.StringIO()
    command.stderr._out = said  # type: ignore[attr-defined]
    with pytest.raises(SystemExit) as ended:
        command.run_from_argv(["manage.py", name, option])
    assert ended.value.code == ExitCode.USAGE
    assert len(said.getvalue().splitlines()) == 1
    assert f"manage.py {name} --help" in said.getvalue()
