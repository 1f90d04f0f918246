"""A client that threads share, which come and go: their connections go with them."""

import gc
from collections.abc import Iterator
from threading import Thread
from typing import Any

import psutil
import pytest
from live_system import LiveSystem

from api.client import Client
from api.transport import UNASKED

pytestmark = pytest.mark.acceptance

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


def test_results_that_no_caller_asks_for_again_do_not_pile_up(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        for _ in range(UNASKED * 8):
            client.stats()
        assert len(client._app.backend._pending_messages) <= UNASKED


def test_more_results_than_are_kept_come_in_any_order(live: LiveSystem, namespace: str) -> None:
    with live.client(namespace) as client:
        sent = [client.send_many([{"text": f"The oboe has key {number}."}]) for number in range(UNASKED * 3)]
        answers = [client.wait(one, 60)["results"][0]["action"] for one in reversed(sent)]
    assert answers == ["added"] * len(sent)
