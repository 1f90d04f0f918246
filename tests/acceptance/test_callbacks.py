"""Celery programs: what they want to follow a task follows it once, whichever task answers, and each task answers."""

from typing import Any
from uuid import uuid4

import pytest
from celery import chain, chord
from celery.exceptions import NotRegistered, TaskRevokedError
from kombu import Queue
from live_system import LiveSystem, eventually

from workers.coordination import signals
from workers.coordination.redis import open_redis

pytestmark = [pytest.mark.acceptance, pytest.mark.long]

MANY = 450
"""Facts of a batch that several tasks process, the last of which answers."""


class Program:
    """A Celery program with a namespace, which follows tasks with others."""

    def __init__(self, system: LiveSystem, namespace: str) -> None:
        self.system, self.namespace = system, namespace

    def task(self, name: str, queue: str | None = None, **arguments: Any) -> Any:
        """Return the signature of a task that does not take the answer of the one before it."""
        options = {"queue": queue} if queue else {}
        given = {"namespace": self.namespace} | arguments
        return self.system.control.signature(name, kwargs=given, immutable=True, options=options)

    def batch(self, **given: Any) -> Any:
        """Return the signature of a batch of facts."""
        facts = [{"text": f"Parcel {n} of {self.namespace} is in the cellar.", **given} for n in range(MANY)]
        return self.task("memory.store_many", facts=facts, classify=False)

    def stats(self) -> Any:
        """Return the signature of a task that counts the facts."""
        return self.task("memory.stats")

    def kept(self) -> set[bytes]:
        """Return the keys of what is still to follow."""
        return set(self.system.own_keys.scan_iter(f"{signals.FOLLOWING}:*"))


@pytest.fixture
def program(live: LiveSystem, namespace: str) -> Program:
    return Program(live, namespace)


@pytest.mark.slow
def test_a_chain_goes_on_after_a_batch(program: Program) -> None:
    assert chain(program.batch(), program.stats()).apply_async().get()["facts"] == MANY
    assert program.kept() == set()


def test_a_chord_gets_the_answers_of_batches(program: Program) -> None:
    store = program.task("memory.store", text="The key is in the cellar.")
    assert chord([program.batch(), store], program.stats()).apply_async().get()["facts"] == MANY + 1


def test_a_chord_waits_longer_for_a_part_of_the_program_than_an_answer_is_kept(program: Program) -> None:
    queue, store = f"queue-{program.namespace}", program.task("memory.store", text="The key is in the cellar.")
    part = program.task("program.count").set(queue=Queue(queue))
    sent = chord([store, part], program.stats()).apply_async()
    backend = program.system.control.backend
    keys = [backend.get_key_for_group(sent.parent.id, part) for part in (".s", ".j")]
    eventually(lambda: backend.client.exists(*keys) == len(keys), "the answer is kept for the chord")
    assert min(map(backend.client.ttl, keys)) > backend.expires
    with open_redis(program.system.redis_url) as queues:
        queues.delete(queue)


def test_a_chain_goes_on_after_a_pass(program: Program) -> None:
    program.batch(last_seen_at="2026-01-01T00:00:00Z", salience=0.3).apply_async().get()
    after = program.task("memory.store", text="The pass is done.")
    done = chain(program.task("decay.plan"), after).apply_async()
    assert done.get()["action"] == "added"
    assert done.parent.get()["processed"] > 0
    assert program.kept() == set()


def test_a_callback_comes_once_after_a_batch(program: Program) -> None:
    before = program.system.begun_when_idle()
    program.batch().apply_async(link=program.stats()).get()
    begun = program.system.begun_when_idle()
    assert begun["memory.slice"] > before.get("memory.slice", 0)
    assert begun["memory.stats"] == before.get("memory.stats", 0) + 1


def test_a_failure_in_place_of_another_task_calls_its_error_callback(program: Program) -> None:
    asked_by = str(uuid4())
    errback = program.task("memory.store", text="The backfill has failed.")
    signals.note_following(program.system.own_keys, asked_by, {"errbacks": [dict(errback)]})
    program.system.send("decay.backfill", {"namespace": program.namespace, "asked_by": asked_by, "limit": -1})
    with program.system.client(program.namespace) as client:
        eventually(lambda: client.stats()["facts"] == 1, "the error callback is done")
    assert program.kept() == set()


def test_a_callback_goes_to_a_queue_that_only_the_program_reads(program: Program) -> None:
    queue = f"queue-{program.namespace}"
    link = program.task("program.count", queue)
    program.task("memory.store", text="The key is in the cellar.").apply_async(link=link).get()
    with open_redis(program.system.redis_url) as keys:
        assert keys.llen(queue) == 1
        keys.delete(queue)


def test_what_expired_is_told_to_its_sender(program: Program) -> None:
    expired = program.task("memory.store", text="The key is in the cellar.").apply_async(expires=-1)
    with pytest.raises(TaskRevokedError, match="expired"):
        expired.get()


def test_an_answer_that_a_chain_passes_on_unasked_is_refused_with_advice(program: Program) -> None:
    store = program.task("memory.store", text="The key is in the cellar.").set(immutable=False)
    with pytest.raises(Exception, match=r"text: is given to memory\.store twice.*immutable"):
        chain(program.stats(), store).apply_async().get()


@pytest.mark.parametrize("name", ["celery.map", "celery.starmap", "celery.chunks"])
def test_tasks_that_call_others_without_ids_are_refused(live: LiveSystem, name: str) -> None:
    sent = live.control.send_task(name, kwargs={"task": {"task": "memory.store"}, "it": [["One."]]}, queue="store")
    with pytest.raises(NotRegistered):
        sent.get()


def test_a_message_in_another_format_is_refused_and_answered(live: LiveSystem) -> None:
    sent = live.control.send_task("memory.store", kwargs={"text": "One."}, serializer="pickle", queue="store")
    with pytest.raises(Exception, match="pickle"):
        sent.get()
