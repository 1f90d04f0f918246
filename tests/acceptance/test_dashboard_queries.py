"""The recall playground, the forecast and the relations in a real browser, with little, much and no data."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from live_browser import LOOKS, NARROW, check_page, check_tab_key, looking
from live_system import LiveSystem, eventually
from made_up import DEEP
from playwright.sync_api import Browser

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.long]

NASTY = '<script>document.title = "taken"</script> & "keys" <b>hang</b> \'here\''
QUERY = "Where do the keys hang?"
PATHS = (
    "/dashboard/recall",
    "/dashboard/recall?query=Where+do+the+keys+hang%3F&limit=2",
    "/dashboard/forecast?days=7",
    "/dashboard/forecast?days=366",
    "/dashboard/relations",
    "/dashboard/relations?show=decayed",
    "/dashboard/relations?entity=" + "Unknown" * 25,
)
RELATIONS = 120
FADED = 30


@pytest.fixture(scope="module")
def filled(live: LiveSystem) -> str:
    """Return a namespace with facts that will fade, and more relations than fit a page."""
    name = f"filled-{uuid4()}"
    texts = [
        NASTY,
        "The spare keys hang behind the clock.",
        "The keys of the shed hang in the shed.",
        "Tea is at four.",
    ]
    with live.client(name) as memory:
        stored = memory.store_many([{"text": text, "decay_class": "normal"} for text in texts])["results"]
        assert [one["action"] for one in stored] == ["added"] * len(texts)
        for place in range(RELATIONS):
            weight = 0.05 if place < FADED else 0.2 + place / 200
            known = {"weight": weight, "pinned": place % 10 == 0, "namespace": name}
            ends = {"source": f"Person {place % 12}", "target": f"{'<i>' if place < 3 else ''}Thing {place}"}
            memory.send("memory.relate", ends | known | {"type": "knows"})
        eventually(lambda: memory.relations(decayed=None)["total"] == RELATIONS, "all relations are noted")
    return name


@pytest.fixture
def headers(filled: str) -> dict[str, str]:
    return {"X-Ebb-Namespace": filled}


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_each_page_fits_its_window_filled_or_empty(
    browser: Browser, url: str, filled: str, width: int, dark: bool
) -> None:
    for name in (filled, "unknown") if DEEP or width == NARROW else (filled,):
        with looking(browser, url, width=width, dark=dark, headers={"X-Ebb-Namespace": name}) as tab:
            for path in PATHS:
                check_page(tab, path)


def test_every_control_is_reachable_by_the_tab_key(browser: Browser, url: str, headers: dict[str, str]) -> None:
    with looking(browser, url, headers=headers) as tab:
        for path in ("/dashboard/relations", "/dashboard/relations?entity=Person+1", "/dashboard/forecast?days=7"):
            tab.goto(path)
            check_tab_key(tab)


def test_a_recall_is_taken_apart_and_strengthens_nothing(
    browser: Browser, url: str, headers: dict[str, str], filled: str, live: LiveSystem
) -> None:
    with live.client(filled) as memory:
        found = memory.recall(QUERY, limit=2, explain=True, touch=False)
    with looking(browser, url, headers=headers) as tab:
        tab.goto("/dashboard/recall")
        tab.get_by_label("Question").fill(QUERY)
        tab.get_by_text("Filters").click()
        tab.get_by_label("At most").fill("2")
        tab.get_by_label("Question").press("Enter")
        tab.wait_for_url("**query=**")
        results = tab.locator(".results > li")
        assert [text.strip() for text in results.locator(".said").all_inner_texts()] == [
            one["text"] for one in found["results"]
        ]
        best = found["results"][0]["score"]
        for place, one in enumerate(found["results"]):
            widths = [float(rect.get_attribute("width") or 0) for rect in results.nth(place).locator("rect").all()]
            assert sum(widths) == pytest.approx(1000 * one["score"] / best, abs=2)
            assert results.nth(place).locator(".total").inner_text() == f"{one['score']:.3f}"
        assert tab.title() == "Recall · Ebb"
        left = tab.locator(".left-out details")
        assert "not relevant enough" in tab.locator(".left-out").inner_text()
        left.first.get_by_role("link", name="Why was this left out").first.press("Enter")
        tab.wait_for_url("**why=**")
        assert "Rank 3 of" in tab.locator(".why").inner_text()
    live.settle()
    with live.client(filled) as memory:
        events = [event["what"] for one in found["results"] for event in memory.history(one["id"])["events"]]
    assert set(events) == {"stored"}


def test_every_part_of_a_score_is_shown(url: str, live: LiveSystem) -> None:
    name, query = f"named-{uuid4()}", "What does Mira keep?"
    with live.client(name) as memory:
        memory.store_many([{"text": "Mira keeps bees."}, {"text": "Jonas keeps hens."}])
        best = memory.recall(query, explain=True, touch=False)["results"][0]
    assert best["explain"]["named"] > 0
    answer = httpx2.get(
        f"{url}/dashboard/recall", params={"query": query}, headers={"X-Ebb-Namespace": name}, timeout=None
    )
    bar = next(line for line in answer.text.splitlines() if 'aria-label="fit' in line)
    assert sum(map(float, re.findall(r" (\d\.\d+)", bar))) == pytest.approx(best["score"], abs=0.003)


def test_a_query_is_narrowed_by_role_relevance_and_deep_memory(browser: Browser, url: str, live: LiveSystem) -> None:
    name = f"narrowed-{uuid4()}"
    story = " ".join(f"On day {day} the crew mended sails." for day in range(60)) + " The pilot was called Anselm."
    with live.client(name) as memory:
        memory.store(story, role="user")
        memory.store("The pilot Anselm likes tea.", role="assistant")
        gone = memory.store("The pilot Anselm has a parrot.", role="assistant")["id"]
        live.rows("update facts set forgotten_at = now(), forgotten_reason = 'faded' where id = %s", [gone])
    with looking(browser, url, headers={"X-Ebb-Namespace": name}, expected=422) as tab:
        tab.goto("/dashboard/recall?query=Who+was+the+pilot+Anselm%3F&min_relevance=0")
        tab.get_by_label("Said by").select_option("user")
        tab.get_by_role("button", name="Recall").click()
        tab.wait_for_url("**role=user**")
        (shown,) = tab.locator(".results > li").all()
        assert "Anselm" in shown.locator(".said").inner_text()
        assert shown.locator(".said").inner_text().startswith("…")
        assert re.search(r"relevance \d+ %.* said by user .*a passage of", shown.inner_text().replace("\n", " "))
        tab.get_by_label("Said by").select_option("assistant")
        tab.get_by_label("also what has ended").check()
        tab.get_by_role("button", name="Recall").click()
        tab.get_by_text("ended: faded").wait_for()
        tab.wait_for_load_state()
        assert tab.locator(".results > li").count() == 2
        tab.get_by_label("Least relevance").fill("much")
        tab.get_by_role("button", name="Recall").click()
        assert "no number" in tab.get_by_role("alert").inner_text()
        assert tab.evaluate("document.querySelector('#min_relevance').getAttribute('aria-invalid')") == "true"
    with live.client(name) as memory:
        assert memory.history(gone)["state"] == "forgotten: faded"


def test_a_long_text_that_is_explained_is_cut_as_in_results(url: str, live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as memory:
        long = memory.store("word " * 10_000)["id"]
    with httpx2.Client(base_url=url, headers={"X-Ebb-Namespace": namespace}, timeout=None) as client:
        answer = client.get("/dashboard/recall", params={"query": "word", "why": long})
    assert (answer.status_code, len(answer.text) < 10_000) == (200, True)


def test_an_invalid_query_is_explained_next_to_its_field(url: str, headers: dict[str, str]) -> None:
    with httpx2.Client(base_url=url, headers=headers, timeout=None) as client:
        asked: dict[str, Any] = {"query": NASTY, "as_of": "yesterday"}
        answer = client.get("/dashboard/recall", params=asked)
        assert answer.status_code == 422
        assert "as_of: " in answer.text
        wrong = [line for line in answer.text.splitlines() if "aria-invalid" in line]
        assert ['name="as_of"' in line for line in wrong] == [True]
        assert "&lt;script&gt;" in answer.text
        assert "<script>document" not in answer.text
        assert client.get("/dashboard/recall", params={"query": "a", "why": "b"}).status_code == 422
        missing = client.get("/dashboard/recall", params={"query": "a", "why": str(uuid4())})
        assert (missing.status_code, "it never was, or is purged" in missing.text) == (404, True)
        assert "Give a query" in client.get("/dashboard/recall", params={"why": str(uuid4())}).text
        assert client.get("/dashboard/recall", params={"query": "  "}).status_code == 200
        assert client.get("/dashboard/recall", params={"query": "a", "limit": ""}).status_code == 200
        assert client.get("/dashboard/relations?cursor=nonsense").status_code == 422
        assert client.get("/dashboard/forecast?days=0").status_code == 422


def test_the_forecast_names_the_days_the_reasons_and_the_facts(
    browser: Browser, url: str, headers: dict[str, str], filled: str, live: LiveSystem
) -> None:
    with live.client(filled) as memory:
        days = memory.forecast(30)["days"]
    ending = [day for day in days if day["forgotten"]]
    assert ending
    with looking(browser, url, headers=headers) as tab:
        tab.goto("/dashboard/forecast?days=30")
        tab.locator("figure canvas").wait_for()
        tab.get_by_text("As a table").click()
        lines = tab.locator("table.ahead > tbody > tr")
        changing = [day for day in days if any(value for name, value in day.items() if isinstance(value, int))]
        assert lines.count() == len(changing)
        card = tab.locator(".figure", has_text="Will be forgotten")
        assert str(sum(day["forgotten"] for day in days)) in card.inner_text()
        named = tab.locator("details.day").all_text_contents()
        assert len(named) == len(changing)
        first = next(number for number, day in enumerate(changing) if day["forgotten"])
        assert "The spare keys hang behind the clock." in named[first]
        assert tab.title() == "Forecast · Ebb"


def test_the_forecast_says_which_facts_the_forget_limit_will_hold(url: str, live: LiveSystem) -> None:
    name = f"held-{uuid4()}"
    rumour = {"confidence": 0.11, "decay_class": "normal"}
    with live.client(name) as memory:
        memory.store_many([rumour | {"text": f"Rumour {number} about tea."} for number in range(30)])
        memory.store_many([rumour | {"text": f"Rumour {number}.", "confidence": 0.3} for number in range(30, 40)])
        (day,) = [day for day in memory.forecast(30)["days"] if day["held"]]
    of_all = {name: number for name, number in day.items() if isinstance(number, int) and name != "forgotten"}
    page = httpx2.get(f"{url}/dashboard/forecast?days=30", headers={"X-Ebb-Namespace": name})
    assert page.status_code == 200
    assert f"Passes will hold {day['held']} facts" in page.text
    assert page.text.count("held: it stays until you decide") == 3
    assert f"{sum(of_all.values()) - len(day['facts'])} more are not listed" in page.text


def test_relations_are_turned_page_by_page_each_once_and_faded_ones_are_marked(
    browser: Browser, url: str, headers: dict[str, str]
) -> None:
    seen: list[str] = []
    marked = 0
    with looking(browser, url, headers=headers) as tab:
        tab.goto("/dashboard/relations")
        for _ in range(5):
            rows = tab.locator(".related tbody tr")
            seen += [re.sub(r"\s+", " ", row) for row in rows.all_inner_texts()]
            marked += tab.locator(".related tbody tr.decayed").count()
            further = tab.get_by_role("link", name="Weaker")
            if not further.count():
                break
            with tab.expect_navigation():
                further.press("Enter")
    assert (len(seen), len(set(seen)), marked) == (RELATIONS, RELATIONS, FADED)


def test_a_name_in_the_graph_leads_by_keyboard_to_what_it_is_related_to(
    browser: Browser, url: str, headers: dict[str, str]
) -> None:
    with looking(browser, url, headers=headers) as tab:
        tab.goto("/dashboard/relations?show=decayed")
        assert tab.locator("line.edge").count() == tab.locator("line.edge.decayed").count() == FADED
        tab.get_by_role("link", name="Relations of <i>Thing 1", exact=True).press("Enter")
        tab.wait_for_url("**entity=**")
        assert tab.get_by_label("Of the entity").input_value() == "<i>Thing 1"
        assert tab.locator(".related tbody tr").count() == 1
        assert tab.locator("i", has_text="Thing").count() == 0


def test_ten_thousand_relations_are_bounded(browser: Browser, url: str, live: LiveSystem) -> None:
    name, now = f"crowd-{uuid4()}", datetime.now(UTC)
    with live.client(name) as memory:
        memory.relate("Mira", "Atlas", "works_on")
    live.rows(
        "insert into relations (namespace, source, target, type, initial_weight, weight, last_observed, created_at)"
        " select id, 'Person ' || mod(n, 97), 'Thing ' || n, 'knows', 1, 1, %s - n * interval '30 minutes', %s"
        " from namespaces, generate_series(1, 10000) as n where name = %s returning 1",
        [now, now - timedelta(days=365), name],
    )
    with looking(browser, url, headers={"X-Ebb-Namespace": name}) as tab:
        tab.goto("/dashboard/relations")
        assert "10,001 relations" in tab.locator(".related").inner_text()
        assert tab.locator(".related tbody tr").count() == 50
        assert tab.locator("line.edge").count() == 30
