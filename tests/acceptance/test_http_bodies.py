"""Request bodies of the API: refused before they are read, bounded, and never blocking others."""

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from ebb.contract.facts import STORE_MANY
from ebb.contract.faults import MOST_FAULTS
from live_api import make_key, serving
from live_system import LiveSystem

pytestmark = pytest.mark.acceptance

BATCH = STORE_MANY.route.split()[1]
JSON = {"content-type": "application/json"}
MEBIBYTE = 1_048_576


@pytest.fixture(scope="module")
def served(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


def _first_line(client: httpx2.Client, *lines: str) -> str:
    """Return the status line in answer to a request whose body is never sent."""
    where = urlsplit(str(client.base_url))
    with socket.create_connection((where.hostname, where.port or 80)) as connection:
        connection.sendall("\r\n".join([*lines, "Host: 127.0.0.1", "", ""]).encode())
        return connection.recv(64).decode().partition("\r\n")[0]


@pytest.mark.parametrize("length", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("key", ["X-Nothing: here", "x-api-key: none", "Authorization: Bearer none"])
def test_unauthorised_requests_are_refused_before_the_body_is_read(
    live: LiveSystem, served: httpx2.Client, length: str, key: str
) -> None:
    make_key(live, "bodies")
    for path in ("/memory/facts", BATCH, "/memory/recall", "/mcp"):
        head = [f"POST {path} HTTP/1.1", "Content-Type: application/json", length, key]
        assert _first_line(served, *head).startswith("HTTP/1.1 401"), path


def test_a_body_of_one_fact_is_bounded_and_the_refusal_names_the_way_for_many(
    live: LiveSystem, served: httpx2.Client
) -> None:
    headers = JSON | make_key(live, "bodies")
    body = json.dumps({"facts": [{"text": "Mira bakes."}], "touch": True}) + " " * 2 * MEBIBYTE
    for path in ("/memory/facts", "/memory/recall", "/mcp"):
        answer = served.post(path, content=body, headers=headers)
        assert answer.status_code == 413, path
        assert f"POST {BATCH}" in answer.json()["detail"]
        assert "EBB_MAX_BODY" in answer.json()["detail"]
    assert served.post(BATCH, content=body, headers=headers).status_code == 200
    values = json.dumps({"facts": [{"text": "Mira bakes.", "metadata": {"all": [[]] * 300_000}}]})
    answer = served.post(BATCH, content=values, headers=headers)
    assert (answer.status_code, "in pieces" in answer.json()["detail"]) == (413, True)


def test_the_largest_fact_fits(live: LiveSystem, served: httpx2.Client) -> None:
    fact = {"text": "\u0001" * 65_535 + ".", "metadata": {"a": "x" * (MEBIBYTE - 9)}}
    answer = served.post("/memory/facts", json=fact, headers=make_key(live, "largest"))
    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("path", ["/memory/facts", BATCH, "/memory/recall", "/memory/settings"])
def test_of_many_faults_the_first_are_named_and_the_others_counted(
    live: LiveSystem, served: httpx2.Client, path: str
) -> None:
    many = 50_000 if path != BATCH else 200_000
    unknown: dict[str, Any] = {f"u{place:06}": 1 for place in range(many)}
    body = {"set": unknown} if path.endswith("settings") else {"text": "a", "query": "a", "facts": [{}]} | unknown
    send = served.patch if path.endswith("settings") else served.post
    answer = send(path, json=body, headers=make_key(live, "bodies", "read", "write", "admin"))
    assert answer.status_code == 422
    assert len(answer.content) < 20_000
    assert [f"u{place:06}" in answer.text for place in (0, MOST_FAULTS - 3, MOST_FAULTS)] == [True, True, False]
    assert " more faults" in answer.json()["detail"]


def test_a_fact_of_a_batch_is_answered_with_its_first_faults(live: LiveSystem, served: httpx2.Client) -> None:
    facts = [{"text": "a"} | {f"u{place:06}": 1 for place in range(100_000)}]
    answer = served.post(BATCH, json={"facts": facts}, headers=make_key(live, "bodies"))
    (result,) = answer.json()["results"]
    assert len(result["error"]) < 20_000
    assert f"and {100_000 - MOST_FAULTS} more faults" in result["error"]
