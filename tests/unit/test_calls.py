"""Requests of the library: what cannot be sent is refused with a message."""

import asyncio
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from ebb import AsyncMemory, BusyError, EbbError, InvalidInputError, LateError, Memory, NotFoundError, UnavailableError
from ebb.call import Server, call, error_of, state_call
from ebb.contract.facts import NewFact
from ebb.contract.operation import operation
from ebb.contract.recall import Recall
from ebb.contract.retention import PIN

ADDRESS = "http://127.0.0.1:9"
CIRCULAR: dict[str, Any] = {}
CIRCULAR["again"] = CIRCULAR
INSIDE_ITSELF: list[Any] = []
INSIDE_ITSELF.append(INSIDE_ITSELF)


def test_an_error_says_how_long_a_silent_server_was_waited_for() -> None:
    request = call(Server(ADDRESS, timeout=2), operation("memory.recall"), {"query": "x"})
    waited = request.arguments()["timeout"].read
    with pytest.raises(LateError, match=f"did not answer within {waited:g} s, 10 s more than"):
        request.pause(httpx.ReadTimeout(""))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": "half \ud800 a character"}, r"text: has a lone surrogate.*half \\ud800'"),
        ({"text": "x", "metadata": {"\udfff": 1}}, "metadata: has a lone surrogate"),
        ({"text": "x", "importance": float("nan")}, "importance: has a number that is infinite or not a number"),
        ({"text": b"\xff"}, "text: cannot be sent as JSON"),
        ({"text": "x", "metadata": {"a": object()}}, "metadata: cannot be sent as JSON"),
        ({"text": "x", "metadata": CIRCULAR}, "metadata: cannot be sent as JSON"),
        ({"text": "x", "tags": INSIDE_ITSELF}, "tags: cannot be sent as JSON"),
    ],
)
def test_values_that_json_cannot_hold_are_refused_before_they_are_sent(given: dict[str, Any], said: str) -> None:
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match=f"^{said}"):
        memory.store(**given)


@pytest.mark.parametrize("kind", [list, tuple, deque, iter, lambda facts: dict(enumerate(facts)).values()])
def test_objects_in_any_kind_of_list_are_sent_without_defaults(kind: Callable[[list[NewFact]], Any]) -> None:
    facts = [NewFact(text="Mira sails"), NewFact(text="Mira bakes", importance=0.5)]
    sent = call(Server(ADDRESS), operation("memory.store_many"), {"facts": kind(facts)}).body

    assert sent == b'{"facts":[{"text":"Mira sails"},{"text":"Mira bakes","importance":0.5}]}'


def test_filters_and_ids_that_cannot_be_sent_are_refused() -> None:
    with Memory(ADDRESS) as memory:
        with pytest.raises(InvalidInputError, match="lone surrogate"):
            memory.facts(tag="\ud800")
        with pytest.raises(InvalidInputError, match="lone surrogate"):
            memory.fact("\ud800")


@pytest.mark.parametrize("value", ["Jos\u00e9", "ebb_secret\n", "a\tb", "ebb_secret ", " ebb_secret"])
def test_what_no_header_can_hold_is_refused_without_showing_it(value: str) -> None:
    for given in ({"key": value}, {"namespace": value}):
        with pytest.raises(InvalidInputError, match=f"^{next(iter(given))}: .*remove it") as refused:
            Memory(ADDRESS, **given)
        assert value not in str(refused.value)
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match=r"^idempotency_key: "):
        memory.store("x", idempotency_key=value)


@pytest.mark.parametrize("value", [5, b"ebb_secret", uuid4(), True])
def test_what_is_no_text_is_refused_where_a_text_is_sent(value: Any) -> None:
    given: list[dict[str, Any]] = [{"key": value}, {"namespace": value}, {"url": value}]
    for one in given:
        with pytest.raises(
            InvalidInputError, match=f"^{next(iter(one))}: is no text, but {type(value).__name__}; give"
        ):
            Memory(**one)
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match=r"^idempotency_key: is no text"):
        memory.store("x", idempotency_key=value)


def test_an_empty_idempotency_key_is_refused() -> None:
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match=r"^idempotency_key: is empty; give"):
        memory.store("x", idempotency_key="")


@pytest.mark.parametrize(("id_", "segment"), [(".", "%2E"), ("..", "%2E%2E"), ("../x", "%2E%2E%2Fx")])
def test_an_id_is_one_segment_of_a_path_and_leads_nowhere_else(id_: str, segment: str) -> None:
    for request in (call(Server(ADDRESS), PIN, {"id": id_}), state_call(Server(ADDRESS), id_)):
        sent = httpx.Request(request.method, ADDRESS + request.path).url.raw_path.decode()
        assert sent in (f"/memory/facts/{segment}/pin", f"/tasks/{segment}")


def test_an_empty_id_is_refused() -> None:
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match=r"^id: is empty; give"):
        memory.fact("")


@pytest.mark.parametrize("seconds", [float("inf"), 1e308, 10**400])
def test_a_timeout_may_be_longer_than_any_operation(seconds: float) -> None:
    with Memory(ADDRESS, timeout=seconds, retries=0) as memory, pytest.raises(UnavailableError):
        memory.stats()


@pytest.mark.parametrize(
    ("task", "given", "seconds", "sent"),
    [
        ("memory.recall", {"query": "x"}, 5, {"timeout": 5}),
        ("memory.recall", {"query": "x"}, 1_800, {"timeout": 300.0}),
        ("memory.consolidate", {}, 5, {"timeout": 5}),
        ("memory.consolidate", {}, 1_800, {}),
    ],
)
def test_a_timeout_beyond_what_the_server_takes_leaves_a_long_operation_its_own(
    task: str, given: dict[str, Any], seconds: float, sent: dict[str, float]
) -> None:
    request = call(Server(ADDRESS, timeout=seconds), operation(task), given).arguments()
    assert {name: value for name, value in request["params"].items() if name == "timeout"} == sent
    assert request["timeout"].read == seconds + 10


def test_a_method_without_parameters_says_so() -> None:
    with Memory(ADDRESS) as memory, pytest.raises(TypeError, match=r"^memory.folders takes no arguments\.$"):
        memory.folders("x")  # type: ignore[call-arg]


def test_a_method_that_is_called_on_the_class_takes_a_memory_first_or_says_so() -> None:
    with pytest.raises(TypeError, match=r"^Memory.time_series is called on the class: make a Memory\(\) first"):
        Memory.time_series("tiers")  # type: ignore[call-arg,arg-type]
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match="lone surrogate"):
        Memory.store(memory, "half \ud800")


def test_a_memory_that_was_closed_says_what_to_do() -> None:
    with Memory(ADDRESS) as memory:
        pass
    for closed in (memory, memory.namespace("other")):
        with pytest.raises(EbbError, match=r"^This Memory was closed: make a new Memory\(\)"):
            closed.recall("Anything?")


def test_an_asynchronous_memory_that_was_closed_says_what_to_do() -> None:
    async def recalled() -> None:
        async with AsyncMemory(ADDRESS) as memory:
            pass
        await memory.recall("Anything?")

    with pytest.raises(EbbError, match=r"^This AsyncMemory was closed: make a new AsyncMemory\(\)"):
        asyncio.run(recalled())


def test_addresses_and_parameters_that_make_no_url_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"^url: Invalid port"):
        Memory("http://127.0.0.1:five")
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match=r"fit into a URL: .* give fewer"):
        memory.facts(ids=[uuid4()] * 3000)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:5556", "localhost:5556", "ftp://127.0.0.1", "http://", "", "\ud800",
        "http://a..b", "http://xn--/", "http://127.0.0.1:65536",
    ],
)  # fmt: skip
def test_an_address_that_is_none_of_the_web_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^url: .*give an address such as http://127.0.0.1:5556"):
        Memory(url)


@pytest.mark.parametrize(
    ("name", "value"),
    [("NO_PROXY", "::1/128"), ("HTTP_PROXY", "gopher://127.0.0.1"), ("SSL_CERT_FILE", "/no/such/file")],
)
def test_a_proxy_or_certificate_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    async def count() -> None:
        async with AsyncMemory(ADDRESS) as memory:
            await memory.stats()

    monkeypatch.setenv(name, value)
    with pytest.raises(EbbError, match=f"^The environment has .*{name}"):
        Memory(ADDRESS).stats()
    with pytest.raises(EbbError, match=f"^The environment has .*{name}"):
        asyncio.run(count())


@pytest.mark.parametrize("proxy", ["http://user:s3cret/x@127.0.0.1:3128", "gopher://s3cret@127.0.0.1"])
def test_the_error_about_a_proxy_quotes_nothing_of_its_address(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with Memory(ADDRESS) as memory, pytest.raises(EbbError, match=r"an address cannot be read$"):
        memory.stats()


WITHOUT_FILES = """
import errno, resource
import httpx
from ebb.connections import Connections

httpx.create_ssl_context()  # loads what it needs
resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    Connections("http://127.0.0.1:9", httpx.Limits())
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def test_too_many_open_files_are_no_fault_of_the_environment() -> None:
    found = subprocess.run([sys.executable, "-c", WITHOUT_FILES], capture_output=True, text=True, check=True)
    assert found.stdout == "EMFILE\n"


@pytest.mark.parametrize("given", [{"timeout": "5"}, {"timeout": True}, {"retries": "2"}, {"retries": 1.5}])
def test_what_is_no_number_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{next(iter(given))}: .* is no .*number.*; give one, such as"):
        Memory(ADDRESS, **given)


@pytest.mark.parametrize(
    "given",
    [
        {"timeout": 0}, {"timeout": -1.0}, {"timeout": float("nan")},
        {"connections": 0}, {"connections": None}, {"connections": float("nan")},
    ],
)  # fmt: skip
def test_numbers_that_leave_no_time_or_connection_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{next(iter(given))}: .*; give .* or more"):
        Memory(ADDRESS, **given)


def test_a_read_cannot_be_accepted() -> None:
    with Memory(ADDRESS) as memory, pytest.raises(TypeError, match=r"^memory.recall writes nothing"):
        memory.accept(Recall(query="Where is the other key?"))


@pytest.mark.parametrize("status", [404, 409])
def test_what_another_server_does_not_find_says_nothing_about_facts(status: int) -> None:
    request = httpx.Request("GET", ADDRESS)
    error = error_of(httpx.Response(status, text="<h1>Not here</h1>", request=request))
    assert type(error) is EbbError
    assert "perhaps not Ebb" in str(error)


@pytest.mark.parametrize(("status", "body"), [(500, "[" * 100_000), (304, ""), (302, "")])
def test_an_answer_without_an_address_or_an_end_is_an_error_of_another_server(status: int, body: str) -> None:
    response = httpx.Response(status, text=body, request=httpx.Request("GET", ADDRESS))
    error = error_of(response)
    assert not isinstance(error, InvalidInputError)
    assert str(error).startswith(f"127.0.0.1 answered {status} and is perhaps not Ebb")


def test_a_task_that_is_not_named_is_not_asked_for() -> None:
    with Memory(ADDRESS) as memory, pytest.raises(NotFoundError, match=r"^task: is empty"):
        memory.state("")


def test_a_text_in_place_of_the_parameters_of_a_write_is_refused() -> None:
    with (
        Memory(ADDRESS) as memory,
        pytest.raises(TypeError, match=r"str has no parameters .* such as Store\(text='…'\)"),
    ):
        memory.accept("Mira moved to Leipzig")  # type: ignore[arg-type]


def test_a_namespace_among_the_parameters_gets_a_hint() -> None:
    hint = r"namespace; it takes .*use memory\.namespace\('…'\)\.$"
    with Memory(ADDRESS) as memory, pytest.raises(TypeError, match=hint):
        memory.store("Mira moved to Leipzig", namespace="mira")  # type: ignore[call-arg]


def test_messages_name_the_address_without_its_password() -> None:
    with pytest.raises(InvalidInputError, match=r"^url: 'redis://127\.0\.0\.1:6379/0' does not begin"):
        Memory("redis://:secret@127.0.0.1:6379/0")
    for wrong in ("mira:secret@127.0.0.1", "http://mira:secret/s@127.0.0.1"):
        with pytest.raises(InvalidInputError, match=r"^url: it ") as malformed:
            Memory(wrong)
        assert "secret" not in str(malformed.value)
    assert "secret" not in repr(Server("http://mira:secret@127.0.0.1:1", key="secret"))
    with Memory("http://mira:secret@127.0.0.1:1", retries=0) as memory, pytest.raises(UnavailableError) as refused:
        memory.stats()
    assert "at http://127.0.0.1:1: " in str(refused.value)


@pytest.mark.parametrize("login", ["", "mira:secret@"])
def test_a_key_is_sent_beside_a_login_in_the_address(login: str) -> None:
    sent = dict[str, str]()

    def answer(request: httpx.Request) -> httpx.Response:
        sent.update(request.headers)
        return httpx.Response(200)

    server = Server(f"http://{login}127.0.0.1:1", key="a-key")
    with httpx.Client(base_url=server.url, transport=httpx.MockTransport(answer)) as client:
        client.get("/memory/stats", headers=server.headers())
    assert (sent.get("x-api-key") or sent["authorization"]) == ("a-key" if login else "Bearer a-key")


def test_a_redirect_is_named_and_an_odd_time_to_wait_is_left_out() -> None:
    request = httpx.Request("GET", ADDRESS)
    moved = error_of(httpx.Response(301, headers={"location": "https://ebb.example/memory"}, request=request))
    busy = error_of(httpx.Response(503, headers=[(b"retry-after", b"\xb2")], request=request))

    assert type(moved) is EbbError
    assert "redirects to 'https://ebb.example/memory'; give the address of Ebb there" in str(moved)
    assert isinstance(busy, UnavailableError)
    assert busy.retry_after is None


def test_a_busy_server_that_names_no_time_is_asked_again_after_the_usual_one() -> None:
    error = error_of(httpx.Response(429, request=httpx.Request("GET", ADDRESS)))
    assert isinstance(error, BusyError)
    assert error.retry_after == BusyError("").retry_after


FORKING = """
import os
from ebb.headers import Position

class Forking(str):
    def split(self, *_):
        if child := os.fork():
            assert os.waitpid(child, 0)[1] == 0
            return ["0", "2"]
        position.note("0/3")
        os._exit(0)

position = Position("0/1")
position.note(Forking("0/2"))
assert position.lsn == "0/2"
"""


def test_a_fork_in_the_middle_of_a_call_can_make_calls_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
