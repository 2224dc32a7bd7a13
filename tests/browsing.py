"""A browser for the tests of pages; they skip where there is none. A conftest imports `browser` and `open_page`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        # Chromium refuses to run as root inside its sandbox
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield made
        made.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a page; at the end there must have been no error, no dialog and no request to anywhere else."""
    trouble: list[str] = []
    contexts = []

    def opened(address: str, *, first_sight: bool = False, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning") and trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: _outside(request.url) and trouble.append(f"request {request.url}"))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('policy ' + event.violatedDirective))"
        )
        page.goto(address)
        if not first_sight:  # most of these tests are about what a reader opens
            page.evaluate("() => { filters.open = true; if (!all.checked) all.click(); }")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []


def _outside(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:"))
