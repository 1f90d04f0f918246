"""Links join two facts of one namespace, one of each type, and are deleted with them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.graph import Unlink
from ebb.contract.retention import ShowHistory
from memory import LOCK_WAITS, Memory, day, wait_for

from workers import graph
from workers.decay.consolidate import compare
from workers.errors import InvalidInputError, NotFoundError
from workers.memory import estimate, extract, history
from workers.storage import activity
from workers.storage.connection import connect


def link(
    memory: Memory, source: UUID, target: UUID, kind: str = "CAUSED_BY", strength: float = 1.0, **options: Any
) -> UUID:
    return memory.link(source, target, kind, strength, **options).id


def unlink(memory: Memory, source: UUID, target: UUID, kind: Any = None, namespace: str = "default") -> int:
    return graph.unlink(memory.context, Unlink(source=source, target=target, type=kind, namespace=namespace)).removed


def stored(memory: Memory) -> list[tuple[UUID, UUID, str, float]]:
    return memory.rows("select source, target, type, strength from links order by type, strength")


def pair(memory: Memory, namespace: str = "default") -> tuple[UUID, UUID]:
    return memory.add("The cellar is flooded.", namespace=namespace), memory.add("It rained.", namespace=namespace)


def test_a_link_is_kept_once_a_type_with_the_latest_strength(memory: Memory) -> None:
    one, two = pair(memory)
    assert link(memory, one, two) == link(memory, one, two, strength=0.5)
    link(memory, one, two, "PART_OF", 0.2)
    link(memory, two, one, "PART_OF", 0.3)
    assert stored(memory) == [
        (one, two, "CAUSED_BY", 0.5), (one, two, "PART_OF", 0.2), (two, one, "PART_OF", 0.3)
    ]  # fmt: skip


def test_a_fact_that_is_being_purged_is_waited_for_and_then_not_there(memory: Memory) -> None:
    one, two = pair(memory)
    with connect(memory.context.database_url) as db, ThreadPoolExecutor(1) as pool:
        db.execute("delete from facts where id = %s", [two])
        linking = pool.submit(link, memory, one, two)
        wait_for(lambda: memory.value(LOCK_WAITS) == 1)
        db.commit()
        with pytest.raises(NotFoundError, match="target: no live fact"):
            linking.result()


@pytest.mark.parametrize("act", [link, unlink])
def test_links_are_changed_in_the_lock_order_of_an_erasure(memory: Memory, act: Any) -> None:
    one, two = pair(memory)
    link(memory, one, two)
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        activity.lock(db, 1, [one])
        changing = pool.submit(act, memory, one, two)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.execute("delete from facts where id = %s", [one])
        db.commit()
        if act is link:
            with pytest.raises(NotFoundError, match="source: no live fact"):
                changing.result()
        else:
            assert changing.result() == 0


@pytest.mark.parametrize("act", ["compare", "estimate", "extract"])
def test_background_work_is_in_the_lock_order_of_an_erasure_too(memory: Memory, act: str) -> None:
    one, two = memory.add("Mira moved to Leipzig last year"), memory.add("Mira has moved to Leipzig last year")
    memory.rows("update facts set content_salience = null")
    acts = {
        "compare": lambda: compare(memory.context, "default", day(1)),
        "estimate": lambda: estimate.fill(memory.context),
        "extract": lambda: extract._link(memory.context, "default", [(two, one)], day(1)),
    }
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        activity.lock(db, 1, [one])
        acting = pool.submit(acts[act])
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.execute("delete from facts where id = %s", [one])
        db.commit()
        acting.result()
    assert memory.rows("select id from facts") == [(two,)]
    assert memory.rows("select fact from likenesses union all select source from links") == []


def test_only_facts_that_are_there_and_not_forgotten_can_be_linked(memory: Memory) -> None:
    one, two = pair(memory)
    for source, target, fault in [(one, uuid4(), "target: no"), (uuid4(), one, "source: no")]:
        with pytest.raises(InvalidInputError, match=fault):
            link(memory, source, target)
    memory.forget(two, at=1)
    with pytest.raises(InvalidInputError, match="target: no live fact"):
        link(memory, one, two)
    assert stored(memory) == []


def test_no_link_leads_into_another_namespace(memory: Memory) -> None:
    one, two = pair(memory)
    memory.add("Tea at four.", namespace="other")
    for name in ("other", "unknown"):
        with pytest.raises(InvalidInputError, match="source: no live fact"):
            link(memory, one, two, namespace=name)
    link(memory, one, two)
    assert unlink(memory, one, two, namespace="other") == 0
    assert len(stored(memory)) == 1


def test_unlinking_removes_one_type_or_all(memory: Memory) -> None:
    one, two = pair(memory)
    for kind in ("CAUSED_BY", "PART_OF", "DEPENDS_ON"):
        link(memory, one, two, kind)
    assert unlink(memory, one, two, "PART_OF") == 1
    assert unlink(memory, two, one) == 0
    assert unlink(memory, one, two) == 2
    assert stored(memory) == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_link_is_kept_while_a_fact_is_forgotten_and_gone_when_it_is_purged(memory: Memory, which: int) -> None:
    ids = pair(memory)
    link(memory, *ids)
    memory.forget(ids[which], at=1)
    assert len(stored(memory)) == 1
    memory.purge(at=100)
    assert stored(memory) == []


def test_a_link_that_is_removed_while_a_fact_is_in_deep_memory_does_not_come_back_with_it(memory: Memory) -> None:
    one, two = memory.add("The cellar is flooded."), memory.add("It rained.", decay_class="session")
    link(memory, one, two)
    memory.decay(2)
    assert memory.demote(at=4) == 1
    assert unlink(memory, one, two) == 1
    memory.restore(two, at=5)
    assert stored(memory) == []


def test_the_history_of_a_fact_lists_its_links_but_not_those_to_forgotten_facts(memory: Memory) -> None:
    one, two = pair(memory)
    link(memory, one, two, strength=0.5)
    events = history.history(memory.context, ShowHistory(id=one), day(0)).events
    assert [(what.what, what.details) for what in events[1:]] == [
        ("linked", {"type": "CAUSED_BY", "to": str(two), "strength": 0.5})
    ]
    assert memory.history(two)[1:] == [("linked", 0)]
    memory.forget(two, at=1)
    assert memory.history(one, at=1)[1:] == []


CATS = [f"Mira feeds her three cats at {hour} every day." for hour in ("six", "seven", "eight", "nine", "ten")]


def autolinked(memory: Memory, *ids: UUID, at: float = 0, namespace: str = "default") -> int:
    return sum(graph.autolink(memory.context, namespace, id_, day(at)) for id_ in ids)


def test_a_fact_is_linked_with_at_most_three_that_say_the_like(memory: Memory) -> None:
    ids = [memory.add(text) for text in CATS]
    memory.add("The tax office opens on Monday.")
    assert autolinked(memory, ids[0]) == 3
    for source, target, kind, strength in stored(memory):
        true = memory.context.embedder.embed([memory.row(source)["text"], memory.row(target)["text"]])
        assert (source, kind) == (ids[0], "RELATED_TO")
        assert strength == pytest.approx(1 / (1 + 2 * (1 - float(true[0] @ true[1]))), abs=0.002)
        assert strength > 0.7


def test_linking_again_adds_nothing_and_no_pair_is_linked_both_ways(memory: Memory) -> None:
    ids = [memory.add(text) for text in CATS[:3]]
    assert autolinked(memory, *ids) == 3
    assert autolinked(memory, *ids) == 0
    memory.add(CATS[3])
    memory.add(CATS[4])
    autolinked(memory, *ids)
    assert max(count for (count,) in memory.rows("select count(*) from links group by source")) == 3
    pairs = [frozenset((source, target)) for source, target, _, _ in stored(memory)]
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("gone", [0, 1])
@pytest.mark.parametrize("purge", [True, False])
def test_a_fact_that_is_forgotten_while_it_is_compared_is_not_linked(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, gone: int, purge: bool
) -> None:
    ids, found = [memory.add(text) for text in CATS[:2]], graph._similar

    def forget_meanwhile(*given: Any) -> dict[UUID, float]:
        similar = found(*given)
        memory.forget(ids[gone], at=0, purge=purge)
        return similar

    monkeypatch.setattr(graph, "_similar", forget_meanwhile)
    assert autolinked(memory, ids[0]) == 0
    assert stored(memory) == []


def test_dissimilar_forgotten_and_foreign_facts_are_not_linked(memory: Memory) -> None:
    own, superseded, forgotten = (memory.add(text) for text in CATS[:3])
    memory.store({"text": "The tax office opens on Monday.", "supersedes": str(superseded)}, at=1)
    memory.forget(forgotten, at=1)
    memory.add(CATS[3], namespace="other")
    memory.add(CATS[4], decay_class="session", at=-10)
    assert autolinked(memory, own, at=1) == 0
    assert autolinked(memory, own, at=1, namespace="unknown") == 0
    assert autolinked(memory.having(auto_link_min_score=1.0), memory.add(CATS[4].upper() + "!"), at=1) == 0
