"""Access to the dashboard: a key opens its own namespace only, and stored text is shown but never executed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx2
import pytest
from live_api import make_key
from live_browser import looking
from live_system import LiveSystem

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.acceptance

OURS, THEIRS = "The zebra is in the stable.", "The walrus is on the ice."
EVIL = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"> & \"quoted\" {{ 7 * 7 }}"


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=url, timeout=None) as client:
        yield client


@pytest.fixture(scope="module")
def ours(live: LiveSystem) -> tuple[str, str]:
    """Return a namespace with a fact, and its key; another namespace has a fact as well."""
    name = f"ours-{uuid4()}"
    for owner, text in ((name, OURS), (f"theirs-{uuid4()}", THEIRS)):
        with live.client(owner) as memory:
            memory.store(text)
    return name, make_key(live, name, "read")["x-api-key"]


def signed(client: httpx2.Client, key: str) -> str:
    """Return the cookie of a new session."""
    answer = client.post("/dashboard/sign-in", data={"key": key})
    client.cookies.clear()
    return str(answer.headers["set-cookie"]).partition(";")[0]


def test_signing_in_needs_a_key_that_opens_its_own_namespace_until_signing_out(
    browser: "Browser", url: str, ours: tuple[str, str]
) -> None:
    name, key = ours
    with looking(browser, url, expected=401) as tab:
        wanted = "/dashboard/facts?category="
        answer = tab.goto(wanted)
        assert answer is not None
        assert answer.status == 401
        tab.locator("#key:focus").wait_for()
        tab.keyboard.type("ebb_none")
        tab.keyboard.press("Enter")
        assert "revoked" in tab.get_by_role("alert").inner_text()
        tab.get_by_label("Key").fill(key)
        tab.get_by_role("button", name="Sign in").click()
        tab.wait_for_url(f"{url}{wanted}")
        assert tab.get_by_text(OURS).count() == 1
        assert tab.get_by_text(THEIRS).count() == 0
        assert name in tab.locator(".who").inner_text()
        assert tab.evaluate("document.cookie") == ""
        tab.goto("/")
        assert tab.get_by_text("the scope system").count() == 1
        tab.get_by_role("button", name="Sign out").click()
        assert tab.goto("/").status == 401  # type: ignore[union-attr]


def test_the_session_cookie_is_inaccessible_to_scripts_and_other_sites(
    client: httpx2.Client, ours: tuple[str, str]
) -> None:
    answer = client.post("/dashboard/sign-in", data={"key": ours[1], "next": "https://elsewhere.example/"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/"))
    assert "secure" not in cookie
    client.cookies.clear()


def test_a_form_in_an_encoding_of_its_senders_choice_is_not_read(client: httpx2.Client, ours: tuple[str, str]) -> None:
    body = f'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\n{ours[1]}\r\n--b--\r\n'
    kind = "multipart/form-data; boundary=b; charset=punycode"
    answer = client.post("/dashboard/sign-in", content=body, headers={"content-type": kind})
    assert (answer.status_code, "set-cookie" in answer.headers) == (415, False)
    assert "is sent as application/x-www-form-urlencoded" in answer.text


@pytest.mark.usefixtures("ours")  # with a key, as without any no visitor needs one
@pytest.mark.parametrize(
    ("page", "next_"), [("/dashboard/facts?tag=a", "/dashboard/facts?tag=a"), ("//elsewhere", "/")]
)
def test_after_a_form_without_a_session_signing_in_leads_to_its_page(
    client: httpx2.Client, page: str, next_: str
) -> None:
    url = str(client.base_url).rstrip("/")
    answer = client.post("/dashboard/namespaces", data={"namespace": "a"}, headers={"referer": f"{url}{page}"})
    assert answer.status_code == 401
    assert f'name="next" value="{next_}"' in answer.text


@pytest.mark.parametrize("path", ["//elsewhere.example/", "/dashboard/\\elsewhere.example", "javascript:alert(1)", ""])
def test_signing_in_redirects_to_no_other_host(client: httpx2.Client, ours: tuple[str, str], path: str) -> None:
    answer = client.post("/dashboard/sign-in", data={"key": ours[1], "next": path})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    client.cookies.clear()


def test_a_key_overrides_a_chosen_namespace(client: httpx2.Client, ours: tuple[str, str]) -> None:
    for cookie in ("ebb_namespace=default", f"ebb_namespace={ours[0]}"):
        answer = client.get("/dashboard/facts", headers={"x-api-key": ours[1], "cookie": cookie})
        assert OURS in answer.text
        assert client.get("/dashboard/facts", headers={"cookie": cookie}).status_code == 401


def test_a_revoked_key_loses_access_at_once(live: LiveSystem, client: httpx2.Client) -> None:
    made = live.ebb_json("keys", "create", "--namespace", "revoked")
    signed_in = {"cookie": signed(client, made["key"])}
    assert made["key"] not in signed_in["cookie"]
    assert client.get("/", headers=signed_in).status_code == 200
    live.ebb_json("keys", "revoke", made["id"], "--namespace", "revoked")
    assert client.get("/", headers=signed_in).status_code == 401


def test_the_cookie_opens_no_route_of_the_api(client: httpx2.Client, ours: tuple[str, str]) -> None:
    assert client.get("/memory/stats", headers={"cookie": signed(client, ours[1])}).status_code == 401


def test_a_session_ends_when_its_visitor_signs_out_or_redis_forgets_it(
    live: LiveSystem, client: httpx2.Client, ours: tuple[str, str]
) -> None:
    one, other = {"cookie": signed(client, ours[1])}, {"cookie": signed(client, ours[1])}
    assert one != other
    assert client.post("/dashboard/sign-out", headers=one).status_code == 303
    assert client.get("/", headers=one).status_code == 401
    assert client.get("/", headers=other).status_code == 200
    kept = list(live.own_keys.scan_iter("ebb:session:*"))
    assert all(0 < live.own_keys.ttl(name) <= 43_200 for name in kept)  # type: ignore[operator]
    live.own_keys.delete(*kept)
    assert client.get("/", headers=other).status_code == 401


def test_signing_in_again_ends_the_session_before(client: httpx2.Client, ours: tuple[str, str]) -> None:
    before = {"cookie": signed(client, ours[1])}
    client.post("/dashboard/sign-in", data={"key": "ebb_none"}, headers=before)
    assert client.get("/", headers=before).status_code == 200
    client.post("/dashboard/sign-in", data={"key": ours[1]}, headers=before)
    client.cookies.clear()
    assert client.get("/", headers=before).status_code == 401


def test_a_key_gives_access_until_it_expires(live: LiveSystem, client: httpx2.Client) -> None:
    made = live.ebb_json("keys", "create", "--namespace", "expiring", "--expires", "30d", "--label", "A month")
    with_key, signed_in = {"x-api-key": made["key"]}, {"cookie": signed(client, made["key"])}
    assert client.get("/memory/stats", headers=with_key).status_code == 200
    (listed,) = live.ebb_json("keys", "list", "--namespace", "expiring")["keys"]
    assert listed["expires_at"] > listed["created_at"]
    live.rows("update api_keys set expires_at = now() - interval '1 s' where id = %s", [made["id"]])
    live.send("memory.publish_keys", {})
    live.settle()
    assert "expired" in client.get("/memory/stats", headers=with_key).json()["detail"]
    assert client.get("/", headers=signed_in).status_code == 401
    for given, said in (("2020-01-01", "is over"), ("soon", "such as 90d"), ("0d", "whole days")):
        refused = live.ebb("keys", "create", "--namespace", "expiring", "--expires", given)
        assert refused.returncode == 1
        assert said in " ".join(refused.stderr.split())


def test_stored_text_is_shown_unchanged_and_never_executed(browser: "Browser", live: LiveSystem, url: str) -> None:
    name = f"evil-{uuid4()}"
    key = make_key(live, name, "read")
    with live.client(name) as memory:
        fact = memory.store(
            EVIL, entity=EVIL, key="</script><b>", value=EVIL, category=EVIL[:60], source=EVIL, tags=["<b>"]
        )
        other = memory.store(f"{EVIL} Again.")
        memory.link(fact["id"], other["id"], "CAUSED_BY")
    with looking(browser, url, headers=key) as tab:
        for path in ("/", "/dashboard/facts", f"/dashboard/facts/{fact['id']}", f"/dashboard/facts/{other['id']}"):
            tab.goto(path)
            assert tab.get_by_text(EVIL).count() >= 1, path
            assert "run" not in tab.title().split(" · ")[0].split(), path
            assert tab.locator("main img").count() == 0


def test_an_unknown_fact_is_not_found(client: httpx2.Client, live: LiveSystem, ours: tuple[str, str]) -> None:
    ((stranger,),) = live.rows("select id::text from facts where text = %s", [THEIRS])
    answer = client.get(f"/dashboard/facts/{stranger}", headers={"x-api-key": ours[1]})
    assert answer.status_code == 404
    assert "walrus" not in answer.text
    assert client.get("/dashboard/facts/none", headers={"x-api-key": ours[1]}).status_code == 422
