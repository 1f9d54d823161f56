"""From signing in to a flame graph, in a real browser against real processes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.ranks import recorded
from tests.e2e.people import RUN_LIMIT_MS, new_run, run_ends
from tests.e2e.system import ROOT, System

pytestmark = pytest.mark.e2e

SHARED = ROOT.parent / "shared" / "traces" / "qwen-h100.json.gz"
RECORD_STATES = """() => {
  window.seen = [];
  const look = () => {
    const text = document.querySelector("#run-status .chip")?.textContent.trim();
    if (text && window.seen.at(-1) !== text) window.seen.push(text);
  };
  const changes = {subtree: true, childList: true, characterData: true};
  new MutationObserver(look).observe(document.body, changes);
  look();
}"""


def drawn(page: Page) -> list[str]:
    """The operators that the flame graph viewer lists for the profile it drew."""
    page.locator("#profile").scroll_into_view_if_needed()
    viewer = page.frame_locator("iframe.viewer")
    viewer.get_by_text("Sandwich").click(timeout=60_000)
    # Rows out of sight are not in the page: the viewer's own search brings operators up.
    page.keyboard.press("Control+f")
    viewer.locator("input:visible").fill("aten::")
    cells = viewer.get_by_role("cell").filter(has_text="aten::")
    expect(cells.first).to_be_visible(timeout=60_000)
    return cells.all_inner_texts()


def test_it_lets_nobody_in_twice_by_one_link(
    browser: Browser, system: System, finished: str
) -> None:
    context = browser.new_context(base_url=system.base)
    page = context.new_page()
    page.goto(system.link)
    button = page.get_by_role("button", name="Sign in")
    if button.count():
        button.click()
    page.goto("/runs/")
    assert "/sign-in/" in page.url
    context.close()


def test_it_watches_a_run_to_its_end_without_reloading(page: Page) -> None:
    new_run(page, scenarios=["prefill", "training"])
    # One worker takes one after the other: the later one is still waiting.
    page.get_by_role("row").filter(has_text="training").first.get_by_role("link").first.click()
    page.wait_for_url(re.compile(r"/runs/\d+/$"))
    page.evaluate(RECORD_STATES)
    page.locator("#find").fill("half a thought")
    expect(page.locator("#run-status")).to_contain_text("step", timeout=RUN_LIMIT_MS)
    run_ends(page, "Succeeded")
    assert page.evaluate("window.seen") == ["Queued", "Running", "Succeeded"]
    expect(page.locator(".metrics .metric").first).to_be_visible()
    expect(page.locator(".answer").first).to_contain_text(
        "A training step over 1 × 16 tokens takes"
    )
    expect(page.locator("#run-actions")).to_contain_text("Run again")
    expect(page.locator("figure.chart svg.main-svg").first).to_be_visible()
    assert page.locator("#find").input_value() == "half a thought"
    assert "Succeeded" in page.title()


def test_it_draws_the_operators_of_a_run_as_a_flame_graph(page: Page, finished: str) -> None:
    page.goto(finished)
    page.locator("#operators [name=op]").fill("aten::")
    page.locator("#operators [name=op]").press("Enter")
    expect(page.locator("#operators caption")).to_contain_text("aten::")
    assert page.locator("#operators tbody th").first.inner_text() in drawn(page)


def test_it_explores_an_uploaded_trace_like_one_of_a_run(
    page: Page, finished: str, tmp_path: Path
) -> None:
    file = SHARED if SHARED.is_file() else _recorded(page, finished, tmp_path)
    page.goto("/traces/")
    page.get_by_label("Trace file").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url(re.compile(r"/traces/\d+/$"))
    expect(page.locator("#operators")).to_be_visible(timeout=RUN_LIMIT_MS)
    expect(page.locator("#trace-status")).to_contain_text("Ready")
    assert drawn(page)
    if file == SHARED:
        expect(page.locator("#kernels tbody tr").first).to_be_visible()
        expect(page.locator("svg.stack-bar").first).to_be_visible()


def _recorded(page: Page, finished: str, folder: Path) -> Path:
    """The trace that a run recorded, saved from its files."""
    page.goto(finished)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="trace.json.gz").click()
    file = folder / "trace.json.gz"
    waiting.value.save_as(file)
    return file


def test_it_cancels_a_running_run(page: Page) -> None:
    new_run(page, model="llama-small", scenarios=["decode"], iterations=10_000, output_tokens=64)
    run_ends(page, "Running")
    page.get_by_role("link", name="Cancel run").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Keep it running").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Cancel run").click()
    dialog.get_by_role("button", name="Cancel the run").click()
    expect(page.locator(".note")).to_contain_text("Cancel")
    run_ends(page, "Cancelled")
    expect(page.locator(".answer.bad")).to_contain_text("Cancelled")


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(2)>',
    "</script><script>alert(3)</script>",
    "\u202etxt.<b>bold</b>",
    "=cmd|' /C calc'!A0",
)


def hostile_trace(folder: Path) -> Path:
    """A trace whose every name tries to be markup."""
    calls = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 * at, "dur": 90}
        for at, name in enumerate(HOSTILE)
    ]
    file = folder / "<img src=x onerror=alert(4)>.json"
    file.write_text(json.dumps({"traceEvents": calls}))
    return file


def test_it_shows_hostile_names_as_text(page: Page, tmp_path: Path) -> None:
    foreign: list[str] = []
    page.on("request", lambda r: foreign.append(r.url) if "127.0.0.1" not in r.url else None)
    page.goto("/traces/upload/")
    page.get_by_label("Trace file").set_input_files(hostile_trace(tmp_path))
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("#operators")).to_be_visible(timeout=RUN_LIMIT_MS)
    for name in HOSTILE[:3]:
        expect(page.get_by_role("rowheader", name=name, exact=True)).to_be_visible()
    page.locator("#profile").scroll_into_view_if_needed()
    viewer = page.frame_locator("iframe.viewer")
    viewer.get_by_text("Sandwich").click(timeout=60_000)
    expect(viewer.get_by_role("cell").filter(has_text=HOSTILE[0])).to_be_visible(timeout=60_000)
    assert page.locator("main img, main svg[onload], main script:not([type])").count() == 0
    assert not [url for url in foreign if not url.startswith(("data:", "blob:"))]


def test_it_says_what_is_wrong_with_an_upload(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"traceEvents": [{"ph": "X", "name": ')
    page.goto("/traces/upload/")
    page.get_by_label("Trace file").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url(re.compile(r"/traces/\d+/$"))
    expect(page.locator("#trace-panels .answer.bad")).to_contain_text(
        "could not be read", timeout=RUN_LIMIT_MS
    )


def test_it_names_the_straggler_of_ranks_uploaded_together(page: Page, tmp_path: Path) -> None:
    files = [tmp_path / f"job-rank{rank}.json" for rank in range(2)]
    for rank, file in enumerate(files):
        file.write_bytes(recorded(late_us=200 * rank))
    page.goto("/traces/upload/")
    page.locator("[name=file]").set_input_files(files)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url(re.compile(r"/traces/sets/\d+/$"))
    verdict = page.locator("#ranks .verdict")
    expect(verdict).to_contain_text("Rank 1 arrived last", timeout=RUN_LIMIT_MS)
    expect(page.locator("#ranks tbody tr")).to_have_count(2)
