"""The library against a running system: every operation over HTTP, errors as classes, retries, and a shared pool."""

import asyncio
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from uuid import uuid4

import httpx
import psutil
import pytest
from ebb import (
    AsyncMemory,
    EbbError,
    InvalidInputError,
    LateError,
    Memory,
    NotAllowedError,
    NotFoundError,
    Rejected,
    UnavailableError,
)
from ebb.contract.facts import NewFact, Store
from ebb.contract.graph import Relate
from live_api import make_key
from live_system import LiveSystem, clean_environment, eventually

from api.up import servers

pytestmark = pytest.mark.acceptance

TEXT = "The spare key hangs behind the kitchen clock"


def test_a_fact_is_stored_recalled_used_changed_forgotten_and_restored(memory: Memory) -> None:
    stored = memory.store(TEXT, tags=["home"], metadata={"room": {"floor": 1}}, source_date=datetime.now(UTC))
    (found,) = memory.recall("Where is the other key?", limit=3).results

    assert (stored.action, found.id, found.text) == ("added", stored.id, TEXT)
    assert memory.fact(stored.id).text == TEXT
    assert memory.used([stored.id]).used == [stored.id]
    assert memory.reinforce(stored.id, boost=0.1).salience > 0.5
    assert memory.edit(stored.id, importance=0.9, tags=None).changed == ["tags", "importance"]
    assert memory.pin(stored.id, until=datetime.now(UTC) + timedelta(days=9)).pinned
    assert not memory.pin(stored.id, off=True).pinned
    assert memory.forget([str(stored.id)]).results[0].action == "forgotten"
    assert [one.id for one in memory.forgotten().facts] == [stored.id]
    assert memory.forgotten(asked=False).facts == []
    assert memory.restore([stored.id]).results is not None
    assert memory.history(stored.id).events[0].what == "stored"
    injected = memory.context("Where is the key?", format="short")
    assert TEXT in injected.context
    assert [one.line for one in injected.facts] == [TEXT]


def test_many_facts_are_stored_at_once_from_objects_and_dictionaries(memory: Memory) -> None:
    answers = memory.store_many([NewFact(text="Mira sails", entity="Mira"), {"text": "Anselm bakes"}, {"text": ""}])

    assert [None if isinstance(one, Rejected) else one.action for one in answers.results] == ["added", "added", None]
    assert memory.lookup("Mira").results[0].text == "Mira sails"
    assert {one.text for one in memory.facts().facts} == {"Mira sails", "Anselm bakes"}


def test_a_text_stands_for_an_object_with_only_this_at_every_door(
    memory: Memory, live: LiveSystem, namespace: str
) -> None:
    texts, questions = [TEXT, " ", "The kettle whistles"], ["Where is the key?", " ", {"query": "Where is the key?"}]
    with live.client(namespace) as client:
        batch = {"facts": texts, "namespace": namespace}
        done = [client.store_many(texts), client.call("memory.store_many", batch, 60)]
        asked = client.call("memory.recall_many", {"queries": questions, "namespace": namespace}, 60)["answers"]
        with pytest.raises(InvalidInputError, match=r"facts: .*list"):
            client.store_many(TEXT)
    rows = [row for answer in done for row in answer["results"]]
    assert [row.get("action") for row in rows] == ["added", None, "added", "duplicate", None, "duplicate"]
    stored = memory.store_many(texts).results
    assert [None if isinstance(row, Rejected) else row.action for row in stored] == ["duplicate", None, "duplicate"]
    answers = [one.model_dump(mode="json") for one in memory.recall_many(questions).answers]
    for found in (asked, answers):
        assert [[one["text"] for one in each.get("results", [])] for each in found] == [[TEXT], [], [TEXT]]
    assert asked[1]["error"] == answers[1]["error"]


def test_parameters_that_have_other_names_over_http_reach_their_operation(memory: Memory) -> None:
    edge = memory.relate("Mira", "Leipzig", "lives in", weight=0.5)
    preview = memory.decay_relations(dry_run=True)
    stored = memory.store(TEXT)

    assert (edge.source, edge.target, preview.processed) == ("Mira", "Leipzig", 1)
    assert memory.unrelate("Mira", "Leipzig", "lives in").removed == 1
    assert memory.relations().edges == []
    assert memory.branch(30).facts == 1
    assert len(memory.drop_branch(30).dropped) == 1
    assert memory.runs(everything=True).runs is not None
    assert memory.decay(dry_run=True).processed >= 0
    assert memory.settings({"hygiene.schedule": "manual"}).changed
    other = memory.store("The cat sleeps on the stove")
    assert memory.link(stored.id, other.id, "RELATED_TO").strength == 1.0
    assert memory.neighbours(stored.id).total == 1
    assert memory.unlink(stored.id, other.id).removed == 1
    assert len(memory.curve(stored.id).at) > 1


def test_null_asks_for_relations_in_use_and_for_those_that_are_not(memory: Memory) -> None:
    memory.relate("Mira", "Leipzig", "lives in")
    memory.relate("Mira", "Halle", "left", last_observed=datetime(2020, 1, 1, tzinfo=UTC))
    assert [edge.decayed for edge in memory.relations(decayed=None).edges] == [False, True]


def test_items_and_documents_are_put_found_and_dropped(memory: Memory) -> None:
    put = memory.put_item(["users", "1"], "drink", '{"text": "likes green tea"}', text="likes green tea")
    indexed = memory.index("notes/boat.md", [{"section": "Sail", "text": "The sail is red"}], "0" * 64)

    assert [one.key for one in memory.items(["users"], query="tea").items] == ["drink"]
    assert put.id is not None
    assert memory.item_paths().paths == [["users", "1"]]
    assert memory.drop_item(["users", "1"], "drink").dropped
    assert (indexed.added, [one.path for one in memory.documents("notes").documents]) == (1, ["notes/boat.md"])
    assert memory.unindex(["notes/boat.md"]).removed == 1


def test_operators_ask_about_passes_and_the_system(memory: Memory) -> None:
    assert memory.prune(dry_run=True).expired == 0
    assert memory.backfill(dry_run=True).examined == 0
    assert memory.purge(dry_run=True).purged == 0
    assert memory.doctor().faults == []
    assert memory.stats().facts == 0
    assert len(memory.forecast(days=2).days) == 2
    assert memory.system_time_series(1).at is not None


def test_no_ids_are_not_all_facts(memory: Memory) -> None:
    memory.store(TEXT)
    with pytest.raises(InvalidInputError, match="ids: list should have at least 1 item"):
        memory.facts(ids=[])
    assert memory.forecast(set=[]).days


def test_another_namespace_has_the_same_connections_and_other_facts(memory: Memory) -> None:
    other = memory.namespace(f"other-{uuid4()}")
    other.store(TEXT)
    other.close()

    assert memory.stats().facts == 0
    assert other.stats().facts == 1


def test_a_write_is_accepted_and_its_state_reported(memory: Memory) -> None:
    accepted = memory.accept(Store(text=TEXT))
    related = memory.accept(Relate(source="Mira", target="Leipzig", type="lives in"), idempotency_key="once")
    again = memory.accept(Relate(source="Mira", target="Leipzig", type="lives in"), idempotency_key="once")

    eventually(lambda: memory.state(accepted.task).state == "done", "the fact is stored")
    assert memory.facts().facts[0].id == accepted.id
    assert related.task == again.task


def test_errors_are_classes_that_say_what_to_do(memory: Memory, url: str, live: LiveSystem, namespace: str) -> None:
    with pytest.raises(NotFoundError, match="no live fact"):
        memory.fact(uuid4())
    with pytest.raises(InvalidInputError, match=r"^limit: .* given 100000\.$"):
        memory.recall("Where?", limit=100_000)
    with pytest.raises(InvalidInputError, match=r"^source: .* given ''; last_observed: .* given 'noon'\.$"):
        memory.relate("", "Leipzig", "lives in", last_observed="noon")
    with pytest.raises(InvalidInputError, match=r"^older: .* given 'x'\.$"):
        memory.branch("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no parameter colour"):
        memory.recall("Where?", colour="red")  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match=r"^url: .* does not begin with http://HOST"):
        Memory("127.0.0.1")
    with pytest.raises(UnavailableError, match="ebb up"), Memory(f"http://127.0.0.1:{servers.free_port()}") as lost:
        lost.stats()
    key = make_key(live, namespace, "read")["x-api-key"]
    with pytest.raises(NotAllowedError, match="scope 'write'"), Memory(url, key=key) as reader:
        reader.store(TEXT)
    live.rows("delete from api_keys")
    live.send("memory.publish_keys", {}).get()


class Between(BaseHTTPRequestHandler):
    """A proxy in front of Ebb that answers the first requests by `statuses`, where 0 closes the connection."""

    upstream: ClassVar[str] = ""
    statuses: ClassVar[list[int]] = []
    seen: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append(self.headers["idempotency-key"])
        answer = httpx.post(self.upstream + self.path, content=body, headers=dict(self.headers), timeout=60)
        status = self.statuses.pop(0) if self.statuses else answer.status_code
        if status:
            self.send_response(status)
            self.send_header("content-length", str(len(answer.content)))
            self.send_header("retry-after", "0")
            self.end_headers()
            self.wfile.write(answer.content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def between(url: str, namespace: str) -> Iterator[Memory]:
    Between.upstream, Between.statuses, Between.seen = url.rstrip("/"), [], []
    with ThreadingHTTPServer(("127.0.0.1", 0), Between) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Memory(f"http://127.0.0.1:{server.server_port}", namespace=namespace) as memory:
            yield memory
        server.shutdown()


def test_a_write_that_is_sent_again_is_done_once(memory: Memory, between: Memory) -> None:
    other = memory.namespace(f"other-{uuid4()}")
    sent_once, sent_again = other.store(TEXT).id, memory.store(TEXT).id
    Between.statuses = [0, 503]
    between.reinforce(sent_again)

    assert len(Between.seen) == 3
    assert len(set(Between.seen)) == 1
    assert memory.fact(sent_again).salience == pytest.approx(other.reinforce(sent_once).salience, abs=1e-3)


def test_permanent_errors_are_not_retried(between: Memory) -> None:
    Between.statuses = [504, 400]
    with pytest.raises(LateError, match=r"perhaps not Ebb"):
        between.recall("Where is the other key?")
    with pytest.raises(InvalidInputError):
        between.recall("Where is the other key?")
    Between.statuses = [503, 503, 503]
    with pytest.raises(UnavailableError):
        between.recall("Where is the other key?")

    assert len(Between.seen) == 5


@pytest.mark.slow
def test_sixty_recalls_at_once_share_a_few_connections(memory: Memory, url: str, namespace: str) -> None:
    memory.store(TEXT)
    port = int(url.rstrip("/").rpartition(":")[2])

    def connections() -> int:
        return sum(bool(one.raddr) and one.raddr.port == port for one in psutil.Process().net_connections("tcp"))

    others = connections()

    async def ask() -> tuple[list[str], int]:
        async with AsyncMemory(url, namespace=namespace, connections=10) as asked:
            answers = await asyncio.gather(*(asked.recall("Where is the other key?") for _ in range(60)))
            return [answer.results[0].text for answer in answers], connections() - others

    texts, opened = asyncio.run(ask())
    assert texts == [TEXT] * 60
    assert 0 < opened <= 10


def test_the_asynchronous_library_does_the_same(url: str, namespace: str) -> None:
    async def use() -> None:
        async with AsyncMemory(url, namespace=namespace) as memory:
            accepted = await memory.accept(Store(text=TEXT))
            while (await memory.state(accepted.task)).state != "done":
                pass
            assert (await memory.namespace(f"{namespace}-other").stats()).facts == 0
            assert (await memory.stats()).facts == 1
            with pytest.raises(NotFoundError):
                await memory.fact(uuid4())

    asyncio.run(use())


def test_cancelled_calls_leave_their_connections_to_others(url: str, namespace: str) -> None:
    async def use() -> int:
        async with AsyncMemory(url, namespace=namespace, connections=1) as memory:
            await memory.store(TEXT)
            for steps in range(100):
                asked = asyncio.create_task(memory.recall("Where is the other key?"))
                for _ in range(steps):
                    await asyncio.sleep(0)
                asked.cancel()
                await asyncio.wait({asked})
            return len((await memory.recall("Where is the other key?")).results)

    assert asyncio.run(use()) == 1


def test_an_interrupted_call_leaves_its_connection_to_others(
    url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with Memory(url, namespace=namespace, connections=1) as memory:
        with monkeypatch.context() as patch:
            patch.setattr("httpcore._sync.connection_pool.PoolRequest.wait_for_connection", interrupt)
            with pytest.raises(KeyboardInterrupt):
                memory.recall("Where is the other key?")

        assert memory.recall("Where is the other key?").results == []


def test_calls_under_way_end_when_the_memory_is_closed(url: str, namespace: str) -> None:
    async def use() -> list[Any]:
        memory = AsyncMemory(url, namespace=namespace, connections=1)
        calls = [asyncio.create_task(memory.store(TEXT)) for _ in range(2)]
        await asyncio.sleep(0)
        await memory.close()
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second = asyncio.run(use())
    assert first.action == "added"
    assert isinstance(second, EbbError)


def test_an_event_loop_does_not_use_the_connections_of_another_one(url: str, namespace: str) -> None:
    memory = AsyncMemory(url, namespace=namespace)

    async def use() -> str:
        async with memory:
            return (await memory.store(TEXT)).action

    assert [asyncio.run(use()) for _ in range(3)] == ["added", "duplicate", "duplicate"]


LOOPS = """
import asyncio, gc, sys
import psutil
from ebb import AsyncMemory

memory = AsyncMemory(sys.argv[1], namespace=sys.argv[2])
for _ in range(10):
    asyncio.run(memory.recall("Where is the other key?"))
gc.collect()
found = psutil.Process().net_connections()
assert len(found) <= 2, found
"""


@pytest.mark.slow
def test_event_loops_that_are_over_leave_no_connections_open(url: str, namespace: str) -> None:
    command = [sys.executable, "-c", LOOPS, url, namespace]
    done = subprocess.run(command, env=clean_environment({}), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


FORKING = """
import os, sys
from ebb import Memory

url, *namespaces = sys.argv[1:]
memory = Memory(url, namespace=namespaces[0])
for name in namespaces:
    memory.namespace(name).store(f"The spare key of {name} hangs behind the clock")
mine, children = namespaces[0], []
for name in namespaces[1:]:
    if child := os.fork():
        children.append(child)
    else:
        mine, children = name, []
        break
memory = memory.namespace(mine)
for _ in range(50):
    (found,) = memory.recall("Where is the spare key?").results
    assert mine in found.text, f"{mine}: {found.text}"
assert not any(os.waitpid(child, 0)[1] for child in children)
"""


@pytest.mark.slow
def test_a_fork_does_not_read_the_answers_of_its_parent(url: str, namespace: str) -> None:
    command = [sys.executable, "-c", FORKING, url, *(f"{namespace}-{number}" for number in range(4))]
    done = subprocess.run(command, env=clean_environment({}), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda memory: pickle.loads(pickle.dumps(memory))])
def test_a_copy_has_connections_of_its_own(memory: Memory, copied: Callable[[Memory], Memory]) -> None:
    memory.store(TEXT)
    with copied(memory) as other:
        assert other.facts().facts[0].text == TEXT
    with copied(memory.namespace("elsewhere")) as other:
        assert other.facts().facts == []
    assert memory.facts().facts[0].text == TEXT


def test_a_copy_for_asyncio_has_connections_of_its_own(url: str, namespace: str) -> None:
    async def use() -> list[int]:
        async with AsyncMemory(url, namespace=namespace) as memory:
            await memory.store(TEXT)
            async with pickle.loads(pickle.dumps(memory)) as other:
                return [(await one.stats()).facts for one in (memory, other)]

    assert asyncio.run(use()) == [1, 1]


class Elsewhere(BaseHTTPRequestHandler):
    """A server that answers everything with a page."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<p>Welcome</p>")

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def test_an_answer_of_another_server_is_an_error_of_ebb() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with (
            Memory(f"http://127.0.0.1:{server.server_port}") as memory,
            pytest.raises(EbbError, match=r"perhaps not Ebb.*Welcome"),
        ):
            memory.recall("Where is the other key?")
        server.shutdown()


class Garbled(Elsewhere):
    """A server whose answers are not compressed, although it says so."""

    def end_headers(self) -> None:
        self.send_header("content-encoding", "gzip")
        super().end_headers()


def test_an_answer_that_cannot_be_read_is_an_error_of_ebb() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Garbled) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with (
            Memory(f"http://127.0.0.1:{server.server_port}", retries=0) as memory,
            pytest.raises(UnavailableError, match="decompressing"),
        ):
            memory.recall("Where is the other key?")
        server.shutdown()


def test_a_task_is_no_path_to_something_else(memory: Memory) -> None:
    with pytest.raises(NotFoundError):
        memory.state("../memory/stats")
