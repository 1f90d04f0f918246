"""Request bodies of the API: refused before they are read, bounded, and never blocking others."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx2
import pytest
from ebb.contract.documents import LONGEST_UPLOAD
from ebb.contract.facts import STORE_MANY
from ebb.contract.faults import MOST_FAULTS
from ebb.contract.values import MOST_RESULTS
from live_api import make_key, serving
from live_system import LiveSystem, eventually

pytestmark = pytest.mark.acceptance

BATCH = STORE_MANY.route.split()[1]
JSON = {"content-type": "application/json"}
MEBIBYTE = 1_048_576


@pytest.fixture(scope="module")
def served(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


def _connect(client: httpx2.Client) -> socket.socket:
    where = urlsplit(str(client.base_url))
    return socket.create_connection((where.hostname, where.port or 80))


def _first_line(client: httpx2.Client, *lines: str) -> str:
    """Return the status line in answer to a request whose body is never sent."""
    with _connect(client) as connection:
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
    answer = served.post("/memory/facts", content=body, headers=headers)
    assert answer.status_code == 413
    assert f"POST {BATCH}" in answer.json()["detail"]
    assert "EBB_MAX_BODY" in answer.json()["detail"]
    assert served.post(BATCH, content=body, headers=headers).status_code == 200
    values = json.dumps({"facts": [{"text": "Mira bakes.", "metadata": {"all": [[]] * 300_000}}]})
    for path in (BATCH, "/mcp"):
        answer = served.post(path, content=values, headers=headers)
        assert (answer.status_code, "in pieces" in answer.json()["detail"]) == (413, True), path
    answer = served.post("/mcp", content=b" [{}, {}]", headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (400, "body: is a list; send one message at a time.")


@pytest.mark.parametrize("path", ["/memory/facts", "/mcp"])
@pytest.mark.parametrize("sent", ["Content-Length: 100\r\n\r\n[", "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n"])
def test_a_client_that_disconnects_in_the_middle_of_its_body_is_no_error_of_the_server(
    live: LiveSystem, served: httpx2.Client, path: str, sent: str
) -> None:
    ((name, key),) = make_key(live, "bodies").items()
    head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", f"{name}: {key}"]
    accepts = "Accept: application/json, text/event-stream"
    log = live.folder / "api.log"
    before = log.stat().st_size
    with _connect(served) as connection:
        connection.sendall("\r\n".join([*head, accepts, sent]).encode())
    found = eventually(lambda: re.search(f"POST {path} (\\d+) in", _after(log, before)), "the request is logged")
    assert (found[1], "Traceback" in _after(log, before)) == ("499", False)


def _after(log: Path, place: int) -> str:
    return log.read_bytes()[place:].decode()


def test_a_body_with_two_lengths_is_refused_and_hides_no_further_request(served: httpx2.Client) -> None:
    with _connect(served) as client:
        client.settimeout(60)
        client.sendall(
            b"POST /memory/facts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        answered = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answered.startswith(b"HTTP/1.1 400 ")
    assert answered.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "address",
    [
        "/memory/facts?" + "&".join(f"ids={uuid4()}" for _ in range(MOST_RESULTS)),
        "/dashboard/recall?query=" + quote("\N{WATER WAVE}") * 8_000,
    ],
    ids=["ids", "question"],
)
def test_a_long_address_may_arrive_in_pieces(live: LiveSystem, served: httpx2.Client, address: str) -> None:
    ((name, key),) = make_key(live, "bodies").items()
    head = f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n{name}: {key}\r\n\r\n".encode()
    with _connect(served) as connection:
        connection.sendall(head[:-1])
        assert served.get("/health/live").status_code == 200  # until then the API has read this much
        connection.sendall(head[-1:])
        assert connection.recv(64).startswith(b"HTTP/1.1 200 ")


def test_a_body_of_unknown_length_is_bounded(live: LiveSystem, served: httpx2.Client) -> None:
    headers = JSON | make_key(live, "bodies") | {"accept": "application/json, text/event-stream"}
    for path in ("/memory/recall", "/mcp"):
        answer = served.post(path, content=iter([b" " * MEBIBYTE] * 17), headers=headers)
        assert (answer.status_code, "bytes, the most here" in answer.text) == (413, True), path


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("POST", "/memory/recall", "Shorten it; a text has at most EBB_MAX_TEXT bytes."),
        ("PUT", "/memory/items", "Many items go to PUT /memory/items/batch, which takes up to EBB_MAX_BODY bytes"),
        ("PUT", "/memory/items/batch", "Send it in pieces, or raise EBB_MAX_BODY."),
        ("POST", "/mcp", "Send it in pieces, or raise EBB_MAX_BODY."),
        ("POST", "/dashboard/keys", "Shorten what the form sends."),
    ],
)
def test_the_refusal_of_a_long_body_says_what_to_do_on_its_route(
    live: LiveSystem, served: httpx2.Client, method: str, path: str, said: str
) -> None:
    body, headers = b" " * 17 * MEBIBYTE, JSON | make_key(live, "bodies")
    answer = served.request(method, path, content=body, headers=headers)
    assert answer.status_code == 413
    assert said in " ".join(answer.text.split())
    assert "facts" not in answer.text


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


def test_an_agent_uploads_a_file_as_long_as_one_may_be(live: LiveSystem, served: httpx2.Client) -> None:
    headers = JSON | make_key(live, f"bodies-{uuid4()}") | {"accept": "application/json"}
    text = ("\N{WATER WAVE}" * 99 + " ") * (LONGEST_UPLOAD // 100)
    params = {"name": "upload", "arguments": {"path": "notes/sea.md", "text": text}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = served.post("/mcp", content=json.dumps(message), headers=headers)  # six bytes for each character
    assert answer.status_code == 200, answer.text
    assert not answer.json()["result"]["isError"], answer.text
