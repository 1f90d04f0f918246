"""Keys on the dashboard in a real browser: created, shown once, given an expiry, and revoked by who may."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx2
import pytest
from live_api import make_key
from live_browser import LOOKS, check_axe, check_page, check_width, looking
from live_system import LiveSystem
from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

ALL = ("read", "write", "admin", "system")
OF_ADMIN = ("--scope", "read", "--scope", "admin")


def signed_in(tab: Page, key: str) -> None:
    tab.goto("/dashboard/sign-in?next=/dashboard/keys")
    tab.get_by_label("Key").fill(key)
    tab.get_by_label("Key").press("Enter")
    tab.wait_for_url("**/dashboard/keys")


def shown_key(tab: Page) -> str:
    """Return the key that a page shows after it was created."""
    tab.get_by_role("heading", name="The new key, shown only now").wait_for()
    tab.wait_for_load_state()
    return tab.locator(".made .command code").inner_text()


def status(url: str, key: str) -> int:
    return httpx2.get(f"{url}/memory/stats", headers={"x-api-key": key}, timeout=None).status_code


def listed(live: LiveSystem, namespace: str, label: str) -> dict[str, str]:
    (found,) = [one for one in live.ebb_json("keys", "list", "--namespace", namespace)["keys"] if one["label"] == label]
    return found


def form_of(client: httpx2.Client) -> dict[str, str]:
    """Return the hidden fields of the form that creates a key."""
    page = client.get("/dashboard/keys").text.partition("Create a key")[2]
    return dict(re.findall(r'name="(token|id)" value="([\w-]+)"', page))


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_key_is_created_shown_once_given_an_expiry_and_revoked_by_keyboard(
    browser: Browser, live: LiveSystem, url: str, namespace: str, width: int, dark: bool
) -> None:
    with looking(browser, url, width=width, dark=dark) as tab:
        signed_in(tab, make_key(live, namespace, *ALL)["x-api-key"])
        check_page(tab, "/dashboard/keys")
        assert not re.search("`|</?code>", tab.locator("main").inner_text())
        tab.get_by_label("Label").fill("Laptop" * 9)
        tab.get_by_label("Label").press("Tab")
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.value") == "read"
        tab.keyboard.press("Enter")
        key = shown_key(tab)
        check_axe(tab)
        check_width(tab)
        made = listed(live, namespace, "Laptop" * 9)
        assert (made["scopes"], status(url, key)) == (["read", "write"], 200)
        assert "T" in made["expires_at"]

        tab.goto("/dashboard/keys")
        assert key not in tab.content()
        row = tab.locator("tbody tr").filter(has_text=made["id"])
        row.locator("summary").press("Enter")
        check_axe(tab)
        check_width(tab)
        row.get_by_label("Expires").select_option("")
        row.get_by_role("button", name="Save").press("Enter")
        tab.locator(".done").get_by_text("Changed").wait_for()
        assert listed(live, namespace, "Laptop" * 9)["expires_at"] is None

        row.locator("summary").press("Enter")
        row.get_by_role("button", name="Revoke").press("Enter")
        tab.locator(".done").get_by_text("stays revoked").wait_for()
        tab.wait_for_load_state()
        assert tab.locator(".done button").count() == 0
        assert row.get_by_text("revoked", exact=True).count() == 1
        assert row.get_by_role("button").count() == 0
        assert status(url, key) == 401


def test_the_first_key_of_a_system_signs_its_maker_in(browser: Browser, live: LiveSystem, url: str) -> None:
    live.rows("delete from api_keys")
    live.send("memory.publish_keys", {}).get()
    with looking(browser, url) as tab:
        tab.goto("/dashboard/keys")
        tab.get_by_text("no key yet").wait_for()
        tab.get_by_role("button", name="Create").press("Enter")
        key = shown_key(tab)
        assert tab.get_by_text("From now on every request needs a key").count() == 1
        assert httpx2.get(f"{url}/memory/stats", timeout=None).status_code == 401
        assert status(url, key) == 200
        tab.get_by_role("link", name="Keys and limits").press("Enter")
        tab.get_by_text("yours").wait_for()
        assert "system" in tab.locator("tbody tr").first.inner_text()


def test_reloading_after_the_first_key_says_that_it_was_made(live: LiveSystem, url: str) -> None:
    live.rows("delete from api_keys")
    live.send("memory.publish_keys", {}).get()
    with httpx2.Client(base_url=url, timeout=None) as client:
        form = form_of(client) | {"scopes": ["read", "admin"]}
        assert "ebb_" in client.post("/dashboard/keys", data=form).text
        again = client.post("/dashboard/keys", data=form)
        assert (again.status_code, "shown once" in again.text) == (422, True)
        assert client.post("/dashboard/keys", data=form | {"id": str(uuid4())}).status_code == 403


def test_keys_are_listed_without_their_secret_for_administrators(url: str, live: LiveSystem, namespace: str) -> None:
    reader, admin = (make_key(live, namespace, "read", *more) for more in ((), ("admin",)))
    made = live.ebb_json("keys", "create", "--namespace", namespace, "--label", "Laptop", "--expires", "2090-01-01")
    live.ebb("keys", "revoke", made["id"], "--namespace", namespace)
    assert httpx2.get(f"{url}/dashboard/keys", headers=reader, timeout=None).status_code == 403
    shown = httpx2.get(f"{url}/dashboard/keys", headers=admin, timeout=None).text
    assert made["id"] in shown
    assert made["key"] not in shown
    assert all(part in shown for part in ("Laptop", ">revoked<", "2090-01-01", "EBB_MAX_REQUESTS"))
    assert ">Lanes<" not in shown
    system = make_key(live, namespace, *ALL)
    assert ">Lanes<" in httpx2.get(f"{url}/dashboard/keys", headers=system, timeout=None).text
    stranger = make_key(live, f"{namespace}-stranger", "read", "admin")
    assert "Laptop" not in httpx2.get(f"{url}/dashboard/keys", headers=stranger, timeout=None).text


def test_no_key_grants_or_ends_more_than_its_maker_has(url: str, live: LiveSystem, namespace: str) -> None:
    system = live.ebb_json("keys", "create", "--namespace", namespace, "--scope", "system", "--scope", "read")
    theirs = live.ebb_json("keys", "create", "--namespace", f"{namespace}-other")
    admin = make_key(live, namespace, "read", "write", "admin")
    with httpx2.Client(base_url=url, timeout=None) as client:
        client.post("/dashboard/sign-in", data={"key": admin["x-api-key"]})
        form = form_of(client)
        for scopes, answer in ((["system"], 403), (["read", "system"], 403), ([], 422), (["none"], 422)):
            assert client.post("/dashboard/keys", data=form | {"scopes": scopes}).status_code == answer, scopes
        for id_, answer in ((system["id"], 403), (theirs["id"], 404), (str(uuid4()), 404)):
            for action in ("revoke", "expire"):
                done = client.post(f"/dashboard/keys/{id_}/{action}", data=form | {"expires": "7"})
                assert done.status_code == answer, (id_, action)
    assert status(url, theirs["key"]) == 200


def test_no_key_outlasts_its_maker(url: str, live: LiveSystem, namespace: str) -> None:
    admin = ("--namespace", namespace, "--scope", "read", "--scope", "admin")
    made = live.ebb_json("keys", "create", *admin, "--label", "Brief", "--expires", "20d")
    with httpx2.Client(base_url=url, timeout=None) as client:
        client.post("/dashboard/sign-in", data={"key": made["key"]})
        form = form_of(client) | {"scopes": "read", "label": "Guest"}
        for expires, answer in (("", 403), ("30", 403), ("7", 200)):
            done = client.post("/dashboard/keys", data=form | {"expires": expires})
            assert (done.status_code, "your own key ends at" in done.text) == (answer, answer == 403), expires
        for expires, answer in (("", 403), ("90", 403), ("7", 303)):
            change = f"/dashboard/keys/{made['id']}/expire"
            assert client.post(change, data=form | {"expires": expires}).status_code == answer, expires
    assert listed(live, namespace, "Brief")["expires_at"] < made_in(20)


def test_who_gives_an_end_to_the_own_key_is_told_that_no_later_one_is_possible(
    url: str, live: LiveSystem, namespace: str
) -> None:
    own, other = (live.ebb_json("keys", "create", "--namespace", namespace, *OF_ADMIN) for _ in range(2))
    with httpx2.Client(base_url=url, timeout=None, follow_redirects=True) as client:
        client.post("/dashboard/sign-in", data={"key": own["key"]})
        assert client.get("/dashboard/keys").text.count("Once it has an end, you can give no key a later one") == 1
        form = form_of(client) | {"expires": "30"}
        for key, said in ((other, "until the key expires"), (own, "you can give it an earlier end only")):
            page = client.post(f"/dashboard/keys/{key['id']}/expire", data=form).text
            assert said in page.partition("Changed")[2], said


def made_in(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def test_a_form_makes_a_key_of_the_namespace_that_its_page_shows_alone(
    url: str, live: LiveSystem, namespace: str
) -> None:
    key, other = make_key(live, namespace, *ALL), {"X-Ebb-Namespace": f"{namespace}-other"}
    with httpx2.Client(base_url=url, headers=key, timeout=None) as client:
        form = form_of(client) | {"scopes": "read", "label": "Here"}
        assert client.post("/dashboard/keys", data=form, headers=other).status_code == 403
        assert client.post("/dashboard/keys", data=form).status_code == 200
    assert live.ebb_json("keys", "list", "-n", f"{namespace}-other")["keys"] == []


def test_forms_of_keys_need_the_scope_and_the_token_and_make_one_key(
    url: str, live: LiveSystem, namespace: str
) -> None:
    admin, writer = make_key(live, namespace, "read", "write", "admin"), make_key(live, namespace, "read", "write")
    with httpx2.Client(base_url=url, timeout=None) as client:
        client.post("/dashboard/sign-in", data={"key": admin["x-api-key"]})
        form = form_of(client) | {"scopes": "read", "label": "Once"}
        assert client.post("/dashboard/keys", data=form | {"token": "x"}).status_code == 403
        assert client.post("/dashboard/keys", data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert client.post("/dashboard/keys", data=form).status_code == 200
        again = client.post("/dashboard/keys", data=form)
        assert (again.status_code, "shown once" in again.text, "ebb_" in again.text) == (422, True, False)
        made = listed(live, namespace, "Once")
        live.ebb("keys", "revoke", made["id"], "--namespace", namespace)
        revived = client.post(f"/dashboard/keys/{made['id']}/expire", data=form | {"expires": ""})
        assert (revived.status_code, listed(live, namespace, "Once")["revoked_at"] is None) == (422, False)
        client.post("/dashboard/sign-out")
        client.post("/dashboard/sign-in", data={"key": writer["x-api-key"]})
        assert client.post("/dashboard/keys", data=form).status_code == 403
