"""A browser, the running system, and a page that tolerates no error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    StorageState,
    sync_playwright,
)

from tests.e2e.people import come_in, new_run, run_ends
from tests.e2e.system import System

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
HARMLESS = ("GPU stall due to ReadPixels", "can escape its sandboxing")
"""Warnings of the browser about drawing in software and about frames of our own origin."""


def find_program() -> str:
    """The Chromium to drive: the named one, else one on the PATH, else nothing."""
    named = os.environ.get("DAYBREAK_BROWSER", "")
    return named or next((path for name in NAMES if (path := shutil.which(name))), "")


def _program() -> str:
    found = find_program()
    if found:
        return found
    said = (
        "No Chromium found. Install one (Debian: apt-get install chromium) "
        "or name one in DAYBREAK_BROWSER."
    )
    if os.environ.get("DAYBREAK_BROWSER_REQUIRED") == "1":
        pytest.fail(said)
    pytest.skip(f"The browser tests did not run. {said}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = _program()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def system(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The product, started once. The browser comes first: without one nothing is started."""
    system = System(tmp_path_factory.mktemp("var"))
    system.wait_until_ready()
    yield system
    assert system.stop() == 0, "\n".join(system.lines[-40:])


@pytest.fixture(scope="session")
def signed_in(browser: Browser, system: System) -> StorageState:
    """The cookies of the first admin, who came in by the link."""
    context = browser.new_context(base_url=system.base)
    page = context.new_page()
    come_in(page, system.base, system.link)
    state = context.storage_state()
    context.close()
    return state


def _guard(context: BrowserContext, problems: list[str]) -> None:
    """Note what the console says, policy violations among it, and every failed request."""

    def on_console(message: ConsoleMessage) -> None:
        known = any(text in message.text for text in HARMLESS)
        if message.type in {"error", "warning"} and not known:
            problems.append(f"{message.type}: {message.text}")

    def on_response(response: Response) -> None:
        if response.status >= 400:
            problems.append(f"{response.status} {response.url}")

    def on_failed(request: Request) -> None:
        # A request that the page gave up by moving on is no failure.
        if "ERR_ABORTED" not in (request.failure or ""):
            problems.append(f"failed: {request.url}")

    def on_dialog(dialog: Dialog) -> None:
        problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    context.on("dialog", on_dialog)
    context.on("console", on_console)
    context.on("response", on_response)
    context.on("requestfailed", on_failed)
    context.on("weberror", lambda error: problems.append(f"exception: {error.error}"))


@pytest.fixture
def open_context(
    browser: Browser, system: System, signed_in: StorageState
) -> Iterator[Callable[..., BrowserContext]]:
    """Signed-in contexts with any options; errors on their pages fail the test."""
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def open_one(**options: object) -> BrowserContext:
        context = browser.new_context(
            base_url=system.base,
            storage_state=signed_in,
            **options,  # type: ignore[arg-type]
        )
        _guard(context, problems)
        contexts.append(context)
        return context

    yield open_one
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)


@pytest.fixture
def page(open_context: Callable[..., BrowserContext]) -> Page:
    """A page of 1280 x 900, signed in as admin."""
    return open_context(viewport={"width": 1280, "height": 900}).new_page()


@pytest.fixture(scope="session")
def finished(browser: Browser, system: System, signed_in: StorageState) -> str:
    """The address of a small run that succeeded and whose trace was read."""
    context = browser.new_context(base_url=system.base, storage_state=signed_in)
    page = context.new_page()
    address = new_run(page, scenarios=["decode"])
    run_ends(page, "Succeeded")
    page.locator("#operators").wait_for(timeout=120_000)
    context.close()
    return address


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: `DAYBREAK_SHOTS`, or a temporary folder."""
    folder = Path(os.environ.get("DAYBREAK_SHOTS") or tmp_path_factory.mktemp("shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
