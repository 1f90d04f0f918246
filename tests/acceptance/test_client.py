"""The Python client: a method for every task, writes without waiting, deadlines, and use by many threads."""

import gc
import inspect
import re
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any
from uuid import uuid4

import psutil
import pytest
import redis
from ebb.methods import Method, Operations
from live_system import LiveSystem, eventually

from api.client import Client
from workers.coordination import transport
from workers.errors import InvalidInputError, LateError, NotFoundError

pytestmark = pytest.mark.acceptance

ONE = str(uuid4())

OWN_AFFAIRS = {
    "memory.touch": "follows a recall",
    "memory.record_touches": "follows recalls",
    "memory.regenerate": "follows a touch",
    "memory.embed_pending": "upkeep, by beat",
    "memory.lexemes": "upkeep, by beat",
    "memory.analyze": "upkeep, follows storing",
    "memory.notify_endings": "upkeep, by beat",
    "memory.ann": "upkeep, by beat",
    "memory.rebuild_indexes": "upkeep, by beat",
    "memory.sweep_outbox": "upkeep, by beat",
    "memory.clean": "upkeep, by beat",
    "memory.read_folders": "upkeep, by beat",
    "memory.read_folder": "follows the registration of a folder, and by beat",
    "memory.settle_tallies": "upkeep, by beat",
    "memory.thin_course": "upkeep, by beat",
    "memory.slice": "follows a large batch",
    "memory.autolink": "follows storing, if that is wanted",
    "memory.extract": "follows a conversation, if that is wanted",
    "memory.consolidate_all": "upkeep, by beat",
    "memory.prune_by_llm": "follows a clean-up",
    "memory.publish_keys": "what the HTTP API asks for its own sake",
    "memory.add_key": "what the dashboard asks; the key itself stays there",
    "memory.change_key": "the same",
    "memory.health": "the same",
    "memory.measure": "the same",
    "decay.apply": "what a plan sends",
}
"""Internal tasks without a client method, each with its reason."""


def test_every_task_has_a_method_of_the_client(live: LiveSystem) -> None:
    (answer,) = list(live.ask("registered", "worker").values())
    tasks = {name for name in answer if re.match(r"(memory|decay|relations)\.", name)}
    sent = {one.operation.name for one in vars(Operations).values() if isinstance(one, Method)}

    assert len(tasks) >= 20
    assert tasks - sent - OWN_AFFAIRS.keys() == set()
    assert sent | OWN_AFFAIRS.keys() <= tasks


def test_every_method_says_what_it_returns() -> None:
    methods = {name: one for name, one in vars(Client).items() if callable(one) and not name.startswith("_")}

    assert len(methods) >= 6
    assert [name for name, one in methods.items() if not inspect.getdoc(one)] == []
    assert [name for name, one in methods.items() if "return" not in inspect.get_annotations(one)] == []


WRITES: dict[str, Callable[[Client, str], Any]] = {
    "store": lambda memory, _: memory.store("A second otter in the harbour", wait=False),
    "store_many": lambda memory, _: memory.store_many([{"text": "A third otter"}], wait=False),
    "reinforce": lambda memory, id_: memory.reinforce(id_, wait=False),
    "used": lambda memory, id_: memory.used([id_], wait=False),
    "pin": lambda memory, id_: memory.pin(id_, wait=False),
    "edit": lambda memory, id_: memory.edit(id_, importance=0.9, wait=False),
    "restore": lambda memory, id_: memory.restore([id_], wait=False),
    "forget": lambda memory, id_: memory.forget([id_], wait=False),
    "relate": lambda memory, _: memory.relate("otter", "harbour", "lives_in", wait=False),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_without_a_waiting_caller_is_done_and_its_state_reported(client: Client, name: str) -> None:
    id_ = client.store("An otter in the harbour")["id"]

    accepted = WRITES[name](client, id_)

    done = eventually(lambda: (client.state(accepted["task"]) or {}).get("result"), f"{name} is done")
    assert done.get("id", id_) == accepted.get("id", id_)


def test_a_refused_write_gives_the_reason(client: Client) -> None:
    accepted = client.reinforce(str(uuid4()), wait=False)

    failed = eventually(lambda: (client.state(accepted["task"]) or {}).get("error"), "it is refused")
    assert "no live fact" in failed


@pytest.mark.parametrize("fact", [{"text": ""}, {"text": "An otter", "kind": "fish"}])
def test_a_write_that_no_memory_could_take_is_not_accepted(client: Client, fact: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError):
        client.store(**fact, wait=False)


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        ("memory.forget", {}),
        ("memory.forget", {"ids": [str(uuid4())], "entity": "Mira"}),
        ("memory.forget", {"query": " "}),
        ("memory.pin", {"id": str(uuid4()), "off": True, "until": "2100-01-01"}),
        ("memory.restore", {}),
        ("memory.restore", {"ids": [str(uuid4())], "dry_run": True}),
        ("memory.let_go", {"ids": [str(uuid4())], "everything": True}),
        ("memory.keep", {}),
        ("memory.resolve", {"ids": [ONE]}),
        ("memory.resolve", {"ids": [ONE], "keep": ONE}),
        ("memory.resolve", {"ids": [ONE, str(uuid4())], "keep": ONE, "both": True}),
        ("memory.resolve", {"ids": [ONE], "both": True}),
        ("memory.link", {"source": ONE, "target": ONE, "type": "PART_OF"}),
        ("memory.relate", {"source": "Mira", "target": "mira", "type": "is"}),
        ("memory.put_items", {"items": [{"path": ["a"], "key": "b", "document": "{}"}] * 2}),
        ("decay.prune", {"hard": False, "soft": False}),
        ("memory.edit", {"id": str(uuid4())}),
        ("memory.edit", {"id": str(uuid4()), "importance": None}),
    ],
)
def test_a_request_whose_parts_do_not_go_together_is_not_accepted(
    client: Client, task: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInputError):
        client.accept(task, arguments | {"namespace": client.namespace})


def test_a_task_is_visible_to_its_own_namespace_only(client: Client, live: LiveSystem) -> None:
    accepted = client.store("An otter", wait=False)
    with live.client("someone-else") as other:
        assert other.state(accepted["task"]) is None


def test_a_deadline_holds_for_every_call(live: LiveSystem) -> None:
    nobody_works_there = live.redis_url.removesuffix("/0") + "/6"
    client = Client(nobody_works_there, deadline=0.3)
    with pytest.raises(LateError, match=r"within 0\.3 s"):
        client.stats()
    client.close()


def test_missing_facts_and_tasks_are_reported(client: Client) -> None:
    with pytest.raises(NotFoundError, match="no live fact"):
        client.fact(str(uuid4()))


THREADS = 12
SLACK = 4


@pytest.fixture
def no_garbage_is_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def ask_from_a_thread(client: Client, answers: list[object]) -> None:
    thread = Thread(target=lambda: answers.append(client.stats()["facts"]))
    thread.start()
    thread.join()


@pytest.mark.usefixtures("no_garbage_is_collected")
def test_the_connections_of_a_thread_end_with_it(live: LiveSystem, namespace: str) -> None:
    answers: list[object] = []
    with live.client(namespace) as client:
        ask_from_a_thread(client, answers)
        before = psutil.Process().num_fds()
        for _ in range(THREADS):
            ask_from_a_thread(client, answers)
        assert psutil.Process().num_fds() <= before + SLACK
    assert answers == [0] * (THREADS + 1)


def test_what_a_thread_has_sent_another_may_wait_for_when_it_is_over(live: LiveSystem, namespace: str) -> None:
    sent: list[Any] = []
    with live.client(namespace) as client:
        thread = Thread(target=lambda: sent.append(client.send_many([{"text": "The oboe is in the attic."}])))
        thread.start()
        thread.join()
        assert client.wait(sent[0], 30)["results"][0]["action"] == "added"


def test_results_are_waited_for_in_any_order_and_leave_nothing_behind(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        sent = [client.send_many([{"text": f"The oboe has key {number}."}]) for number in range(48)]
        answers = [client.wait(one, 60)["results"][0]["action"] for one in reversed(sent)]
        assert answers == ["added"] * len(sent)
        client.stats()
        backend = client._app.backend
        assert backend.client.exists(*[backend.get_key_for_task(one.id) for one in sent]) == 0
        assert backend.result_consumer.subscribed_to == set()


def test_a_message_that_nobody_waits_for_is_not_listened_for(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        client.send("memory.stats", {"namespace": namespace})
        client.accept("memory.store", {"text": "The oboe is in the attic.", "namespace": namespace})
        assert client._app.backend.result_consumer.subscribed_to == set()


def test_an_answer_leaves_neither_result_nor_mark(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        task_id = str(uuid4())
        client.call("memory.stats", {"namespace": namespace}, 60, task_id=task_id)
        backend = client._app.backend
        assert backend.client.exists(backend.get_key_for_task(task_id), transport.READY + task_id) == 0


def test_a_result_that_expired_before_its_caller_waits_arrived_as_a_message(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        server, sent = client._app.backend.client, client.send_many([{"text": "The oboe is in the attic."}])
        eventually(lambda: server.delete(client._app.backend.get_key_for_task(sent.id)) == 1, "the result is there")
        assert client.wait(sent, 60)["results"][0]["action"] == "added"


def test_closed_clients_leave_no_connection(live: LiveSystem, namespace: str) -> None:
    def connections() -> int:
        with redis.Redis.from_url(live.redis_url) as server:
            return len(server.client_list())

    gc.collect()
    before = connections()
    for _ in range(10):
        with Client(live.redis_url, namespace) as client:
            client.stats()

    assert connections() <= before


@pytest.mark.parametrize("given", ["A third otter", {"text": "A third otter"}, None])
def test_what_is_no_list_of_facts_is_refused_and_not_taken_apart(client: Client, given: Any) -> None:
    with pytest.raises(InvalidInputError, match="facts: input should be a valid list"):
        client.store_many(given)
