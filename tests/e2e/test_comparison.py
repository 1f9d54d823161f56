"""Two commits to a verdict in a browser: register, compare, watch the pairs, share the view."""

from __future__ import annotations

import gzip
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.people import come_in, new_run
from tests.e2e.system import System
from tests.profiler.analysis.layered import Layered
from tests.workers.repository import Upstream

pytestmark = pytest.mark.e2e

PAIR_BENCH = Path(__file__).resolve().parents[1] / "workers" / "pair_bench.py"
PAIRS_LIMIT_MS = 300_000


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    """A repository whose second commit is ten per cent faster."""
    made = Upstream.make(tmp_path_factory.mktemp("upstream") / "models")
    made.commit("the old way", **{"value.txt": "1000000"})
    made.commit("fuse <i>softmax</i>", **{"value.txt": "900000"})
    return made


@pytest.fixture(scope="module")
def measuring(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The product with a benchmark that takes no time: what is tried here is all around it."""
    folder = tmp_path_factory.mktemp("traces")
    fused = Layered(operators=("aten::linear>aten::addmm", "my::fused"))
    for side, made in (("baseline", Layered()), ("candidate", fused)):
        trace = made.build().write(folder / f"{side}.json")
        (folder / f"{side}.gz").write_bytes(gzip.compress(trace.read_bytes()))
    command = shlex.join([sys.executable, "-B", str(PAIR_BENCH), "{spec}", "{out}"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BENCHMARK_COMMAND", command)
        patched.setenv("FAKE_BENCH_TRACES", str(folder))
        system = System(tmp_path_factory.mktemp("var"))
    system.wait_until_ready()
    yield system
    assert system.stop() == 0, "\n".join(system.lines[-40:])


@pytest.fixture
def admin(browser: Browser, measuring: System) -> Iterator[Page]:
    """A page of the first admin."""
    context = browser.new_context(base_url=measuring.base)
    page = context.new_page()
    come_in(page, measuring.base, measuring.link)
    yield page
    context.close()


def register(page: Page, upstream: Upstream) -> None:
    """Register it and wait on its page until its commits are there."""
    page.goto("/repositories/new/")
    page.get_by_label("Name").fill("models")
    page.get_by_label("Address").fill(str(upstream.folder))
    page.get_by_role("button", name="Register").click()
    expect(page.locator("#repository-status")).to_contain_text("Ready", timeout=60_000)
    expect(page.locator("#repository-body")).to_contain_text("fuse <i>softmax</i>")


def test_it_takes_two_commits_to_a_verdict_and_a_link(
    admin: Page, browser: Browser, measuring: System, upstream: Upstream
) -> None:
    register(admin, upstream)
    run = new_run(admin, scenarios=["prefill"]).strip("/").split("/")[-1]
    base = upstream.git("rev-parse", "main~1")
    admin.goto(f"/compare/new/?repository=models&baseline={base}&candidate=main&run={run}")
    admin.get_by_role("button", name="Compare").click()
    live = admin.locator("#comparison-live")
    expect(live).to_contain_text(re.compile(r"pair [1-9]\d* of 10"), timeout=PAIRS_LIMIT_MS)
    expect(live.locator("p b").first).to_contain_text("faster, −10", timeout=PAIRS_LIMIT_MS)
    admin.get_by_role("link", name="What changed").click()
    expect(admin.get_by_role("heading", name="Diff flame graph")).to_be_visible()
    admin.locator("#flame").get_by_role("link", name="baseline", exact=True).click()
    expect(admin.locator("#flame")).to_contain_text("width is the baseline")
    shared = browser.new_context(storage_state=admin.context.storage_state()).new_page()
    shared.goto(admin.url)
    expect(shared.locator("#flame")).to_contain_text("width is the baseline")
    assert shared.locator("#flame rect").count() == admin.locator("#flame rect").count() > 0
    shared.context.close()
