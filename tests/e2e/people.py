"""What people do on the pages, said once."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

RUN_LIMIT_MS = 180_000
SMALL = {"batch": 1, "prompt_tokens": 16, "output_tokens": 4, "iterations": 3, "warmup": 1}


def come_in(page: Page, base: str, link: str) -> None:
    """Sign in by the link of the first start."""
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{base}/**")


def new_run(
    page: Page, *, model: str = "llama-tiny", scenarios: Sequence[str], **sizes: int
) -> str:
    """Fill in the form and send it; the path where it led."""
    page.goto("/runs/new/")
    page.locator("[name=model]").select_option(model)
    for box in page.locator("[name=scenarios]").all():
        box.set_checked(box.get_attribute("value") in scenarios)
    for name, value in (SMALL | sizes).items():
        page.locator(f"[name={name}]").fill(str(value))
    page.get_by_role("button", name="Queue").click()
    page.wait_for_url("**/runs/**")
    expect(page.get_by_role("heading", level=1)).not_to_have_text("New run")
    return urlsplit(page.url).path


def run_ends(page: Page, state: str) -> None:
    """Wait on a run's page, without reloading it, until its state is this one."""
    expect(page.locator("#run-status .chip").first).to_have_text(state, timeout=RUN_LIMIT_MS)
