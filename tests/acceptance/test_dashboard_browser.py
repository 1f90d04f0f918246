"""The dashboard in a real browser: each page at two widths, light and dark, with mouse and keyboard."""

import re
from collections.abc import Iterator
from uuid import uuid4

import httpx2
import pytest
from live_browser import AXE, CUT_OFF, LOOKS, NARROW, WIDE, check_page, check_tab_key, check_width, looking
from live_system import LiveSystem
from made_up import DEEP
from playwright.sync_api import Browser

pytestmark = [pytest.mark.acceptance, pytest.mark.long]

PATHS = (
    "/",
    "/?days=366",
    "/dashboard/facts",
    "/dashboard/runs",
    "/dashboard/namespaces",
    "/dashboard/sign-in",
    "/help",
    "/help/dashboard",
)
"""Each page, in the namespace of the sample."""

LONG = ("/help/settings", "/help/forgetting")
"""Pages of help with long tables, in the colours of the others."""

OF_OPERATIONS = {"runOnly": ["color-contrast", "heading-order", "landmark-no-duplicate-main"]}


@pytest.fixture(scope="module")
def sample(live: LiveSystem) -> dict[str, str]:
    """Return the header of a namespace with the sample in it."""
    name = f"sample-{uuid4()}"
    assert live.ebb("import", "api/sample/year.jsonl", "--namespace", name).returncode == 0
    live.ebb_json("decay", "--dry-run", "--now", "2027-11-21", "--all")
    live.send("memory.settle_tallies", {})
    live.settle()
    return {"X-Ebb-Namespace": name}


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_each_page_fits_its_window_and_says_no_error(
    browser: Browser, url: str, sample: dict[str, str], width: int, dark: bool
) -> None:
    with looking(browser, url, width=width, dark=dark, headers=sample) as tab:
        for path in (*PATHS, *LONG):
            check_page(tab, path, contrasts=DEEP or path not in LONG)
            assert not tab.evaluate(CUT_OFF), path


def test_graph_and_table_of_relations_stand_side_by_side_only_where_both_fit(
    browser: Browser, url: str, live: LiveSystem
) -> None:
    namespace = f"related-{uuid4()}"
    with live.client(namespace) as memory:
        for number in range(9):
            memory.relate(f"The module of authentication {number}", "The library of tokens", "depends_on_all_of")
    with looking(browser, url, headers={"X-Ebb-Namespace": namespace}) as tab:
        tab.goto("/dashboard/relations")
        for width in (WIDE, 1400, 1536):
            tab.set_viewport_size({"width": width, "height": 800})
            assert tab.evaluate(CUT_OFF.replace("table.stacks", ".related table, .related svg")) == 0, width
        assert tab.locator(".graph.small").count() == 0


@pytest.mark.slow
def test_every_control_is_reachable_by_the_tab_key_with_visible_focus(
    browser: Browser, url: str, sample: dict[str, str]
) -> None:
    with looking(browser, url, headers=sample) as tab:
        for path in (*PATHS, *LONG) if DEEP else PATHS:
            tab.goto(path)
            check_tab_key(tab)


def test_the_first_thing_the_tab_key_reaches_skips_the_menu(browser: Browser, url: str, sample: dict[str, str]) -> None:
    with looking(browser, url, headers=sample) as tab:
        tab.goto("/dashboard/runs")
        if tab.evaluate("document.activeElement === document.body"):
            tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        tab.keyboard.press("Enter")
        tab.locator("#main:focus").wait_for()


@pytest.mark.slow
def test_a_namespace_is_chosen_and_kept(browser: Browser, url: str, live: LiveSystem) -> None:
    name = f"chosen-{uuid4()}"
    with live.client(name) as memory:
        memory.store("The brook is low.")
    with looking(browser, url) as tab:
        tab.goto("/dashboard/namespaces?prefix=chosen-")
        tab.get_by_role("button", name=name).press("Enter")
        tab.goto("/dashboard/runs")
        assert tab.locator(".who").inner_text().endswith(name)


@pytest.mark.parametrize("name", ["", "not a name", "x" * 200])
def test_a_cookie_with_no_name_of_a_namespace_shuts_nobody_out(client: httpx2.Client, name: str) -> None:
    """Servers at other ports of a host set cookies for this one, too."""
    page = client.get("/dashboard/namespaces", headers={"cookie": f"ebb_namespace={name}"})
    assert page.status_code == 200


def test_an_empty_namespace_says_what_to_do_next(browser: "Browser", url: str) -> None:
    with looking(browser, url, width=NARROW, headers={"X-Ebb-Namespace": f"empty-{uuid4()}"}) as tab:
        for path in ("/", "/dashboard/facts"):
            tab.goto(path)
            assert "ebb store --namespace empty-" in tab.locator(".command").first.inner_text()
            check_width(tab)


def test_a_command_to_copy_has_no_text_of_a_link(client: httpx2.Client) -> None:
    for prefix, name in (("not-stored-yet", "not-stored-yet"), ("$(rm -rf ~)", "mira")):
        page = client.get("/dashboard/namespaces", params={"prefix": prefix}).text
        assert f'<code tabindex="0">ebb store --namespace {name} ' in page


@pytest.mark.slow
def test_commands_and_links_of_a_page_are_about_its_namespace(
    browser: "Browser", url: str, live: LiveSystem, namespace: str
) -> None:
    with live.client(namespace) as memory:
        memory.store_many([{"text": f"Tea number {n} is at four.", "decay_class": "normal"} for n in range(120)])
    empty = f"empty-{uuid4()}"
    with looking(browser, url, headers={"X-Ebb-Namespace": empty}) as tab:
        for path in ("/dashboard/timeline", "/dashboard/timeline?entity=a&key=b"):
            tab.goto(path)
            assert f"--namespace {empty}" in tab.locator(".command").inner_text(), path
            check_width(tab)
    with looking(browser, url, headers={"X-Ebb-Namespace": namespace}) as tab:
        tab.goto("/dashboard/forecast?days=366")
        tab.get_by_role("alert").get_by_role("link", name="Forgotten").press("Enter")
        tab.wait_for_url("**/dashboard/forgotten")


def test_an_ended_fact_is_listed_with_how_long_it_can_be_restored(
    browser: "Browser", url: str, live: LiveSystem, namespace: str
) -> None:
    with live.client(namespace) as memory:
        asked, ended = (memory.store(f"The brook is {how}.")["id"] for how in ("low", "high"))
        memory.forget([asked])
        live.rows("update activity set expires_at = now(), due_at = now() where fact = %s returning 1", [ended])
        memory.decay()
    with looking(browser, url, headers={"X-Ebb-Namespace": namespace}) as tab:
        tab.goto("/dashboard/forgotten")
        said = tab.locator(".results .note").all_inner_texts()
        assert sum("can be restored until" in one for one in said) == 1
        assert sum("can be restored at any time" in one for one in said) == 1


def test_a_help_page_begins_with_its_text_on_a_phone(browser: "Browser", url: str) -> None:
    with looking(browser, url, width=NARROW) as tab:
        tab.goto("/help/storing")
        box = tab.locator("h1").bounding_box()
        assert box is not None
        assert box["y"] < 300


def test_running_actions_are_shown_and_announced(browser: "Browser", url: str, sample: dict[str, str]) -> None:
    with looking(browser, url, headers=sample) as tab:
        tab.goto("/dashboard/runs")
        clicked = """() => {
            document.querySelector("nav a[href='/dashboard/facts']").click();
            return [document.documentElement.className, document.querySelector(".progress").textContent];
        }"""
        assert tab.evaluate(clicked) == ["loading", "Loading"]
        tab.wait_for_url("**/dashboard/facts")
        assert tab.locator("html.loading").count() == 0


@pytest.mark.slow
def test_turning_the_pages_shows_every_fact_once(
    browser: "Browser", url: str, live: LiveSystem, sample: dict[str, str]
) -> None:
    shown: list[str] = []
    with looking(browser, url, headers=sample) as tab:
        tab.goto("/dashboard/facts")
        while True:
            shown += tab.locator(".facts a").evaluate_all("links => links.map(link => link.pathname.split('/').pop())")
            if not tab.get_by_role("link", name="Earlier").count():
                break
            tab.get_by_role("link", name="Earlier").press("Enter")
            tab.wait_for_load_state()
    assert len(shown) == len(set(shown)) == 404
    assert set(shown) == {id_ for id_, _ in live.facts(sample["X-Ebb-Namespace"])}


@pytest.mark.slow
def test_a_fact_shows_its_curve_its_history_and_its_links(
    browser: "Browser", url: str, live: LiveSystem, namespace: str
) -> None:
    with live.client(namespace) as memory:
        fact, other, gone = (memory.store(f"The brook was {how}.")["id"] for how in ("low", "high", "dry"))
        memory.link(other, fact, "CAUSED_BY", 0.75)
        memory.reinforce(other, 0.2)
        memory.pin(other)
        memory.forget([gone])
    for width in (NARROW, WIDE):
        with looking(browser, url, width=width, headers={"X-Ebb-Namespace": namespace}) as tab:
            tab.goto(f"/dashboard/facts/{fact}")
            assert tab.locator("figure canvas").count() == 1
            assert tab.locator(".changes li").count() >= 4
            assert "is the cause of 75 %" in tab.locator(".linked").inner_text()
            assert "content_salience" not in tab.locator("main").inner_text()
            check_width(tab)
            tab.locator(".linked a").press("Enter")
            tab.wait_for_url(f"**/{other}")
            assert tab.locator(".chips").get_by_text("pinned").count() == 1
            assert "does not fade" in tab.locator("main").inner_text()
            assert "pinned without end" in tab.locator("main").inner_text()
            assert tab.locator("figure canvas").count() == 2
            tab.get_by_text("Its uses").press("Enter")
            assert tab.get_by_role("region", name="Uses of this fact").locator("tbody tr").count() == 1
            check_width(tab)
            tab.goto(f"/dashboard/facts/{gone}")
            assert tab.get_by_role("button", name="Restore").count() == 1
            assert tab.get_by_text("forgotten: asked").count() == 1
            check_width(tab)


def test_links_to_forgotten_facts_alone_are_counted(
    browser: "Browser", url: str, live: LiveSystem, namespace: str
) -> None:
    with live.client(namespace) as memory:
        how = ("low", "high", "brown", "dry", "ice")
        fact, other, twice, *gone = (memory.store(f"The brook was {one}.")["id"] for one in how)
        for one, to in ((gone[0], fact), (gone[0], twice), (gone[1], twice)):
            memory.link(one, to, "CAUSED_BY")
        memory.forget(gone)
    with looking(browser, url, headers={"X-Ebb-Namespace": namespace}) as tab:
        tab.goto(f"/dashboard/facts/{fact}")
        assert tab.get_by_text("1 link to forgotten facts is not shown; restoring these facts restores it").count() == 1
        tab.goto(f"/dashboard/facts/{twice}")
        assert tab.get_by_text("2 links to forgotten facts are not shown; restoring these facts restores them").count()
        tab.goto(f"/dashboard/facts/{other}")
        assert tab.get_by_text("This fact has no links yet").count() == 1


@pytest.mark.slow
def test_an_operation_of_the_http_api_is_unfolded_and_tried(
    browser: "Browser", url: str, sample: dict[str, str]
) -> None:
    with looking(browser, url, width=WIDE, headers=sample) as tab:
        tab.goto("/docs")
        operation = tab.locator(".opblock", has=tab.locator("[data-path='/memory/stats']"))
        operation.get_by_role("button").first.press("Enter")
        operation.get_by_role("button", name="Try it out").press("Enter")
        operation.get_by_role("button", name="Execute").press("Enter")
        operation.locator(".live-responses-table").get_by_text('"facts"').first.wait_for()
        long = tab.locator(".opblock-get", has=tab.locator("[data-path='/memory/relations']"))
        long.get_by_role("button").first.press("Enter")
        long.locator(".responses-table").first.wait_for()
        for width in (WIDE, NARROW):
            tab.set_viewport_size({"width": width, "height": 800})
            check_width(tab)


@pytest.mark.slow
def test_the_operations_of_the_http_api_can_be_read_in_both_colour_schemes(browser: Browser, url: str) -> None:
    for dark in (False, True):
        with looking(browser, url, dark=dark) as tab:
            tab.goto("/docs")
            operation = tab.locator(".opblock-post", has=tab.locator("[data-path='/memory/facts']")).first
            operation.get_by_role("button").first.press("Enter")
            operation.get_by_role("button", name="Try it out").press("Enter")
            operation.get_by_role("tab", name="Schema").last.press("Enter")
            operation.locator(".json-schema-2020-12__title").first.wait_for()
            found = AXE.run(tab, options=OF_OPERATIONS)
            assert found.violations_count == 0, found.generate_report()


@pytest.mark.slow
def test_text_of_twice_the_size_fits_a_phone(browser: Browser, url: str, sample: dict[str, str]) -> None:
    with looking(browser, url, width=NARROW, headers=sample) as tab:
        tab.goto("/dashboard/facts")
        fact = tab.locator(".facts a").first.get_attribute("href") or ""
        for path in (*PATHS, "/dashboard/forecast", fact):
            tab.goto(path)
            tab.evaluate("document.documentElement.style.fontSize = '200%'")
            check_width(tab)


def test_pages_follow_the_text_size_that_the_reader_chose_in_the_browser(
    browser: Browser, url: str, sample: dict[str, str]
) -> None:
    with looking(browser, url, headers=sample) as tab:
        tab.goto("/")
        sizes = """() => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
            .flatMap((rule) => rule.selectorText === "html" ? [rule.style.fontSize] : rule.conditionText ?? [])"""
        found = tab.evaluate(sizes)
        assert "100%" in found
        assert [one for one in found if "px" in one] == []


def test_charts_follow_the_window_and_the_colour_scheme(browser: "Browser", url: str, sample: dict[str, str]) -> None:
    with looking(browser, url, headers=sample) as tab:
        tab.goto("/?days=1")
        assert tab.locator("figure canvas").count() >= 4
        assert tab.get_by_text("None so far.").count() == 1
        assert tab.get_by_text("until they are purged").count() == 0
        labels = tab.evaluate("document.querySelector('figure').chart.axes[0]._values")
        assert "\n" in labels[0]
        assert not re.search(r"\d/\d", "".join(labels))
        inks = set()
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            inks.add(tab.evaluate("getComputedStyle(document.body).color"))
        assert len(inks) == 2
        tab.set_viewport_size({"width": NARROW, "height": 800})
        while tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
            tab.wait_for_timeout(20)  # wait_for_function polls by eval, which the page's content security policy blocks


def test_the_marks_of_a_count_are_whole_numbers(browser: "Browser", url: str, live: LiveSystem) -> None:
    name = f"marks-{uuid4()}"
    with live.client(name) as memory:
        memory.store_many([{"text": f"Barge {number} is here.", "salience": 0.9} for number in range(13)])
    with looking(browser, url, headers={"X-Ebb-Namespace": name}) as tab:
        tab.goto("/dashboard/forecast")
        assert tab.evaluate("document.querySelector('figure').chart.axes[1]._values") == ["0", "5", "10"]


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=url, timeout=None) as client:
        yield client


def test_a_heading_without_text_is_a_cell_of_its_table(client: httpx2.Client) -> None:
    page = client.get("/help/frameworks/langchain").text
    assert "<thead>\n<tr>\n<td></td>\n" in page
    assert "<th></th>" not in page


def test_a_form_from_elsewhere_is_refused(client: httpx2.Client) -> None:
    body = {"namespace": "other"}
    for headers in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        answer = client.post("/dashboard/namespaces", data=body, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    answer = client.post("/dashboard/namespaces", data=body, headers={"Origin": str(client.base_url).rstrip("/")})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_the_dashboards_own_address_shows_the_overview(client: httpx2.Client) -> None:
    for path in ("/dashboard", "/dashboard/"):
        answer = client.get(path, follow_redirects=True)
        assert (answer.status_code, answer.url.path) == (200, "/")


def test_a_page_that_is_not_there_says_so_as_a_page(client: httpx2.Client) -> None:
    answer = client.get("/dashboard/nothing")
    assert answer.status_code == 404
    assert "there is no such page" in answer.text
    assert "purged" not in answer.text
    assert "Try again" not in answer.text
    answer = client.get("/help/nothing", headers={"referer": str(client.base_url).rstrip("/") + "/help"})
    assert answer.status_code == 404
    assert "purged" not in answer.text
    assert 'href="/help">Back to the page before' in answer.text
    answer = client.get("/dashboard/nothing", headers={"referer": "http://elsewhere.example/help"})
    assert "Back to the page before" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
