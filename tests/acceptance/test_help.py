"""Help at `/help`: pages are public, and every link and image on them resolves."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from urllib.parse import urldefrag, urljoin

import httpx2
import pytest
from live_api import make_key, serving
from live_browser import looking
from live_system import LiveSystem
from playwright.sync_api import Browser

from api.http.dashboard import help_pages

pytestmark = pytest.mark.acceptance

ADDRESSES = [target for target, _ in help_pages.contents()]


@pytest.fixture(scope="module")
def client(live: LiveSystem) -> Iterator[httpx2.Client]:
    """Yield a client without key of an API that requires keys."""
    make_key(live, "owner", "read")
    with serving(live) as client:
        yield client


def links(page: httpx2.Response) -> set[str]:
    """Return the targets of all links and images of an article, with their anchors."""
    article = page.text[page.text.index("<article") : page.text.index("</article>")]
    return {urljoin(page.url.path, link) for link in re.findall(r'(?:href|src)="([^"]+)"', article)}


@pytest.fixture(scope="module")
def get(client: httpx2.Client) -> Callable[[str], httpx2.Response]:
    """Return a function that asks for each address once: pages have many links in common."""
    return cache(client.get)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_and_all_that_it_links_to_are_served_without_a_key(
    get: Callable[[str], httpx2.Response], address: str
) -> None:
    page = get(address)
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for link in links(page):
        target, fragment = urldefrag(link)
        answer = get(target)
        assert answer.status_code == 200, link
        assert not fragment or f'id="{fragment}"' in answer.text, link


def test_the_index_links_to_every_page(client: httpx2.Client) -> None:
    assert {link for link in links(client.get("/help")) if link.startswith("/help")} | {"/help"} == set(ADDRESSES)


def test_a_page_that_does_not_exist_is_answered_by_404(client: httpx2.Client) -> None:
    answer = client.get("/help/nothing")
    assert answer.status_code == 404
    assert "There is no help page" in answer.text
    assert client.get("/help/images/nothing.png").status_code == 404


@pytest.mark.slow
def test_the_menu_leads_to_help_and_from_page_to_page(browser: Browser, client: httpx2.Client) -> None:
    with looking(browser, str(client.base_url).rstrip("/"), expected=401) as tab:
        tab.goto("/help")
        assert tab.locator("nav a[aria-current]").first.inner_text() == "Help"
        tab.get_by_role("article").get_by_role("link", name="Recall").press("Enter")
        tab.wait_for_url("**/help/recall")
        assert tab.locator("h1").inner_text() == "Recall"
        tab.get_by_role("navigation", name="Help pages").get_by_role("link", name="Settings").press("Enter")
        tab.wait_for_url("**/help/settings")
        tab.goto("/help/dashboard")
        assert tab.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
