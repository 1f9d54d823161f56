"""The picture of the README from real demo data: `make demo-shots`.

Starts the product in a folder of its own, lets the demo finish, and takes the overview into
docs/images/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, StorageState, ViewportSize, sync_playwright

from tests.e2e.conftest import SWITCHES, find_program
from tests.e2e.system import ROOT, System, until

IMAGES = ROOT / "docs" / "images"
DEMO_LIMIT_S = 1800.0
PAUSE_S = 10.0
"""Between questions: each takes a CPU that the demo is measured on."""
SIZE = ViewportSize(width=1280, height=1000)


def demo_is_done(folder: Path) -> bool:
    """Whether every run of the demo has ended and its trace was read."""
    command = [sys.executable, "manage.py", "runs", "--json"]
    environment = {**os.environ, "VAR_DIR": str(folder)}
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    runs = json.loads(shown.stdout)
    return bool(runs) and all(run["trace_state"] == "ready" for run in runs)


def sign_in(browser: Browser, system: System) -> StorageState:
    page = browser.new_page(base_url=system.base)
    page.goto(system.link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{system.base}/**")
    return page.context.storage_state()


def take(page: Page, path: str, name: str) -> None:
    """One page, as high as the window."""
    page.goto(path)
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / f"{name}.png")


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        system = System(Path(folder), demo=True)
        try:
            system.wait_until_ready()
            until("the demo", lambda: demo_is_done(Path(folder)), DEMO_LIMIT_S, every_s=PAUSE_S)
            browser = playwright.chromium.launch(executable_path=find_program(), args=SWITCHES)
            state = sign_in(browser, system)
            context = browser.new_context(
                base_url=system.base, storage_state=state, viewport=SIZE, color_scheme="light"
            )
            take(context.new_page(), "/", "overview-light")
            browser.close()
        finally:
            system.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
