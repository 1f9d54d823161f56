"""From a push to a mended slow-down: watched, found, confirmed, told, tuned, fixed, reported.

The repository, git, web, broker, keeper, worker and browser are real, and nobody
asks for a measurement of the branch. What a commit takes is read from its tree
by a benchmark that measures nothing: whether a busy machine can tell ten per
cent is the business of `make bench-verdicts-real`.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.people import come_in
from tests.e2e.system import System, until
from tests.profiler.analysis.layered import STEP_US, Layered
from tests.workers.repository import Upstream

pytestmark = pytest.mark.e2e

PAIR_BENCH = Path(__file__).resolve().parents[1] / "workers" / "pair_bench.py"
LIMIT_S = 300.0
"""Upper bound of every wait; reached only when something is broken."""

PAUSE_MS = 1_000.0
PAGE_MS = 30_000.0
"""Upper bound of one page, on a machine that other tests keep busy."""

TIME_SCALE = 10
"""A watched repository is fetched every twelve seconds."""

NS, SLOW_NS, OPERATOR = 8_000_000, 8_800_000, "aten::silu"
TEMPLATE = """name = "watch"
version = 1
title = "Watched"

[fields]
model = "llama-tiny"
scenario = "prefill"
profiled_steps = 0
"""


@dataclass
class Team:
    """A working copy, and the bare repository that its commits are pushed to."""

    copy: Upstream
    origin: Path

    @classmethod
    def make(cls, folder: Path) -> Team:
        copy = Upstream.make(folder / "copy")
        copy.git("init", "--quiet", "--bare", "--initial-branch=main", str(folder / "models.git"))
        return cls(copy=copy, origin=folder / "models.git")

    def commit(self, subject: str, *, slow: bool = False) -> str:
        """A commit whose model takes a tenth longer if it is `slow`, all of it in one operator."""
        more_us = STEP_US / 20 if slow else 0.0  # in each of two layers
        made = Layered(device_us={OPERATOR: 20.0 + more_us}, step_us=STEP_US + 2 * more_us)
        trace = made.build().write(self.origin.parent / "trace.json").read_text()
        value = str(SLOW_NS if slow else NS)
        files = {"value.txt": value, "trace.json": trace, "subject.txt": subject}
        return self.copy.commit(subject, **files)

    def push(self) -> None:
        self.copy.git("push", "--quiet", str(self.origin), "main")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """A repository with two commits."""
    made = Team.make(tmp_path_factory.mktemp("team"))
    made.commit("the model")
    made.commit("note 1")
    made.push()
    return made


@pytest.fixture(scope="module")
def watching(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The product with a benchmark that takes no time."""
    command = shlex.join([sys.executable, "-B", str(PAIR_BENCH), "{spec}", "{out}"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BENCHMARK_COMMAND", command)
        patched.setenv("CONFIRM_CHANGES", "1")
        system = System(tmp_path_factory.mktemp("var"), time_scale=TIME_SCALE)
    system.wait_until_ready()
    yield system
    assert system.stop() == 0, "\n".join(system.lines[-40:])


@pytest.fixture
def admin(browser: Browser, watching: System) -> Iterator[Page]:
    """A page of the first admin."""
    context = browser.new_context(base_url=watching.base)
    page = context.new_page()
    come_in(page, watching.base, watching.link)
    yield page
    context.close()


def fresh(found: Locator) -> Locator:
    """The same on a page that was loaded anew, now and then: measuring needs the processor."""
    found.page.wait_for_timeout(PAUSE_MS)
    found.page.reload()
    return found


def comes(found: Locator, said: str) -> None:
    """Load the page again and again until it holds this."""
    until(said, lambda: fresh(found).count() > 0, LIMIT_S)


def watch(page: Page, team: Team) -> None:
    """Register the repository, store a template and have the branch watched."""
    page.goto("/repositories/new/")
    page.get_by_label("Name").fill("models")
    page.get_by_label("Address").fill(str(team.origin))
    page.get_by_role("button", name="Register").click()
    page.goto("/templates/new/")
    page.locator("[name=text]").fill(TEMPLATE)
    page.get_by_role("button", name="Store").click()
    page.goto("/automation/new/?kind=commits&template=watch&repository=models&branch=main")
    page.get_by_label("Name").fill("main")
    page.get_by_role("button", name="Make it").click()
    page.wait_for_url("**/automation/1/")


def measured(page: Page, count: int) -> None:
    """Wait on the page of the schedule until that many commits are measured."""
    page.goto("/automation/1/")
    rows = page.locator("section[aria-labelledby=fired-title] tbody tr")
    done = rows.filter(has_text="1 of 1")
    until(f"{count} measured commits", lambda: fresh(done).count() >= count, LIMIT_S)
    assert rows.count() == count
    assert "succeeded)" not in page.inner_text("main")


def the_change(page: Page, slow: str) -> str:
    """The address of the one change in the inbox, once pairs have confirmed it."""
    page.goto("/changes/")
    rows = page.get_by_role("region", name="Table of changes").locator("tbody tr")
    comes(rows.filter(has_text="confirmed"), "a confirmed change")
    expect(rows).to_have_count(1)
    for text in (slow[:10], "another activation", OPERATOR, "slower"):
        expect(rows).to_contain_text(text)
    expect(rows).to_contain_text(re.compile(r"\+(9\.[89]|10\.[012]) %"))
    expect(rows).to_contain_text(re.compile(r"(7\.99|8\.0[01]) ms\s+8\.(79|8[01]) ms"))
    rows.get_by_role("link").first.click()
    return page.url


def open_iteration(page: Page) -> None:
    """From the page of the change to an iteration of a new tuning."""
    page.get_by_role("link", name="Open tuning iteration").click()
    page.locator("[name=target][value=value]").check()
    page.locator("[name=value]").fill("7 ms")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_label("Hypothesis")).to_have_value(
        re.compile(f"mostly {OPERATOR}"), timeout=PAGE_MS
    )
    expect(page.get_by_label("Predicted gain")).to_have_value(re.compile(r"^(8\.9|9\.[0-2])"))
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Iteration 1", timeout=PAGE_MS)


def decide(page: Page, mend: str) -> None:
    """Measure the commit that mends it against the slow one, and keep it."""
    page.get_by_label("Commit that tries it").fill(mend)
    page.get_by_role("button", name="Measure in pairs").click()
    comes(page.get_by_role("button", name="Decide for good"), "the end of the pairs")
    expect(page.locator("section.answer")).to_contain_text(re.compile(r"faster.*−(8\.9|9\.[0-2])"))
    page.locator("[name=decision][value=keep]").check()
    page.get_by_label("Reason").fill("the old activation is back")
    page.get_by_label("Kept all the same because").fill("the answers were compared by hand")
    page.get_by_role("button", name="Decide for good").click()
    expect(page.locator("section.answer")).to_contain_text("1 of 1 tried kept", timeout=PAGE_MS)


def shown(page: Page, mend: str) -> None:
    """The ladder with its chart and table, and the report that is sent away."""
    page.goto("/tuning/1/")
    expect(page.locator("#ladder .main-svg").first).to_be_visible(timeout=PAGE_MS)
    page.get_by_text("The ladder as a table").click()
    rung = page.locator("#ladder tbody tr").filter(has_text="Iteration 1")
    expect(rung).to_contain_text("1.10 ×")
    expect(page.locator("#tried")).to_contain_text("mends change 1")
    with page.expect_download() as got:
        page.get_by_role("link", name="Report (HTML)").click()
    report = Path(got.value.path()).read_text()
    markdown = page.request.get("/tuning/1/report.md").text()
    for text in (report, markdown):
        assert "the old activation is back" in text and mend[:10] in text
        assert re.search(r"from 8\.\d+ ms at Day-0 to \d\.\d+ ms: 1\.10 × as fast", text), text


def told(page: Page) -> list[str]:
    """The kinds of all announcements, the newest first."""
    page.goto("/announcements/")
    return [one.lower() for one in page.locator(".inbox .chip").all_inner_texts()]


def test_a_slow_commit_is_found_told_and_mended(admin: Page, team: Team) -> None:
    watch(admin, team)
    measured(admin, 2)
    for number in (2, 3):
        team.commit(f"note {number}")
    team.push()
    measured(admin, 4)

    slow = team.commit("another activation", slow=True)
    for number in (4, 5):
        team.commit(f"note {number}", slow=True)
    team.push()
    measured(admin, 7)
    change = the_change(admin, slow)
    assert told(admin) == ["slower"]

    admin.goto(change)
    open_iteration(admin)
    iteration = admin.url
    mend = team.commit("back to the old activation")
    team.push()
    measured(admin, 8)
    admin.goto(iteration)
    decide(admin, mend)
    admin.goto(change)
    expect(admin.locator("section.answer")).to_contain_text(f"Fixed by {mend[:10]}")
    assert told(admin) == ["fixed", "slower"]
    shown(admin, mend)

    # The history finds the way back by itself, which is no news.
    for number in (6, 7):
        team.commit(f"note {number}")
    team.push()
    measured(admin, 10)
    admin.goto("/changes/?state=confirmed")
    comes(admin.locator("tbody tr").filter(has_text=mend[:10]), "the confirmed way back")
    assert told(admin) == ["fixed", "slower"]
