"""Texts of any length, script and direction on the pages of the dashboard."""

from uuid import uuid4

import pytest
from live_browser import CUT_OFF, LOOKS, check_page, looking
from live_system import LiveSystem
from playwright.sync_api import Browser

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

LONG = "The harbour master wrote that the tide was late, and the boats waited at the quay. " * 40
UNBROKEN = "W" * 900
ARABIC, HEBREW = "ذهبت ليلى إلى السوق.", "דנה גרה בחיפה."

NAMES_OUTSIDE = """() => {
    const picture = document.querySelector(".graph svg").getBoundingClientRect();
    const outside = (box) => box.left < picture.left - 1 || box.right > picture.right + 1;
    return [...document.querySelectorAll(".node text")].filter((one) => outside(one.getBoundingClientRect())).length;
}"""
LAST_IS_LEFT = """(text) => {
    const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const found = [];
    const drawn = (node) => !node.parentElement.closest("svg") && node.data.includes(text);
    while (walk.nextNode()) if (drawn(walk.currentNode)) found.push(walk.currentNode);
    const at = (node, place) => {
        const range = document.createRange();
        range.setStart(node, place);
        range.setEnd(node, place + 1);
        return range.getBoundingClientRect().left;
    };
    return found.map((node) => {
        const start = node.data.indexOf(text);
        return at(node, start + text.length - 1) < at(node, start);
    });
}"""
"""For each occurrence of a text outside pictures: whether its last character is left of its first."""


@pytest.fixture(scope="module")
def texts(live: LiveSystem) -> tuple[dict[str, str], dict[str, str]]:
    """Return the header of a namespace with unusual texts, and the id of each text."""
    name = f"texts-{uuid4()}".ljust(128, "x")
    with live.client(name) as memory:
        ids = {text: memory.store(text)["id"] for text in (LONG, ARABIC, HEBREW)}
        long = {"category": "c" * 120, "entity": "e" * 200, "key": "k" * 120, "value": "v" * 300}
        ids[UNBROKEN] = memory.store(UNBROKEN, tags=["t" * 120], source="s" * 300, **long)["id"]
        memory.link(ids[LONG], ids[UNBROKEN], "PART_OF")
        memory.link(ids[ARABIC], ids[HEBREW], "PART_OF")
        for _ in range(2):
            memory.reinforce(ids[HEBREW], 0.01)
        memory.relate("Mira", UNBROKEN[:30], "knows")
        memory.relate("Mira", "上" * 30, "knows")
    return {"X-Ebb-Namespace": name}, ids


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_fact_of_any_text_fits_its_page_and_is_reached_without_a_mouse(
    browser: Browser, url: str, texts: tuple[dict[str, str], dict[str, str]], width: int, dark: bool
) -> None:
    headers, ids = texts
    with looking(browser, url, width=width, dark=dark, headers=headers) as tab:
        for id_ in ids.values():
            check_page(tab, f"/dashboard/facts/{id_}")


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_names_without_blanks_fit_their_page(
    browser: Browser, url: str, texts: tuple[dict[str, str], dict[str, str]], width: int, dark: bool
) -> None:
    with looking(browser, url, width=width, dark=dark, headers=texts[0]) as tab:
        timeline = f"/dashboard/timeline?entity={'e' * 200}&key={'k' * 120}"
        for path in ("/", f"/dashboard/relations?entity={UNBROKEN[:30]}", timeline):
            check_page(tab, path)
            assert not tab.evaluate(CUT_OFF), path


def test_text_from_right_to_left_ends_at_its_left(
    browser: Browser, url: str, texts: tuple[dict[str, str], dict[str, str]]
) -> None:
    headers, ids = texts
    pages = ("/", "/dashboard/facts", f"/dashboard/facts/{ids[ARABIC]}", "/dashboard/recall?query=ليلى&min_relevance=0")
    with looking(browser, url, headers=headers) as tab:
        for path in pages:
            tab.goto(path)
            for text in (ARABIC, HEBREW):
                assert set(tab.evaluate(LAST_IS_LEFT, text)) <= {True}, (path, text)
            assert tab.evaluate(LAST_IS_LEFT, ARABIC), path


def test_names_in_the_picture_of_relations_are_not_cut_off(
    browser: Browser, url: str, texts: tuple[dict[str, str], dict[str, str]]
) -> None:
    with looking(browser, url, headers=texts[0]) as tab:
        check_page(tab, "/dashboard/relations")
        assert tab.locator(".node text").count() == 3
        assert tab.evaluate(NAMES_OUTSIDE) == 0


def test_the_history_of_a_fact_has_no_raw_instants(
    browser: Browser, url: str, texts: tuple[dict[str, str], dict[str, str]]
) -> None:
    headers, ids = texts
    with looking(browser, url, headers=headers) as tab:
        tab.goto(f"/dashboard/facts/{ids[HEBREW]}")
        said = tab.get_by_role("region", name="History").inner_text()
        assert "2 times since" in said
        assert "+00:00" not in said
