"""Redeliveries, late or concurrent with other transactions, neither undo nor skip changes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import inf
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from memory import LOCK_WAITS, Memory, day, wait_for

from tests.chaos.cells import GRAZES, HOW
from workers.coordination import idempotency
from workers.core import near_duplicates
from workers.core.intent import Action, Intent
from workers.core.signature import encode
from workers.memory.add import Stored
from workers.memory.forget import forget_within
from workers.storage import activity, due, duplicate_pairs
from workers.storage.connection import Connection, connect, transaction


def tenant(memory: Memory) -> int:
    """Return the number of the namespace."""
    return int(memory.value("select id from namespaces where name = 'default'"))


@contextmanager
def meanwhile(memory: Memory, act: Callable[[], Any], done: list[Any]) -> Any:
    """Yield an open transaction; after the block, run `act` until it waits for it, and add its result."""
    with ThreadPoolExecutor(1) as pool:
        with connect(memory.context.database_url) as db:
            yield db
            waiting = pool.submit(act)
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
        done.append(waiting.result())


def all_due(memory: Memory, make_due: Callable[[Connection], int]) -> int:
    with transaction(memory.context.database_url) as db:
        return make_due(db)


@pytest.mark.parametrize(
    "make_due",
    [lambda db, _: due.make_facts_due(db, None, day(1)), lambda db, own: due.make_facts_due(db, [own], day(1))],
    ids=["rules of the operator", "settings of a namespace"],
)
def test_other_rules_make_nothing_due_that_a_pass_forgets_at_that_moment(
    memory: Memory, make_due: Callable[[Connection, int], int]
) -> None:
    id_, done = memory.add("Tea at four."), list[int]()
    own = tenant(memory)
    with meanwhile(memory, lambda: all_due(memory, lambda db: make_due(db, own)), done) as db:
        activity.lock(db, own, [id_])
        forget_within(db, [own], [id_], ["faded"], day(100))
    assert (done, memory.row(id_)["due"]) == ([0], inf)


def test_a_pass_waits_for_facts_that_another_transaction_holds(memory: Memory) -> None:
    id_, done = memory.add("Tea at four.", decay_class="short"), list[Any]()
    with meanwhile(memory, lambda: memory.decay(400), done) as db:
        activity.lock(db, tenant(memory), [id_])
    assert (done[0].counters.processed, done[0].counters.forgotten) == (1, 1)
    assert memory.row(id_)["forgotten_at"] == day(400)


def test_a_repeated_statement_keeps_the_tags_that_a_consolidation_adds_at_that_moment(memory: Memory) -> None:
    said: dict[str, Any] = {"id": str(uuid4()), "text": "Tea at four.", "tags": ["tea"]}
    memory.store(said)
    id_, done = UUID(said["id"]), list[Any]()
    with meanwhile(memory, lambda: memory.store(said), done) as db:
        activity.lock(db, tenant(memory), [id_])
        duplicate_pairs.take_over(db, tenant(memory), [id_], [["tea", "guests"]], [0.5])
    assert memory.value("select tags from facts") == ["tea", "guests"]
    assert [what for what, _ in memory.history(id_)] == ["stored"]


def test_a_late_repeat_of_a_statement_does_not_take_back_what_a_consolidation_changed(memory: Memory) -> None:
    said: dict[str, Any] = {"id": str(uuid4()), "text": "Tea at four.", "importance": 0.2}
    id_, use = UUID(said["id"]), uuid4()
    memory.store(said, use=use)
    with transaction(memory.context.database_url) as db:
        duplicate_pairs.take_over(db, tenant(memory), [id_], [["tea"]], [0.9])
    memory.store(said, use=use)
    assert memory.value("select importance from facts") == 0.9
    memory.store(said, at=2, use=uuid4())
    assert memory.value("select importance from facts") == 0.2


def test_a_late_repeat_with_again_does_not_restore_facts_erased_since(memory: Memory) -> None:
    said: dict[str, Any] = {"id": str(uuid4()), "text": "Tea at four.", "again": True}
    use = uuid4()
    memory.store(said, use=use)
    memory.forget(UUID(said["id"]), at=1, purge=True)
    (repeated,) = memory.store(said, use=use)
    assert isinstance(repeated, Stored)
    assert (repeated.action, memory.value("select count(*) from facts")) == ("forgotten", 0)
    (stored,) = memory.store(said, at=2, use=uuid4())
    assert isinstance(stored, Stored)
    assert stored.action == "added"


def test_facts_of_one_chaos_herd_are_similar_by_vectors_and_by_signatures(memory: Memory) -> None:
    texts = [f"Herd number 1 of cell 1 2 {how} {GRAZES}" for how in HOW]
    vectors = np.asarray(memory.context.embedder.embed(texts))
    signatures = encode(vectors)
    ones, others = np.triu_indices(len(texts), 1)
    assert near_duplicates.cosines(vectors[ones], vectors[others]).min() > near_duplicates.ALIKE
    assert near_duplicates.estimated_cosines(signatures[ones], signatures[others]).min() > near_duplicates.ALIKE


def test_the_oldest_answers_of_a_namespace_are_dropped_if_all_are_too_large(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis, answer = memory.context.redis, {"ids": ["a" * 1_000]}
    monkeypatch.setattr(idempotency, "MOST_KEPT_BYTES", 3_000)
    idempotency.keep_answer(redis, "of another", answer, "ines")
    for task in ("one", "two", "two", "three"):
        idempotency.keep_answer(redis, task, answer, "mira")
    assert [idempotency.kept_answer(redis, task) for task in ("of another", "one", "two", "three")] == [
        answer, None, answer, answer,
    ]  # fmt: skip
    redis.delete(f"{idempotency.KEPT}mira")  # as by a Redis that evicts keys
    idempotency.keep_answer(redis, "four", answer, "mira")
    assert idempotency.kept_answer(redis, "four") == answer


def test_the_first_request_answer_and_verdict_are_kept(memory: Memory) -> None:
    redis, fact = memory.context.redis, uuid4()
    first, later = Intent(Action.UPDATE, uuid4()), Intent(Action.ADD, None)
    assert [idempotency.claim(redis, "task", digest, None) for digest in ("one", "two")] == [("one", None)] * 2
    assert [idempotency.keep_answer(redis, "task", {"id": number}, "mira") for number in (1, 2)] == [{"id": 1}] * 2
    assert [idempotency.keep_verdicts(redis, "mira", {fact: one}) for one in (first, later)] == [{fact: first}] * 2
    assert idempotency.verdicts(redis, "other", [fact]) == {}
