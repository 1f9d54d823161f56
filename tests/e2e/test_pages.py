"""Every page: accessible in both themes, whole at 1280 and 360 px, usable by keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect

from profiler import units
from tests.e2e.system import System

pytestmark = pytest.mark.e2e

PAGES = {
    "overview": "/",
    "models": "/models/",
    "model": "/models/llama-tiny/cpu/",
    "model-operators": "/models/llama-tiny/cpu/operators/",
    "model-annotate": "/models/llama-tiny/cpu/annotate/",
    "runs": "/runs/",
    "runs-none": "/runs/?q=nothing+like+this",
    "run": "{run}",
    "run-log": "{run}log/",
    "run-new": "/runs/new/",
    "templates": "/templates/",
    "template": "/templates/quick/",
    "template-new": "/templates/new/",
    "template-edit": "/templates/quick/edit/",
    "template-run": "/templates/quick/run/",
    "platforms": "/platforms/",
    "platform": "/platforms/cpu/",
    "platform-noise": "/platforms/cpu/noise/",
    "platform-calibrate": "/platforms/cpu/calibrate/",
    "traces": "/traces/",
    "trace": "{trace}",
    "flame": "{trace}flame/",
    "roofline": "{trace}panels/roofline/",
    "operator": "/operators/?name=aten::mm",
    "operators-all": "/operators/",
    "bisects": "/bisect/",
    "bisect-new": "/bisect/new/",
    "runs-beside": "/compare/runs/",
    "traces-beside": "/compare/traces/",
    "tunings": "/tuning/",
    "tuning-new": "/tuning/new/",
    "notes": "/notes/",
    "note-new": "/notes/new/?kind=operator&operator=aten::mm",
    "operators": "{trace}operators/",
    "modules": "{trace}panels/modules/",
    "quality": "{trace}panels/quality/",
    "trace-upload": "/traces/upload/",
    "status": "/status/",
    "glossary": "/glossary/",
    "account": "/account/",
    "users": "/users/",
    "user-new": "/users/new/",
}
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# The viewer is a program of its own, drawn on a canvas; the operator table is its readable twin.
SCOPE = {"exclude": [["iframe"]]}


@pytest.fixture
def addresses(page: Page, finished: str) -> dict[str, str]:
    page.goto(finished)
    link = page.get_by_role("link", name=re.compile(r"^Trace \d+ on a page of its own"))
    trace = link.get_attribute("href") or ""
    return {name: path.format(run=finished, trace=trace) for name, path in PAGES.items()}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_breaks_no_rule_of_accessibility(
    scheme: Scheme, addresses: dict[str, str], open_context: Callable[..., BrowserContext]
) -> None:
    page = open_context(color_scheme=scheme).new_page()
    broken: dict[str, str] = {}
    for name, address in addresses.items():
        page.goto(address)
        found = Axe().run(page, context=SCOPE)
        if found.violations_count:
            broken[name] = found.generate_report()
    assert not broken, "\n".join(f"{name}: {report}" for name, report in broken.items())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_the_screen(
    width: int,
    scheme: Scheme,
    addresses: dict[str, str],
    open_context: Callable[..., BrowserContext],
    shots: Path,
) -> None:
    context = open_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    wide: dict[str, int] = {}
    for name, address in addresses.items():
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.screenshot(path=shots / f"{name}-{scheme}-{width}.png", full_page=True)
        over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if over > 0:
            wide[name] = over
    assert not wide


def test_it_has_one_heading_and_a_title_on_every_page(
    page: Page, addresses: dict[str, str]
) -> None:
    for name, address in addresses.items():
        page.goto(address)
        assert page.locator("h1").count() == 1, name
        assert page.title().endswith("· Daybreak"), name


def test_it_walks_the_list_by_keyboard(page: Page, finished: str) -> None:
    page.goto("/runs/")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-rows] input.pick").first).to_be_checked()
    focused = page.evaluate("document.activeElement.getAttribute('href')")
    assert re.fullmatch(r"/runs/\d+/", focused)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{focused}")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/traces/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "find"


def test_it_sorts_operators_in_place_and_keeps_the_address(page: Page, finished: str) -> None:
    page.goto(finished)
    page.evaluate("window.marked = true")
    page.locator("#operators").get_by_role("link", name="Calls").click()
    expect(page.locator("#operators th[aria-sort]")).to_contain_text("Calls")
    assert page.evaluate("window.marked") is True
    assert "sort=-calls" in page.url
    first = page.locator("#operators tbody th").first.inner_text()
    page.reload()
    assert page.locator("#operators tbody th").first.inner_text() == first


def test_it_loads_every_panel_by_itself(page: Page, finished: str) -> None:
    page.goto(finished)
    expect(page.locator("#quality dl")).to_contain_text("events read")
    expect(page.locator("#modules caption")).to_contain_text("By path in the model")
    expect(page.locator(".later")).to_have_count(0)


def test_it_keeps_the_order_of_one_table_when_another_is_sorted(page: Page, finished: str) -> None:
    page.goto(finished)
    page.locator("#modules").get_by_role("link", name="Host total").click()
    expect(page.locator("#modules th[aria-sort]")).to_contain_text("Host total")
    page.locator("#operators").get_by_role("link", name="Calls").click()
    expect(page.locator("#operators th[aria-sort]")).to_contain_text("Calls")
    assert "modules-sort=-host_total" in page.url
    page.reload()
    expect(page.locator("#modules th[aria-sort]")).to_contain_text("Host total")
    expect(page.locator("#operators th[aria-sort]")).to_contain_text("Calls")


def test_it_says_when_one_panel_cannot_be_loaded(
    finished: str, browser: Browser, system: System, signed_in: StorageState
) -> None:
    # A context without the guard: the failing request is what is wanted here.
    page = browser.new_context(base_url=system.base, storage_state=signed_in).new_page()
    page.route("**/panels/modules/*", lambda route: route.fulfill(status=503, body="busy"))
    page.goto(finished)
    expect(page.locator("#modules")).to_contain_text("This part cannot be loaded")
    expect(page.locator("#quality dl")).to_contain_text("events read")
    page.context.close()


def test_it_filters_operators_in_place(page: Page, finished: str) -> None:
    page.goto(finished)
    page.locator("#operators [name=op]").fill("aten::mm")
    page.locator("#operators [name=op]").press("Enter")
    expect(page.locator("#operators caption")).to_contain_text("aten::mm")
    assert page.locator("#operators [name=op]").input_value() == "aten::mm"
    assert "op=aten" in page.url


def test_it_answers_a_question_about_a_row_in_the_box_of_the_page(
    page: Page, finished: str
) -> None:
    page.goto(finished)
    page.evaluate("window.marked = true")
    expect(page.locator("#what-if form")).to_be_visible()
    name = page.locator("#modules tbody th").first.get_attribute("title")
    page.locator("#modules tbody tr").first.get_by_role("link", name="if 2×").click()
    answer = page.locator("#what-if [role=status]")
    expect(answer).to_contain_text(f"{name} is 2 times as fast")
    expect(answer).to_be_in_viewport()
    assert page.evaluate("window.marked") is True
    page.reload()
    expect(answer).to_contain_text(f"{name} is 2 times as fast")


def test_it_says_when_the_flame_graph_cannot_be_loaded(
    finished: str, open_context: Callable[..., BrowserContext]
) -> None:
    page = open_context().new_page()
    page.route("**/flame.speedscope.json", lambda route: route.abort("aborted"))
    page.goto(finished)
    page.locator("#profile").scroll_into_view_if_needed()
    expect(page.locator("[data-flame-problem]")).to_contain_text("cannot be loaded")
    expect(page.locator("iframe.viewer")).to_be_hidden()


def test_it_works_without_scripts(
    finished: str, open_context: Callable[..., BrowserContext]
) -> None:
    page = open_context(java_script_enabled=False).new_page()
    page.goto(finished)
    expect(page.locator(".answer").first).to_contain_text("Each output token takes")
    page.locator("#operators").get_by_role("link", name="Calls").click()
    expect(page.locator("#operators th[aria-sort]")).to_contain_text("Calls")
    page.get_by_role("button", name="Run again").click()
    page.get_by_role("link", name="Cancel run").click()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("#run-status")).to_contain_text(re.compile("cancel", re.IGNORECASE))


def test_it_explores_the_flame_graph_by_keyboard_and_keeps_the_address(
    page: Page, finished: str
) -> None:
    page.goto(finished)
    page.locator("#flame").get_by_role("link", name="With its table").click()
    stage = page.get_by_role("application", name="Flame graph")
    expect(page.locator("[data-flamegraph]")).to_have_attribute("data-ready", "")
    stage.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("[data-flame-detail]")).to_contain_text("of the zoomed frame")
    assert "zoom=" in page.url
    page.reload()
    expect(page.locator("[data-flame-detail]")).to_contain_text("of the zoomed frame")
    stage.focus()
    page.keyboard.press("Home")
    assert "zoom=" not in page.url
    page.get_by_role("searchbox", name="Find frames").fill("aten::mm")
    expect(page.locator("[data-flame-share]")).to_contain_text("of all")
    assert "find=aten%3A%3Amm" in page.url
    page.locator("[data-flame-stage] rect:not(.dim)").first.click()
    expect(page.locator("[data-flame-detail]")).to_contain_text("aten::mm")


def test_it_draws_at_most_5000_frames_and_counts_the_rest(page: Page, finished: str) -> None:
    page.goto(finished)
    drawn = page.evaluate(
        """() => {
          const lists = { parent: [], name: [], category: [], self_ns: [], calls: [] };
          for (let at = 0; at < 9000; at += 1) {
            for (const key of ["name", "category"]) lists[key].push(0);
            lists.parent.push(at % 9 ? at - 1 : -1);
            lists.self_ns.push(9000 - at);
            lists.calls.push(1);
          }
          const folded = [{ at: -1, frames: 5, total_ns: 9 }];
          const view = { kind: "host", folded, efficiency: [], ...lists };
          const { model, boxes } = window.daybreak.flame;
          const m = model({ names: ["f"], steps: 1, views: [view] }, "host");
          const drawn = boxes(m, m.root, 1000);
          const folds = drawn.filter((box) => box.fold);
          const counted = folds.reduce((sum, box) => sum + box.fold.count, 0);
          return [drawn.length, counted + drawn.length - folds.length - 1];
        }"""
    )
    assert drawn[0] <= 5000
    assert drawn[1] == 9005


def test_its_script_writes_times_and_shares_as_the_pages_do(page: Page, finished: str) -> None:
    page.goto(finished)
    times = [0, 1, 1.5, 999, 1000, 999_960, 1_234_567, 7_620_000, 61_800_000_000, 3.2e12, 0.25]
    shown = page.evaluate("(all) => all.map(window.daybreak.flame.duration)", times)
    assert shown == [units.duration(ns) for ns in times]
    shares = [0, 0.00001, 0.0123, 0.0999, 0.5, 1]
    shown = page.evaluate("(all) => all.map(window.daybreak.flame.share)", shares)
    assert shown == [units.share(part) for part in shares]
