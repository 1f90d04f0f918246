"""A real browser for the tests: its location, and checks that apply to every page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from made_up import DEEP

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NARROW, WIDE = 360, 1280
HEIGHT = 900
OTHER_LOOKS = ((NARROW, False), (WIDE, True)) if DEEP else ()
LOOKS = [(WIDE, False), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((NARROW, True), *OTHER_LOOKS))]
"""Window widths, each light or dark."""

AXE = Axe()

CUT_OFF = """() => [...document.querySelectorAll("table.stacks")]
    .filter((one) => one.scrollWidth > one.closest(".scroll").clientWidth).length"""
"""Number of tables of rows that are wider than their frames."""

WIDER = """() => [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, .command, svg"))
    .map((one) => one.outerHTML.slice(0, 120))"""


def installed_browser(own: str) -> str | None:
    """Return the browser on the PATH, or Playwright's own, if any."""
    named = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    return named or (own if Path(own).exists() else None)


@contextmanager
def looking(
    browser: "Browser",
    url: str,
    *,
    width: int = WIDE,
    dark: bool = False,
    headers: dict[str, str] | None = None,
    expected: int | None = None,
) -> Iterator["Page"]:
    """Yield a tab at a base URL; fail if a page had an error or a request to another host.

    A page with the `expected` status is not an error.
    """
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if dark else "light",
        extra_http_headers=headers or {},
    )
    tab = context.new_page()
    tab.set_default_timeout(120_000)
    faults: list[str] = []
    tab.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda sent: None if _own(sent.url, url) else faults.append(f"asked {sent.url}"))
    try:
        yield tab
    finally:
        context.close()
    assert [fault for fault in faults if f"status of {expected}" not in fault] == []


def check_page(tab: "Page", path: str, *, contrasts: bool = True) -> None:
    """Open a page; fail if it lacks a single heading, is wider than the window, or has a fault that axe finds."""
    answer = tab.goto(path)
    assert answer is not None
    assert answer.status == 200, path
    assert tab.locator("h1").count() == 1, path
    check_width(tab)
    check_axe(tab, contrasts=contrasts)


def check_axe(tab: "Page", *, contrasts: bool = True) -> None:
    """Fail if axe finds a fault of accessibility, by its default rules (WCAG 2.2 A and AA, best practices).

    Contrasts take most of its time.
    """
    found = AXE.run(tab, options={"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": contrasts}}})
    assert found.violations_count == 0, (tab.url, found.generate_report())


def check_width(tab: "Page") -> None:
    """Fail if the page is wider than the window."""
    scrolled = tab.evaluate("document.documentElement.scrollWidth")
    assert scrolled <= tab.viewport_size["width"], (tab.url, tab.evaluate(WIDER))  # type: ignore[index]


def check_tab_key(tab: "Page") -> None:
    """Fail if the tab key does not reach a usable element, or its focus is not visible."""
    reached = set()
    for _ in range(200):
        tab.keyboard.press("Tab")
        here = tab.evaluate(
            """() => {
                const one = document.activeElement;
                if (one === document.body) return null;
                one.dataset.place ??= String(document.querySelectorAll("[data-place]").length);
                const style = getComputedStyle(one);
                return [one.dataset.place, style.outlineStyle !== "none" || style.boxShadow !== "none"];
            }"""
        )
        if here is None:
            continue
        if here[0] in reached:
            break
        reached.add(here[0])
        assert here[1], tab.evaluate("document.activeElement.outerHTML")
    able = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
    assert len(reached) >= tab.locator(able).locator("visible=true").count(), tab.url


def _own(asked: str, url: str) -> bool:
    return asked.startswith("data:") or urlsplit(asked).netloc == urlsplit(url).netloc
