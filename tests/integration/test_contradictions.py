"""Contradictions are found when the second fact is stored, and listed until they are resolved."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unicodedata import normalize
from uuid import UUID, uuid4

import pytest
from ebb.contract.reports import ListContradictions
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.errors import InvalidInputError, UnavailableError
from workers.memory import supersede
from workers.memory.add import Stored
from workers.storage.connection import connect
from workers.storage.supersession import COUNT_CONTRADICTIONS

PORTO = {"text": "Ana lives in Porto.", "entity": "Ana", "key": "city", "value": "Porto"}
LISBON = {"text": "Ana lives in Lisbon.", "entity": "Ana", "key": "city", "value": "Lisbon"}


def add(memory: Memory, fact: dict[str, Any], at: float = 0, **fields: Any) -> UUID:
    return memory.add(**{**fact, **fields}, at=at)


def pairs(memory: Memory, at: float = 10, namespace: str = "default") -> list[set[UUID]]:
    """Return the listed pairs, and check their count."""
    page = supersede.contradicting(memory.context, ListContradictions(namespace=namespace, limit=1000), day(at))
    found = page.contradictions
    assert page.total == len(found) == memory.stats(at, namespace).contradictions
    return [{one.id for one in pair.facts} for pair in found]


def keep(memory: Memory, id_: UUID, *others: UUID, at: float = 10) -> None:
    supersede.keep(memory.context, "default", id_, others, day(at))


def test_two_values_of_one_key_contradict_each_other(memory: Memory) -> None:
    old, new = add(memory, PORTO), add(memory, LISBON, at=5)
    (found,) = supersede.contradicting(memory.context, ListContradictions(), day(10)).contradictions
    assert (found.entity, found.key, found.found_at) == ("Ana", "city", day(5))
    assert [(one.id, one.value) for one in found.facts] == [(old, "Porto"), (new, "Lisbon")]


def test_the_answer_to_a_store_names_what_it_contradicts_unless_that_has_ended(memory: Memory) -> None:
    def contradicted(*facts: dict[str, Any], at: float) -> list[list[UUID]]:
        return [one.contradicts for one in memory.store(*facts, at=at) if isinstance(one, Stored)]

    old = add(memory, PORTO, decay_class="session")
    new = add(memory, LISBON, at=0.1)
    faro, braga = ({**PORTO, "text": f"Ana lives in {city}.", "value": city} for city in ("Faro", "Braga"))
    (third,) = memory.store(faro, at=0.2)
    assert isinstance(third, Stored)
    assert set(third.contradicts) == {old, new}
    assert contradicted(faro, at=0.3) == [[]]
    assert contradicted(PORTO | {"entity": "Rui"}, at=0.4) == [[]]
    assert contradicted(braga | {"supersedes": str(new)}, LISBON | {"entity": "Eva"}, at=3) == [[third.id], []]


def test_the_form_of_accents_makes_no_difference(memory: Memory) -> None:
    facts = [
        {"text": f"{number}", "entity": "Ana", "key": "city", "value": normalize(form, "Málaga")}
        for number, form in enumerate(("NFC", "NFD"))
    ]
    for fact in facts:
        add(memory, fact)
    assert pairs(memory) == []


def test_case_makes_no_difference(memory: Memory) -> None:
    old = add(memory, PORTO)
    add(memory, {"text": "ANA: Porto", "entity": "ANA", "key": "City", "value": "PORTO"})
    assert pairs(memory) == []
    new = add(memory, LISBON, entity="aNA", key="CITY")
    assert {old, new} in pairs(memory)
    first = add(memory, {"text": "1", "entity": "Ärger", "key": "Größe", "value": "1"})
    assert {first, add(memory, {"text": "2", "entity": "ÄRGER", "key": "GRÖßE", "value": "2"})} in pairs(memory)


def test_case_makes_a_difference_in_values_in_which_it_does_in_statements(memory: Memory) -> None:
    said = {"text": "The password of the router", "entity": "router", "key": "password"}
    one, other = (add(memory, said | {"value": value}) for value in ("Hunter2", "hunter2"))
    assert pairs(memory) == [{one, other}]


def test_blanks_make_no_difference(memory: Memory) -> None:
    york = {"text": "York.", "entity": "Ana", "key": "city", "value": "New York"}
    add(memory, york)
    add(memory, york | {"text": "The big one.", "value": " New \n York "})
    assert pairs(memory) == []


@pytest.mark.parametrize(
    "other",
    [{"entity": "Ben"}, {"key": "job"}, {"entity": None}, {"key": None}, {"value": None}, {"value": ""}],
)
def test_without_the_same_entity_and_key_and_two_values_there_is_none(
    memory: Memory, other: dict[str, str | None]
) -> None:
    add(memory, PORTO)
    add(memory, LISBON, **other)
    assert pairs(memory) == []


def test_names_of_any_length_are_compared_whole(memory: Memory) -> None:
    long = "語" * 1_023
    first = add(memory, PORTO, entity=f"{long}a", key=f"{long}b")
    add(memory, LISBON, entity=f"{long}c", key=f"{long}b")
    assert pairs(memory) == []
    third = memory.add("Ana lives.", entity=f"{long}A", key=f"{long}B", value="x")
    assert pairs(memory) == [{first, third}]


def test_facts_of_one_batch_contradict_each_other(memory: Memory) -> None:
    ids = {one.id for one in memory.store(PORTO, LISBON, "Tea at four.") if isinstance(one, Stored)}
    ((one, two),) = pairs(memory)
    assert {one, two} < ids


def test_namespaces_contradict_only_themselves(memory: Memory) -> None:
    add(memory, PORTO, namespace="ours")
    add(memory, LISBON, namespace="theirs")
    assert pairs(memory, namespace="ours") == pairs(memory, namespace="theirs") == []
    assert pairs(memory, namespace="unknown") == []


def test_a_superseding_fact_does_not_contradict_what_it_replaced(memory: Memory) -> None:
    old = add(memory, PORTO)
    memory.store(LISBON | {"supersedes": str(old)}, at=1)
    assert pairs(memory) == []


def test_a_contradiction_disappears_when_one_fact_is_superseded_or_ended(memory: Memory) -> None:
    old = add(memory, PORTO, decay_class="session")
    new = add(memory, LISBON)
    assert pairs(memory, at=0.8) == [{old, new}]
    assert pairs(memory, at=1) == []
    memory.decay(1)
    assert pairs(memory, at=1) == []
    third = add(memory, LISBON, at=2, text="Ana lives in Braga.", value="Braga")
    assert pairs(memory, at=2) == [{new, third}]
    memory.store({"text": "Ana moved away.", "supersedes": str(new)}, at=3)
    assert pairs(memory, at=3) == []


def test_a_restored_fact_contradicts_what_was_stored_meanwhile(memory: Memory) -> None:
    old = add(memory, PORTO)
    memory.forget(old, at=1)
    new = add(memory, LISBON, at=2)
    assert pairs(memory) == []
    memory.restore(old, at=3)
    assert pairs(memory) == [{old, new}]


def test_a_repeat_finds_nothing_more(memory: Memory) -> None:
    add(memory, PORTO)
    fact = LISBON | {"id": str(uuid4())}
    for _ in range(2):
        memory.store(fact, LISBON)
    assert len(pairs(memory)) == 1


def test_a_key_of_many_values_costs_each_new_fact_ten_pairs_at_most(memory: Memory) -> None:
    facts = [{"text": f"Ana likes {i}.", "entity": "Ana", "key": "likes", "value": str(i)} for i in range(40)]
    memory.store(*facts)
    last = add(memory, LISBON, key="likes", at=1)
    assert sum(last in pair for pair in pairs(memory)) == 10
    assert len(pairs(memory)) <= 41 * 10


def test_concurrent_stores_find_the_contradictions_of_each_other(memory: Memory) -> None:
    memory.store("Tea at four.")
    for round_ in range(15):
        name = f"round {round_}"
        facts = [LISBON | {"text": f"{i} {name}", "entity": name, "value": str(i)} for i in range(4)]
        with ThreadPoolExecutor(4) as pool:
            ids = [one.id for (one,) in pool.map(memory.store, facts) if isinstance(one, Stored)]
        expected = {frozenset({one, two}) for one in ids for two in ids if one != two}
        assert expected <= set(map(frozenset, pairs(memory)))


def test_batches_about_the_same_in_opposite_order_do_not_deadlock(memory: Memory) -> None:
    def batch(value: str) -> list[dict[str, Any]]:
        return [LISBON | {"text": f"Room {i}: {value}", "entity": f"room {i}", "value": value} for i in range(200)]

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda facts: memory.store(*facts), [batch("free"), batch("taken")[::-1]]))
    assert len(pairs(memory)) == 200


def test_a_fact_that_contradicts_one_that_is_just_erased_is_to_be_stored_again(memory: Memory) -> None:
    erased = add(memory, PORTO)
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        db.execute("delete from facts where id = %s", [erased])
        storing = pool.submit(add, memory, LISBON)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.commit()
        with pytest.raises(UnavailableError, match="was erased at this very moment: try again"):
            storing.result()
    add(memory, LISBON)
    assert pairs(memory) == []


def test_the_kept_fact_supersedes_the_other(memory: Memory) -> None:
    old, new = add(memory, PORTO), add(memory, LISBON)
    keep(memory, old, new)
    assert pairs(memory) == []
    row = "select superseded_by, superseded_at, valid_until from facts where id = %s"
    assert memory.rows(row, new) == [(old, day(10), day(10))]
    assert memory.ids("Where does Ana live?", at=10) == [old]
    assert memory.value("select supersedes_id from facts where id = %s", old) == new


def test_what_was_true_before_the_kept_fact_was_true_until_then(memory: Memory) -> None:
    old = add(memory, PORTO)
    new = add(memory, LISBON, at=9, source_date=day(5).isoformat())
    keep(memory, new, old)
    assert memory.rows("select superseded_at, valid_until from facts where id = %s", old) == [(day(10), day(5))]
    assert memory.ids("Where does Ana live?", at=10, as_of=day(4)) == [old]
    assert memory.ids("Where does Ana live?", at=10, as_of=day(6)) == [new]


def test_keeping_again_changes_nothing_even_when_the_kept_was_superseded_since(memory: Memory) -> None:
    old, new = add(memory, PORTO), add(memory, LISBON)
    keep(memory, new, old)
    memory.store({"text": "Ana moved away.", "supersedes": str(new)}, at=11)
    before = memory.rows("select facts::text, activity::text from facts, activity where fact = id order by id")
    keep(memory, new, old, at=12)
    assert memory.rows("select facts::text, activity::text from facts, activity where fact = id order by id") == before


def test_a_late_repeat_of_keeping_does_not_undo_a_later_restore(memory: Memory) -> None:
    old, new = add(memory, PORTO), add(memory, LISBON)
    keep(memory, new, old)
    memory.restore(old, at=11)
    with pytest.raises(InvalidInputError, match=f"{old} was restored at .* later than this was asked"):
        keep(memory, new, old)
    keep(memory, new, old, at=12)
    assert pairs(memory) == []


def test_several_are_superseded_by_one_or_none_is(memory: Memory) -> None:
    ids = [add(memory, PORTO, text=f"{i}", value=f"{i}") for i in range(3)]
    with pytest.raises(InvalidInputError, match="no fact"):
        keep(memory, ids[0], ids[1], uuid4())
    assert len(pairs(memory)) == 3
    keep(memory, ids[0], ids[1], ids[2])
    assert pairs(memory) == []


def test_what_is_not_live_cannot_be_kept_nor_superseded_again(memory: Memory) -> None:
    old, new = add(memory, PORTO), add(memory, LISBON)
    third = add(memory, PORTO, text="Ana lives in Braga.", value="Braga")
    keep(memory, new, old)
    with pytest.raises(InvalidInputError, match=f"{old} was superseded by {new} already"):
        keep(memory, third, old)
    with pytest.raises(InvalidInputError, match=f"{old} was superseded by {new} already"):
        keep(memory, old, third)
    with pytest.raises(InvalidInputError, match="nothing was ever stored in 'unknown'"):
        supersede.keep(memory.context, "unknown", new, [third], day(10))


def test_of_two_that_keep_opposite_facts_at_once_one_prevails(memory: Memory) -> None:
    def decide(choice: tuple[UUID, UUID]) -> bool:
        try:
            keep(memory, *choice)
        except InvalidInputError:
            return False
        return True

    for round_ in range(15):
        one = add(memory, PORTO, text=f"{round_}", entity=f"{round_}")
        two = add(memory, LISBON, text=f"not {round_}", entity=f"{round_}")
        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(decide, [(one, two), (two, one)])) == [False, True]
    assert memory.value("select count(*) from facts where superseded_at is null") == 15


def test_accepting_both_resolves_the_contradiction_permanently(memory: Memory) -> None:
    old, new = add(memory, PORTO), add(memory, LISBON)
    for _ in range(2):
        supersede.accept(memory.context, "default", new, old, day(10))
    assert pairs(memory) == []
    with pytest.raises(InvalidInputError, match="not known to contradict"):
        supersede.accept(memory.context, "default", new, uuid4(), day(10))
    assert {old, new} <= set(memory.ids("Where does Ana live?", at=10))


def test_counting_looks_facts_up_by_their_ids_even_before_the_tables_are_analysed(memory: Memory) -> None:
    memory.store(*[LISBON | {"text": f"{i}", "value": f"{i}"} for i in range(300)])
    with connect(memory.context.database_url) as db:
        plan = "\n".join(
            row for (row,) in db.execute("explain " + COUNT_CONTRADICTIONS, {"namespace": 1, "now": day(1)})
        )
    assert "facts_pkey" in plan
    assert "facts_said_once" not in plan


def test_a_deleted_fact_takes_its_contradictions_along(memory: Memory) -> None:
    add(memory, PORTO)
    memory.rows("delete from facts where id = %s", add(memory, LISBON))
    assert memory.rows("select * from contradictions") == []
