"""The last contexts: bounded in number and length, of one namespace each, and gone with the facts that they name."""

from functools import partial

import pytest
from memory import Memory

from workers.coordination import contexts, idempotency
from workers.coordination.contexts import ShownContext


def noted(
    memory: Memory, question: str, *ids: object, namespace: str = "default", at: float = 5, hours: float = 1
) -> None:
    given = ShownContext(at, "memory.context", question, [str(id_) for id_ in ids])
    contexts.note(memory.context.redis, namespace, given, hours)


def questions(memory: Memory, namespace: str = "default", since: float = 0) -> list[str]:
    return [one.question for one in contexts.latest(memory.context.redis, namespace, since)]


def test_the_newest_come_first_and_only_so_many_of_one_namespace_stay(memory: Memory) -> None:
    for number in range(contexts.MOST + 2):
        noted(memory, f"{number} " + "?" * 1_000, *range(100), at=number)
    noted(memory, "theirs", namespace="theirs")
    found = contexts.latest(memory.context.redis, "default", 0)
    assert [one.at for one in found] == [float(number) for number in range(contexts.MOST + 1, 1, -1)]
    assert {(len(one.question), len(one.ids)) for one in found} == {(contexts.LONGEST, contexts.MOST_FACTS)}
    assert questions(memory, "theirs") == ["theirs"]
    assert questions(memory, since=contexts.MOST + 1) == [found[0].question]
    assert 0 < memory.context.redis.ttl(f"{contexts.KEY}default") <= contexts.HOUR


def test_without_hours_nothing_is_noted(memory: Memory) -> None:
    noted(memory, "Where is the key?", hours=0)
    assert questions(memory) == []


def test_what_names_a_fact_goes_when_its_owner_has_it_forgotten(memory: Memory) -> None:
    key, tea = memory.add("The key hangs by the door."), memory.add("Tea is at four.")
    noted(memory, "Where is the key?", key, tea)
    noted(memory, "When is tea?", tea)
    memory.forget(key, at=1)
    assert questions(memory) == ["When is tea?"]
    assert questions(memory, "theirs") == []


def test_what_is_erased_takes_all_of_them_along(memory: Memory) -> None:
    noted(memory, "Where is the key?")
    idempotency.drop_quotes(memory.context.redis)
    assert questions(memory) == []


def test_they_are_known_to_quote_facts_for_as_long_as_they_are_kept(memory: Memory) -> None:
    noted(memory, "Where is the key?", hours=168)
    redis = memory.context.redis
    idempotency.keep(redis, "ebb:done:1", '{"text": "The key hangs by the door."}', 1, nx=False)
    assert redis.ttl(idempotency.QUOTING) >= redis.ttl(f"{contexts.KEY}default")


def test_the_list_of_what_quotes_facts_does_not_grow_with_what_has_expired(memory: Memory) -> None:
    redis = memory.context.redis
    for place in range(200):
        idempotency.keep(redis, f"ebb:done:{place}", '{"text": "The key hangs by the door."}', 60, nx=False)
        redis.delete(f"ebb:done:{place - 3}")  # as it expires
    idempotency.note_quoting(redis, "ebb:done:199")
    assert redis.scard(idempotency.QUOTING) < 60
    assert all(redis.sismember(idempotency.QUOTING, f"ebb:done:{place}") for place in (197, 198, 199))


def test_an_answer_kept_again_while_quotes_are_dropped_is_dropped_with_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis = memory.context.redis
    again = partial(idempotency.keep, redis, "ebb:done:1", '{"text": "The key hangs by the door."}', 60, nx=False)
    again()
    drop = redis.delete
    with monkeypatch.context() as patch:
        patch.setattr(redis, "delete", lambda *keys: (drop(*keys), again()))
        idempotency.drop_quotes(redis)
    idempotency.drop_quotes(redis)
    assert not redis.exists("ebb:done:1")


def test_the_answer_of_a_task_whose_id_has_colons_is_known_by_that_id(memory: Memory) -> None:
    idempotency.keep(memory.context.redis, "ebb:done:app:1", '{"text": "The key hangs by the door."}', 60, nx=False)
    assert idempotency.drop_quotes(memory.context.redis) == ["app:1"]
