"""Generated requests of browsers, and arbitrary headers: every page answers without failing."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_api import serving
from live_system import LiveSystem
from made_up import TEXTS, examples, spoilt

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("traceback_logged")]

ONE = "0198c0de-0000-7000-8000-000000000001"
PAGES: dict[str, dict[str, Any]] = {
    "GET /": {"days": "14"},
    "GET /dashboard/facts": {"before": ONE, "tag": "a", "role": "user", "tier": "cold"},
    "GET /dashboard/facts/{id}": {},
    "GET /dashboard/forecast": {"days": "30"},
    "GET /dashboard/recall": {"query": "Mira", "limit": "3", "tag": "a", "category": "b", "as_of": "2026-01-01",
                              "why": ONE},
    "GET /dashboard/relations": {"show": "all", "entity": "Mira", "cursor": "WyJyZWxhdGlvbnMiXQ"},
    "GET /dashboard/runs": {"before": "2026-01-01T00:00:00Z", "everywhere": "true"},
    "GET /dashboard/namespaces": {"prefix": "made"},
    "POST /dashboard/namespaces": {"namespace": "made-up"},
    "GET /dashboard/sign-in": {"next": "/dashboard/facts"},
    "POST /dashboard/sign-in": {"key": "ebb_x", "next": "/dashboard/facts"},
    "POST /dashboard/sign-out": {},
    "GET /dashboard/static/{id}": {},
    "GET /dashboard/{id}": {},
    "GET /help/{id}": {},
    "GET /help/images/{id}": {},
    "GET /metrics": {},
    "GET /health/ready": {},
}  # fmt: skip
HEADERS = {
    "x-ebb-namespace": b"made-up", "x-api-key": b"ebb_x", "authorization": b"Bearer ebb_x", "idempotency-key": b"one",
    "content-type": b"application/json", "accept": b"text/html", "accept-encoding": b"gzip", "cookie": b"ebb=x; a=b",
    "origin": b"http://127.0.0.1", "referer": b"http://127.0.0.1/", "range": b"bytes=0-1", "if-none-match": b'"x"',
    "host": b"127.0.0.1", "sec-fetch-site": b"cross-site", "hx-request": b"true", "if-modified-since": b"now",
}  # fmt: skip
ASKED = {
    "POST /memory/facts": {"text": "Mira moved."},
    "POST /memory/recall": {"query": "Mira"},
    "GET /memory/stats": None,
    "GET /dashboard/facts": None,
    "POST /mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
}
SPOKEN = TEXTS.filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))
VALUES = st.one_of(
    st.binary(max_size=40).map(lambda one: bytes(byte for byte in one if byte >= 0x20 and byte != 0x7F).strip()),
    SPOKEN.map(lambda one: one.encode().translate(None, bytes(range(0x20))).strip()),
)


@pytest.fixture(scope="module")
def api(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


@pytest.mark.parametrize("page", sorted(PAGES))
@examples(8)
@given(data=st.data())
def test_any_request_of_a_browser_is_answered(api: httpx2.Client, page: str, data: st.DataObject) -> None:
    method, path = page.split(" ")
    path = path.replace("{id}", data.draw(st.sampled_from([ONE, "no-id", "%00", "..%2f..", "%ED%A0%80", "x" * 300])))
    asked = data.draw(spoilt(PAGES[page], SPOKEN))
    asked = {name: value for name, value in asked.items() if name.isprintable()}
    sent: dict[str, Any] = {"params": asked} if method == "GET" else {"data": asked}
    answer = api.request(method, path, headers={"origin": str(api.base_url).rstrip("/")}, **sent)
    assert answer.status_code < 500, answer.text
    assert answer.status_code != 405


@pytest.mark.parametrize("request_", sorted(ASKED))
@examples(12)
@given(headers=spoilt(HEADERS, VALUES).map(lambda all_: {name: all_[name] for name in HEADERS if name in all_}))
def test_headers_of_anything_are_answered(api: httpx2.Client, request_: str, headers: dict[str, bytes]) -> None:
    method, path = request_.split(" ")
    body = None if ASKED[request_] is None else json.dumps(ASKED[request_]).encode()
    given = {name: value for name, value in headers.items() if value or name != "host"}
    try:
        answer = api.request(method, path, content=body, headers=given)
    except httpx2.LocalProtocolError:
        return
    assert answer.status_code < 500, answer.text


def test_nothing_failed_unseen(traceback_logged: Callable[[], str]) -> None:
    assert not traceback_logged()
