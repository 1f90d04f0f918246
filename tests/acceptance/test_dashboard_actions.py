"""Actions on the dashboard in a real browser: each is done once, and undone by one button."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlencode

import httpx2
import pytest
from ebb.contract.values import LONGEST_VALUE
from live_api import make_key
from live_browser import LOOKS, check_axe, check_page, check_tab_key, looking
from live_system import LiveSystem, eventually
from playwright.sync_api import Browser, Page

from api.client import Client
from workers.coordination import contexts
from workers.coordination.redis import own_keys

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.long]

TEXT = "The spare key hangs behind the kitchen clock."
PATHS = (
    "/dashboard/forgotten", "/dashboard/contradictions", "/dashboard/keys", "/dashboard/facts?query=key",
    "/dashboard/timeline?entity=key&key=place", "/dashboard/timeline", "/dashboard/contexts",
)  # fmt: skip


@pytest.fixture
def key(live: LiveSystem, namespace: str) -> str:
    return make_key(live, namespace, "read", "write", "admin")["x-api-key"]


@pytest.fixture
def memory(live: LiveSystem, namespace: str) -> Iterator[Client]:
    with live.client(namespace) as client:
        yield client


def text_of_page(url: str, key: str, id_: str) -> str:
    """Return the text of the page of a fact on one line."""
    page = httpx2.get(f"{url}/dashboard/facts/{id_}", headers={"x-api-key": key}).text
    return " ".join(re.sub("<[^>]*>", "", page).split())


def signed_in(tab: Page, key: str, path: str = "/dashboard/facts") -> None:
    tab.goto("/dashboard/sign-in")
    tab.get_by_label("Key").fill(key)
    tab.get_by_label("Key").press("Enter")
    tab.wait_for_url("**/")
    tab.goto(path)


def pressed(tab: Page, name: str | re.Pattern[str], said: str) -> None:
    """Press a button by keyboard, and wait for the message on the next page."""
    tab.get_by_role("button", name=name).first.press("Enter")
    tab.locator(".done").get_by_text(said).wait_for()
    tab.wait_for_load_state()


def test_the_history_of_a_fact_names_the_other_fact_once(url: str, key: str, memory: Client) -> None:
    old = memory.store(TEXT)["id"]
    new = memory.store("The spare key lies under the mat.", supersedes=old)["id"]
    for id_, said in ((new, "superseded another fact"), (old, "superseded by another fact")):
        assert said in text_of_page(url, key, id_)
        assert "another another" not in text_of_page(url, key, id_)


def hold(live: LiveSystem, ids: list[str]) -> None:
    """Let facts have ended and be held by the forget limit."""
    live.rows(
        """
        update activity set held = true, last_confirmed_at = now() - interval '12 days', due_at = 'infinity',
            expires_at = now() + interval '2 days', ends_at = now() - interval '1 day'
        where fact = any(%s::uuid[]) returning 1
        """,
        [ids],
    )


def test_a_fact_says_what_would_keep_it_and_of_a_held_one_since_when_it_is_over(
    url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    classes = ("stable", "short", "normal")
    used, stored, held = (memory.store(f"Rumour {one}.", decay_class=one)["id"] for one in classes)
    episode = memory.store("We sailed to the island.", kind="episodic")["id"]
    hold(live, [held])
    assert "Unless it is used it will be forgotten in" in text_of_page(url, key, used)
    for id_ in (stored, episode):
        assert "Unless it is stored again it will be forgotten in" in text_of_page(url, key, id_)
    kept = "ago (faded) but stays visible because of the forget limit"
    assert kept in text_of_page(url, key, held)
    assert "Ended, but is held" in text_of_page(url, key, held)
    rows = httpx2.get(f"{url}/dashboard/facts", headers={"x-api-key": key}).text.split("<tr>")
    assert [held in row for row in rows if ">held</span>" in row] == [True]
    said = live.ebb("history", held, "-n", memory.namespace).stdout
    assert kept.removeprefix("ago ") in " ".join(said.split())
    assert ", ended " in said


def test_a_fact_of_another_system_is_not_said_to_be_stored_when_it_was_last_used_there(
    url: str, key: str, memory: Client
) -> None:
    id_ = memory.store(TEXT, created_at="2020-01-01", last_seen_at="2023-01-01", decay_class="permanent")["id"]
    assert re.search(r" Stored or last used \d years ago, with a salience", text_of_page(url, key, id_))


def test_a_fact_that_no_read_returns_has_no_future_changes(url: str, key: str, memory: Client) -> None:
    id_ = memory.store(TEXT)["id"]
    assert "fingerprinted in" in text_of_page(url, key, id_)
    memory.forget([id_])
    assert "fingerprinted in" not in text_of_page(url, key, id_)


def test_a_fact_is_not_said_to_change_after_it_was_forgotten(
    url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    id_ = memory.store(TEXT)["id"]
    memory.forget([id_])
    live.rows("update events set at = now() - interval '15 days' where fact = %s returning 1", [id_])
    live.rows("update activity set last_seen_at = now() - interval '30 days' where fact = %s returning 1", [id_])
    said = text_of_page(url, key, id_)
    assert "cold" in said.partition("a salience of")[2].partition("Links")[0]
    assert "fingerprinted" not in said


def test_a_fact_that_is_no_longer_valid_is_marked_where_it_is_still_shown(
    url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    valid, over = (memory.store(f"{TEXT} {one}", valid_until="2100-01-01")["id"] for one in range(2))
    live.rows("update facts set valid_until = now() where id = %s returning 1", [over])
    assert "Valid until2100-01-01 00:00 UTC" in text_of_page(url, key, valid)
    assert ["no longer valid" in text_of_page(url, key, id_) for id_ in (valid, over)] == [False, True]
    rows = httpx2.get(f"{url}/dashboard/facts", headers={"x-api-key": key}).text.split("<tr>")
    assert [over in row for row in rows if "no longer valid" in row] == [True]


def test_a_fact_that_has_ended_is_said_to_be_found_by_who_asks_for_it(
    url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    asked, ended = (memory.store(f"{TEXT} {one}")["id"] for one in ("Asked.", "Ended."))
    memory.forget([asked])
    live.rows("update activity set expires_at = now(), due_at = now() where fact = %s returning 1", [ended])
    memory.decay()
    assert "no read returns it. It can be restored until it is purged" in text_of_page(url, key, asked)
    assert "only reads that ask for what has ended return it" in text_of_page(url, key, ended)


def test_undoing_an_edit_of_an_imported_history_changes_no_other_namespace(
    live: LiveSystem, url: str, key: str, memory: Client
) -> None:
    """The ids of two namespaces may be equal, and an archive may say anything of the past."""
    at = "2026-01-01T00:00:00Z"
    with live.client(f"{memory.namespace}-other") as other:
        id_ = other.store(TEXT, tags=["home"])["id"]
        was = {"namespace": other.namespace, "tags": ["taken"]}
        events = [{"at": at, "what": "edited", "details": {"was": was}}]
        state = {"base": 0.5, "last_seen_at": at, "last_confirmed_at": at}
        line = {"id": id_, "text": TEXT, "created_at": at, "valid_from": at, "state": state, "events": events}
        memory.import_records([line])
        with httpx2.Client(base_url=url, headers={"x-api-key": key}) as visitor:
            page = visitor.get(f"/dashboard/facts/{id_}").text
            ((token, *_),) = [re.findall(r'name="token" value="(\w+)"', page)]
            done = visitor.post(f"/dashboard/facts/{id_}/unedit", data={"token": token})
        assert done.status_code == 303
        assert (memory.fact(id_)["tags"], other.fact(id_)["tags"]) == (["taken"], ["home"])


def test_a_fact_is_pinned_edited_forgotten_and_each_is_undone(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    id_ = memory.store(TEXT, tags=["home"])["id"]
    with looking(browser, url) as tab:
        signed_in(tab, key, f"/dashboard/facts/{id_}")
        pressed(tab, "Pin", "Pinned")
        assert memory.fact(id_)["pinned"]
        pressed(tab, "Undo", "No longer pinned")
        assert not memory.fact(id_)["pinned"]
        tab.get_by_text("Edit", exact=True).press("Enter")
        tab.get_by_label("Tags").fill("home, keys")
        tab.get_by_label("Class").select_option("permanent")
        tab.get_by_label("Importance").fill("0.9")
        pressed(tab, "Save", "Changed.")
        fact = memory.fact(id_)
        assert (fact["tags"], fact["decay_class"], fact["importance"]) == (["home", "keys"], "permanent", 0.9)
        pressed(tab, "Undo", "Changed back")
        fact = memory.fact(id_)
        assert (fact["tags"], fact["decay_class"], fact["importance"]) == (["home"], "stable", 0.5)
        pressed(tab, "Forget", "Forgotten")
        assert memory.history(id_)["state"] == "forgotten: asked"
        pressed(tab, "Undo", "Restored")
        assert memory.history(id_)["state"] == "live"
        pressed(tab, "Undo", "Forgotten")
        assert memory.history(id_)["state"] == "forgotten: asked"


def test_a_restored_fact_that_nobody_asked_to_forget_is_not_forgotten_on_request_by_an_undo(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    old = memory.store("Mira lives in Rome.")["id"]
    memory.store("Mira lives in Bonn.", supersedes=old)
    with looking(browser, url) as tab:
        signed_in(tab, key, f"/dashboard/facts/{old}")
        pressed(tab, "Restore", "Restored")
        assert tab.get_by_role("button", name="Undo").count() == 0
    assert memory.history(old)["state"] == "live"


def test_a_pin_with_an_end_has_the_same_end_after_unpinning_is_undone(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    id_ = memory.store(TEXT)["id"]
    memory.pin(id_, until="2100-06-01T00:00:00Z")
    until = memory.history(id_)["pinned_until"]
    with looking(browser, url) as tab:
        signed_in(tab, key, f"/dashboard/facts/{id_}")
        pressed(tab, "Unpin", "No longer pinned")
        pressed(tab, "Undo", "Pinned again")
    assert memory.history(id_)["pinned_until"] == until


def test_what_was_done_is_not_said_again_on_the_way_back(browser: Browser, url: str, key: str, memory: Client) -> None:
    id_ = memory.store(TEXT)["id"]
    with looking(browser, url) as tab:
        signed_in(tab, key, f"/dashboard/facts/{id_}?from=list")
        pressed(tab, "Pin", "Pinned: it does not fade")
        pressed(tab, "Undo", "No longer pinned")
        tab.go_back()
        tab.get_by_role("button", name="Pin", exact=True).wait_for()
        assert tab.locator(".done").count() == 0
        assert tab.url.endswith(f"{id_}?from=list")


TWICE = """form => {
    let sent = 0;
    addEventListener("submit", (event) => { sent += !event.defaultPrevented; event.preventDefault(); });
    form.requestSubmit();
    form.requestSubmit();
    return sent;
}"""
"""Submits a form twice, and returns how often it would have been sent."""


def test_a_form_that_changes_something_is_sent_once(browser: Browser, url: str, key: str, memory: Client) -> None:
    id_ = memory.store(TEXT)["id"]
    with looking(browser, url) as tab:
        signed_in(tab, key, f"/dashboard/facts/{id_}?done=edit&fact={id_}")
        assert tab.locator("form[action$=unedit]").evaluate(TWICE) == 1


def test_an_invalid_edit_is_explained_in_its_form_with_what_was_typed(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    id_ = memory.store(TEXT, category="home")["id"]
    with looking(browser, url, expected=422) as tab:
        signed_in(tab, key, f"/dashboard/facts/{id_}")
        tab.get_by_text("Edit", exact=True).press("Enter")
        tab.get_by_label("Tags").fill("keys")
        tab.get_by_label("Class").select_option("permanent")
        tab.get_by_label("Importance").fill("much")
        tab.get_by_role("button", name="Save").press("Enter")
        assert "'much' is no number" in tab.get_by_role("alert").inner_text()
        tab.locator("#importance:focus").wait_for()  # autofocus comes with the first picture of the page
        check_axe(tab)
        typed = {name: tab.get_by_label(name, exact=True).input_value() for name in ("Tags", "Class", "Category")}
        assert typed == {"Tags": "keys", "Class": "permanent", "Category": "home"}
        tab.get_by_label("Importance").fill("90 %")
        pressed(tab, "Save", "Changed.")
        assert tab.url.partition("?")[0].endswith(f"/dashboard/facts/{id_}")
    fact = memory.fact(id_)
    assert (fact["tags"], fact["decay_class"], fact["category"]) == (["keys"], "permanent", "home")
    assert fact["importance"] == pytest.approx(0.9)


def test_an_edit_leaves_fields_alone_that_the_visitor_did_not_change(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    """A field of one line has no line breaks, and another client may change the fact while its page is open."""
    id_ = memory.store(TEXT, entity="key", key="place", value="behind\nthe clock", category="home")["id"]
    with looking(browser, url) as tab:
        signed_in(tab, key, f"/dashboard/facts/{id_}")
        tab.get_by_text("Edit", exact=True).press("Enter")
        memory.edit(id_, category="house")
        tab.get_by_label("Tags").fill("keys")
        pressed(tab, "Save", "Changed.")
        fact = memory.fact(id_)
        assert (fact["tags"], fact["value"], fact["category"]) == (["keys"], "behind\nthe clock", "house")
        tab.get_by_text("Edit", exact=True).press("Enter")
        pressed(tab, "Save", "Nothing to change")


def test_a_fact_with_the_longest_value_is_edited(browser: Browser, url: str, key: str, memory: Client) -> None:
    value = "\N{CJK UNIFIED IDEOGRAPH-6F6E}" * LONGEST_VALUE
    id_ = memory.store(TEXT, entity="key", key="place", value=value)["id"]
    with looking(browser, url) as tab:
        signed_in(tab, key, f"/dashboard/facts/{id_}")
        tab.get_by_text("Edit", exact=True).press("Enter")
        tab.get_by_label("Tags").fill("keys")
        pressed(tab, "Save", "Changed.")
    assert (memory.fact(id_)["tags"], memory.fact(id_)["value"]) == (["keys"], value)


def test_an_action_on_a_fact_that_has_changed_since_claims_nothing(url: str, key: str, memory: Client) -> None:
    id_, twin, gone = (memory.store(f"{TEXT} {name}")["id"] for name in ("Once.", "Twice.", "Never."))
    memory.forget([id_])
    memory.store(f"{TEXT} Once.", again=True, id="01a21ef6-a9a3-7384-8dcb-2657d2978d41")
    memory.forget([gone], purge=True)
    with httpx2.Client(base_url=url, headers={"x-api-key": key}, timeout=None, follow_redirects=True) as visitor:
        page = visitor.get(f"/dashboard/facts/{twin}").text
        token = re.findall(r'name="token" value="(\w+)"', page)[0]

        def answered(id_: str, action: str) -> httpx2.Response:
            sent = {"token": token, "next": "/dashboard/forgotten"}
            page = f"{url}/dashboard/forgotten?reason=asked"
            return visitor.post(f"/dashboard/facts/{id_}/{action}", data=sent, headers={"referer": page})

        for fact, status in ((id_, 409), (gone, 404)):
            answer = answered(fact, "restore")
            assert answer.status_code == status
            assert 'href="/dashboard/forgotten?reason=asked">Back to the page before' in answer.text
        assert "Nothing changed: the forget limit does not hold this fact" in answered(twin, "let-go").text
        for action in ("restore", "unpin"):
            page = answered(twin, action).text
            assert "Nothing to change: the fact is as it was." in page
            assert "Undo" not in page
    assert memory.history(twin)["state"] == "live"


def test_forgotten_facts_are_listed_and_restored(
    browser: Browser, url: str, key: str, memory: Client, live: LiveSystem
) -> None:
    asked, faded = memory.store(TEXT)["id"], memory.store("Anselm bakes at four.")["id"]
    memory.forget([asked])
    live.rows("update facts set forgotten_at = now(), forgotten_reason = 'faded' where id = %s", [faded])
    with looking(browser, url) as tab:
        signed_in(tab, key, "/dashboard/forgotten")
        assert tab.locator(".results > li").count() == 2
        tab.get_by_label("Reason").select_option("faded")
        tab.get_by_role("button", name="Show").click()
        tab.wait_for_url("**reason=faded**")
        assert tab.locator(".results > li").count() == 1
        pressed(tab, re.compile("Restore: Anselm"), "Restored")
        assert memory.history(faded)["state"] == "live"
        assert tab.url.endswith("reason=faded")


def test_held_facts_are_listed_with_the_number_of_those_that_have_no_room(
    url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    facts = [{"text": f"Guest {one} has tea.", "decay_class": "normal"} for one in range(51)]
    hold(live, [one["id"] for one in memory.store_many(facts)["results"]])
    with httpx2.Client(base_url=url, headers={"x-api-key": key}, timeout=None) as visitor:
        page = visitor.get("/dashboard/forgotten").text
        assert "Held by the forget limit: 51" in page
        assert page.count("has tea.</a>") == 50
        assert "The first 50 are listed, the others once these are decided" in page
        memory.keep([memory.held(limit=1)["held"][0]["id"]])
        page = visitor.get("/dashboard/forgotten").text
        assert page.count("has tea.</a>") == 50
        assert "The first" not in page


def test_what_agents_got_is_shown_while_the_page_is_seen_and_goes_with_its_facts(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    id_ = memory.store(TEXT)["id"]
    with looking(browser, url) as tab:
        tab.clock.install()
        signed_in(tab, key, "/dashboard/contexts")
        assert "No agent asked" in tab.locator("main").inner_text()
        memory.context("Where is the spare key?")
        eventually(lambda: "Where is the spare key?" in shown(url, key), "it is noted")

        requests: list[str] = []
        # A browser asks for the icon when it likes.
        tab.on("request", lambda sent: None if sent.url.endswith("/icon.svg") else requests.append(sent.url))
        seen(tab, hidden=True)
        tab.clock.run_for(120_000)
        assert requests == []
        seen(tab, hidden=False)
        tab.clock.run_for(1)
        tab.get_by_text("Where is the spare key?", exact=True).wait_for()
        tab.get_by_text("What it got").press("Enter")
        assert tab.get_by_role("link", name=TEXT).get_attribute("href") == f"/dashboard/facts/{id_}"
        memory.forget([id_])
        tab.reload()
        assert "No agent asked" in tab.locator("main").inner_text()


def test_an_open_overview_says_that_facts_are_held_while_they_are(
    browser: Browser, url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    ids = [memory.store(f"{TEXT} {one}", decay_class="normal")["id"] for one in range(2)]
    with looking(browser, url) as tab:
        tab.clock.install()
        signed_in(tab, key, "/")
        assert tab.get_by_role("alert").count() == 0
        hold(live, ids)
        tab.clock.run_for(10_001)
        tab.get_by_role("alert").get_by_text("2 facts have ended but stay visible").wait_for()
        memory.keep(ids)
        tab.clock.run_for(10_001)
        tab.get_by_role("alert").wait_for(state="detached")


def test_parts_of_another_namespace_are_not_put_into_a_page(
    browser: Browser, url: str, live: LiveSystem, memory: Client
) -> None:
    other = f"{memory.namespace}-other"
    memory.store(TEXT)
    with live.client(other) as theirs:
        theirs.store_many([f"Guest {number} has tea." for number in range(3)])
    live.settle()
    key = make_key(live, memory.namespace, "read", "system")
    with looking(browser, url) as tab:
        tab.clock.install()
        tab.set_extra_http_headers(key)
        tab.goto("/")
        tab.set_extra_http_headers(key | {"X-Ebb-Namespace": other})  # as another tab chooses it without keys
        tab.clock.run_for(10_001)
        tab.locator(".who").get_by_text(other, exact=True).wait_for()


def test_a_page_that_cannot_be_read_again_says_so_until_it_can(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    memory.store(TEXT)
    with looking(browser, url, expected=403) as tab:
        tab.clock.install()
        signed_in(tab, key, "/")
        tab.set_extra_http_headers({"X-Ebb-Namespace": "other"})
        tab.clock.run_for(10_001)
        tab.get_by_text("This page is not up to date").wait_for()
        check_axe(tab)
        tab.set_extra_http_headers({})
        tab.clock.run_for(10_001)
        tab.get_by_text("This page is not up to date").wait_for(state="detached")


def test_a_page_whose_session_has_ended_asks_for_a_key(
    browser: Browser, url: str, live: LiveSystem, memory: Client
) -> None:
    memory.store(TEXT)
    made = live.ebb_json("keys", "create", "--namespace", memory.namespace)
    with looking(browser, url, expected=401) as tab:
        tab.clock.install()
        signed_in(tab, made["key"], "/")
        live.ebb_json("keys", "revoke", made["id"], "--namespace", memory.namespace)
        tab.clock.run_for(10_001)
        tab.get_by_label("Key", exact=True).wait_for()


def test_what_is_live_is_said_to_be_in_however_many_contexts(
    url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    ids = [one["id"] for one in memory.store_many([f"Guest {one} has tea." for one in range(1_050)])["results"]]
    now = memory.seconds()
    with own_keys(live.redis_url) as redis:
        for start in range(0, len(ids), contexts.MOST_FACTS):
            some = ids[start : start + contexts.MOST_FACTS]
            given = contexts.ShownContext(now, "memory.recall", "Who has tea?", some)
            contexts.note(redis, memory.namespace, given, 1)
    assert (shown(url, key).count("has tea.</a>"), "not live any more" in shown(url, key)) == (1_050, False)
    assert shown(url, key).count("50 or more facts</p>") == len(ids) / contexts.MOST_FACTS


def test_facts_that_are_too_large_for_one_answer_are_shown_in_parts(
    url: str, key: str, live: LiveSystem, memory: Client
) -> None:
    ids = [one["id"] for one in memory.store_many([f"Guest {one} has tea." for one in range(40)])["results"]]
    filler = "update facts set metadata = jsonb_build_object('plan', repeat('x', 1000000)) where id = any(%s::uuid[])"
    live.rows(f"{filler} returning 1", [ids])
    with own_keys(live.redis_url) as redis:
        contexts.note(redis, memory.namespace, contexts.ShownContext(memory.seconds(), "memory.recall", "Tea?", ids), 1)
    assert shown(url, key).count("has tea.</a>") == len(ids)
    path, seen_facts, pages = "/dashboard/facts", list[str](), 0
    while path:
        text = httpx2.get(f"{url}{path}", headers={"x-api-key": key}, timeout=None).text
        seen_facts += re.findall(r"Guest \d+ has tea\.(?=</a>)", text)
        following = re.search(r'href="([^"]+)" rel="next"', text)
        path, pages = unescape(following[1]) if following else "", pages + 1
    assert (len(seen_facts), len(set(seen_facts)), pages > 1) == (len(ids), len(ids), True)
    found = httpx2.get(f"{url}/dashboard/facts?query=tea", headers={"x-api-key": key}, timeout=None).text
    assert found.count("has tea.</a>") == len(ids)


def test_a_page_behind_the_last_one_leads_to_the_newest(url: str, key: str, live: LiveSystem, memory: Client) -> None:
    ids = [one["id"] for one in memory.store_many([f"Guest {one} has tea." for one in range(3)])["results"]]
    memory.forget(ids)
    city = {"entity": "Mira", "key": "city"}
    for value in ("Rome", "Bonn", "Oslo"):
        memory.store(f"Mira lives in {value}.", value=value, **city)
    cursors = {"forgotten": memory.forgotten(limit=1)["next"], "contradictions": memory.contradictions(limit=1)["next"]}
    memory.restore(ids)
    live.rows("delete from contradictions returning 1")
    for page, cursor in cursors.items():
        path = f"/dashboard/{page}?{urlencode({'cursor': cursor})}"
        text = httpx2.get(f"{url}{path}", headers={"x-api-key": key}, timeout=None).text
        assert f'href="/dashboard/{page}' in text.partition("<h2>")[2], page


def shown(url: str, key: str) -> str:
    """Return the page of the last contexts."""
    return httpx2.get(f"{url}/dashboard/contexts", headers={"x-api-key": key}, timeout=None).text


def seen(tab: Page, *, hidden: bool) -> None:
    """Have the page believe that its tab is hidden, or that it is seen."""
    tab.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_a_contradiction_is_settled_and_opened_again(browser: Browser, url: str, key: str, memory: Client) -> None:
    city = {"entity": "Mira", "key": "city"}
    old = memory.store("Mira lives in Rome.", value="Rome", **city)["id"]
    new = memory.store("Mira lives in Bonn.", value="Bonn", **city)["id"]
    with looking(browser, url) as tab:
        signed_in(tab, key, "/")
        tab.get_by_role("link", name="settle them").press("Enter")
        tab.get_by_role("link", name="Mira: city").press("Enter")
        tab.get_by_role("heading", name="Mira: city").wait_for()
        tab.wait_for_load_state()
        assert tab.locator("tbody tr").count() == 2
        tab.goto("/dashboard/contradictions")
        pressed(tab, re.compile("Keep this: Mira lives in Bonn"), "superseded")
        assert memory.history(old)["state"].startswith("superseded")
        assert memory.contradictions()["total"] == 0
        pressed(tab, "Undo", "Restored")
        assert memory.contradictions()["total"] == 1
        pressed(tab, re.compile("Both hold"), "Both facts are accepted")
        assert memory.contradictions()["total"] == 0
        assert {memory.history(one)["state"] for one in (old, new)} == {"live"}


def test_a_contradiction_on_a_further_page_is_settled_there(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    for name in ("Anselm", "Mira"):
        for value in ("Rome", "Bonn"):
            memory.store(f"{name} lives in {value}.", entity=name, key="city", value=value)
    further = f"/dashboard/contradictions?{urlencode({'cursor': memory.contradictions(limit=1)['next']})}"
    with looking(browser, url) as tab:
        signed_in(tab, key, further)
        pressed(tab, re.compile("Keep this: Anselm lives in Bonn"), "superseded")
        assert further in tab.url
        pressed(tab, "Undo", "Restored")
        assert further in tab.url
        pressed(tab, re.compile("Both hold: Anselm"), "Both facts are accepted")
        assert further in tab.url


def test_a_timeline_is_chosen_from_the_properties_of_the_newest_facts(
    browser: Browser, url: str, key: str, memory: Client
) -> None:
    memory.store("Mira lives in Rome.", value="Rome", entity="Mira & Jo", key="city")
    memory.store(TEXT)
    with looking(browser, url) as tab:
        signed_in(tab, key, "/dashboard/timeline")
        tab.get_by_role("link", name="Mira & Jo: city").press("Enter")
        tab.wait_for_url("**entity=**")
        assert "Rome" in tab.locator("tbody tr").inner_text()


def test_facts_are_searched_without_counting_as_used(
    browser: Browser, url: str, key: str, memory: Client, live: LiveSystem
) -> None:
    memory.store_many([{"text": TEXT, "role": "user"}, {"text": "Tea is at four.", "role": "assistant"}])
    live.settle()
    with looking(browser, url) as tab:
        signed_in(tab, key)
        assert "newest first" in tab.locator(".head").inner_text()
        tab.get_by_label("Search").fill("Where is the key?")
        tab.get_by_label("Search").press("Enter")
        tab.wait_for_url("**query=**")
        assert TEXT in tab.locator("tbody tr").first.inner_text()
        assert "that fit the search best, at most 50." in tab.locator(".head").inner_text()
        tab.get_by_text("Filters").click()
        tab.get_by_label("Role").select_option("assistant")
        tab.get_by_role("button", name="Show").click()
        tab.wait_for_url("**role=assistant**")
        assert TEXT not in tab.locator("main").inner_text()
    live.settle()
    assert all(fact["recall_count"] == 0 for fact in memory.facts()["facts"])


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_the_pages_of_decisions_fit_their_window(
    browser: Browser, url: str, key: str, memory: Client, width: int, dark: bool
) -> None:
    city = {"entity": "Mira" * 30, "key": "city" * 30}
    memory.store("Mira lives in Rome." * 30, value="Rome" * 90, **city)
    memory.store("Mira lives in Bonn.", value="Bonn", **city)
    memory.forget([memory.store("A" * 400)["id"]])
    with looking(browser, url, width=width, dark=dark) as tab:
        signed_in(tab, key)
        for path in PATHS:
            check_page(tab, path)


def test_every_control_of_pages_with_actions_is_reachable_by_the_tab_key(
    browser: Browser, url: str, key: str, memory: Client, live: LiveSystem
) -> None:
    id_, gone = memory.store(TEXT, entity="key", key="place", value="clock")["id"], memory.store("A" * 40)["id"]
    memory.store("It is in the drawer.", entity="key", key="place", value="drawer")
    live.rows("update facts set forgotten_at = now(), forgotten_reason = 'faded' where id = %s", [gone])
    with looking(browser, url) as tab:
        signed_in(tab, key)
        for path in (*PATHS, f"/dashboard/facts/{id_}", "/dashboard/recall?query=key", "/dashboard/forecast"):
            tab.goto(path)
            for folded in tab.locator("main summary").all():
                folded.press("Enter")
            check_tab_key(tab)


def test_a_form_needs_the_scope_and_the_token_of_its_page(
    url: str, live: LiveSystem, namespace: str, key: str, memory: Client
) -> None:
    id_ = memory.store(TEXT)["id"]
    reader = make_key(live, namespace, "read")["x-api-key"]
    forms = {f"/dashboard/facts/{id_}/forget": {}, f"/dashboard/edit/{id_}": {"tags": "a"}}
    for own in (key, reader):
        with httpx2.Client(base_url=url, timeout=None) as client:
            client.post("/dashboard/sign-in", data={"key": own})
            page = client.get(f"/dashboard/facts/{id_}").text
            assert ("Forget" in page) == (own == key)
            token = (re.findall(r'name="token" value="(\w+)"', page) or [""])[0]
            for path, body in forms.items():
                for wrong in ({}, {"token": "x"}, {"token": token[::-1]}):
                    assert client.post(path, data=body | wrong).status_code == 403
                elsewhere = client.post(path, data=body | {"token": token}, headers={"Sec-Fetch-Site": "cross-site"})
                assert elsewhere.status_code == 403
    assert memory.history(id_)["state"] == "live"
    assert memory.fact(id_)["tags"] == []


def test_messages_are_shown_for_known_actions_and_ids_only(url: str, key: str) -> None:
    for query in ("done=forget&fact=x", "done=<b>&fact=" + "0" * 36, "done=forget&fact=%22%3E%3Cscript%3E"):
        answer = httpx2.get(f"{url}/dashboard/facts?{query}", headers={"x-api-key": key}, timeout=None)
        assert answer.status_code == 200
        assert 'class="done"' not in answer.text
