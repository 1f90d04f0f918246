"""A newer fact supersedes an older one in every search, in one transaction, with its history."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.core.fidelity import FINGERPRINT
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.memory import embed, facts, store, supersede
from workers.memory.add import Stored
from workers.memory.lifetime import UNKNOWN
from workers.storage import activity, namespaces
from workers.storage.connection import connect
from workers.storage.supersession import Closed

PORTO, LISBON, BRAGA = "Ana lives in Porto.", "Ana lives in Lisbon.", "Ana lives in Braga."
ASKED = "Where does Ana live?"
LIVE = "select id from facts where forgotten_at is null and superseded_at is null order by id"


def replaced(memory: Memory, text: str, old: UUID | str, at: float = 10, **fields: Any) -> UUID:
    """Store a fact that supersedes another, and return its id."""
    (stored,) = memory.store({"text": text, "supersedes": str(old), **fields}, at=at)
    assert isinstance(stored, Stored), stored
    assert stored.action == "updated"
    return stored.id


def refused(memory: Memory, old: UUID | str, **fields: Any) -> str:
    """Return the error of a refused supersession, and check that nothing changed."""
    before = memory.rows("select id, superseded_at from facts order by id")
    (refusal,) = memory.store({"text": BRAGA, "supersedes": str(old), **fields}, at=20)
    assert isinstance(refusal, InvalidInputError)
    assert memory.rows("select id, superseded_at from facts order by id") == before
    return str(refusal)


def history(memory: Memory, id_: UUID) -> dict[str, datetime | UUID | None]:
    names = ("valid_from", "valid_until", "superseded_at", "superseded_by", "supersedes_id")
    (row,) = memory.rows(f"select {', '.join(names)} from facts where id = %s", id_)
    return dict(zip(names, row, strict=True))


def actions(answers: list[Stored | InvalidInputError]) -> list[str]:
    return ["refused" if isinstance(one, InvalidInputError) else one.action for one in answers]


def test_the_old_fact_is_closed_and_the_new_one_points_at_it(memory: Memory) -> None:
    old = memory.add(PORTO)
    new = replaced(memory, LISBON, old)
    assert history(memory, old) == {
        "valid_from": day(0), "valid_until": day(10), "superseded_at": day(10), "superseded_by": new,
        "supersedes_id": None,
    }  # fmt: skip
    assert history(memory, new) == {
        "valid_from": day(10), "valid_until": None, "superseded_at": None, "superseded_by": None, "supersedes_id": old,
    }  # fmt: skip


def test_what_was_true_before_it_was_stored_ends_the_old_validity_then(memory: Memory) -> None:
    old = memory.add(PORTO)
    replaced(memory, LISBON, old, at=20, source_date=day(5).isoformat())
    assert (history(memory, old)["valid_until"], history(memory, old)["superseded_at"]) == (day(5), day(20))
    assert memory.ids(ASKED, at=30, as_of=day(4)) == [old]
    assert memory.ids(ASKED, at=30, as_of=day(6)) != [old]
    assert memory.ids(ASKED, at=30, known_as_of=day(19)) == [old]


def test_the_old_fact_leaves_every_arm_at_once(memory: Memory) -> None:
    old = memory.add(PORTO, session=1, turn=1, tags=["home"])
    memory.add("12345 67890", session=1, turn=2)
    new = replaced(memory, LISBON, old)
    for question in (PORTO, "67890"):
        assert old not in memory.ids(question, at=10, limit=50)
    assert memory.ids("Porto", at=10, tag="home") == []
    assert memory.ids(ASKED, at=10)[0] == new
    assert memory.row(old)["live"] is False


def test_the_old_fact_costs_no_later_pass_and_keeps_its_signature_alone(memory: Memory) -> None:
    old = memory.add(PORTO, decay_class="short")
    replaced(memory, LISBON, old, at=1)
    row = memory.row(old)
    assert (row["due"], row["fidelity"], row["dims"]) == (float("inf"), FINGERPRINT, 0)
    assert memory.decay(900).counters.processed == 1
    assert memory.row(old)["forgotten_at"] is None
    assert memory.ids(ASKED, at=900, as_of=day(0.5)) == [old]


def test_changed_rules_of_fading_leave_superseded_facts_alone(memory: Memory) -> None:
    old = memory.add(PORTO)
    memory.decay(1)
    replaced(memory, LISBON, old, at=1)
    memory.having(cull_floor=0.3).decay(2)
    assert memory.row(old)["due"] == float("inf")


def test_going_back_to_what_was_superseded_makes_a_new_live_fact(memory: Memory) -> None:
    first = memory.add(PORTO)
    second = replaced(memory, LISBON, first, at=10)
    third = replaced(memory, PORTO, second, at=20)
    assert third not in {first, second}
    assert memory.ids(ASKED, at=20) == [third]
    assert [memory.ids(ASKED, at=30, as_of=day(at)) for at in (5, 15, 25)] == [[first], [second], [third]]
    assert memory.row(third)["dims"] == 256


def test_a_near_duplicate_of_the_old_fact_keeps_its_own_vector(memory: Memory) -> None:
    old = memory.add("The heat pump talks Modbus TCP on port 502.")
    new = replaced(memory, "The heat pump talks Modbus TCP on port 503.", old)
    assert (memory.row(new)["dims"], memory.row(new)["live"]) == (256, True)
    assert memory.ids("heat pumps", at=10) == [new]


def test_a_live_fact_with_the_words_of_a_superseded_one_is_seen(memory: Memory) -> None:
    old = memory.add(PORTO)
    replaced(memory, LISBON, old)
    again = memory.add(PORTO, at=11)
    assert again in memory.ids("Porto", at=11)


def test_the_same_words_may_supersede_themselves(memory: Memory) -> None:
    old = memory.add(PORTO, importance=0.2)
    new = replaced(memory, PORTO, old, importance=0.9)
    assert memory.rows(LIVE) == [(new,)]
    assert memory.row(new)["dims"] == 256


def test_what_says_the_same_already_takes_the_place(memory: Memory) -> None:
    old, there = memory.add(PORTO), memory.add(LISBON)
    assert replaced(memory, LISBON, old) == there
    assert history(memory, old)["superseded_by"] == there
    assert memory.rows(LIVE) == [(there,)]


@pytest.mark.parametrize("details", [{}, {"entity": "Ana", "key": "home", "value": "Braga"}])
def test_apart_from_others_it_is_refused_if_a_third_fact_says_the_same(memory: Memory, details: dict[str, str]) -> None:
    old, there = memory.add(PORTO), memory.add(BRAGA, **details)
    assert f"the fact {there} says the same" in refused(memory, old, apart=True)
    assert replaced(memory, PORTO, old, apart=True) != old


def test_apart_from_others_it_takes_no_place_that_a_third_fact_takes_meanwhile(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, before = memory.add(PORTO), store.add_within

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        memory.add(BRAGA)
        return before(*arguments, **options)

    monkeypatch.setattr(store, "add_within", meanwhile)
    with pytest.raises(UnavailableError, match="says the same was stored at this very moment"):
        memory.store({"text": BRAGA, "supersedes": str(old), "apart": True}, at=20)
    assert len(memory.rows(LIVE)) == 2


@pytest.mark.parametrize("apart", [False, True])
def test_a_repeat_answers_the_same_and_changes_nothing(memory: Memory, apart: bool) -> None:
    old = memory.add(PORTO)
    new = replaced(memory, LISBON, old, id=str(uuid4()), apart=apart)
    before = memory.rows("select facts::text, activity::text from facts, activity where fact = id order by id")
    assert replaced(memory, LISBON, old, id=str(new), at=12, apart=apart) == new
    assert memory.rows("select facts::text, activity::text from facts, activity where fact = id order by id") == before


def test_a_repeat_after_the_new_fact_was_superseded_itself_answers_the_same(memory: Memory) -> None:
    old = memory.add(PORTO)
    new = replaced(memory, LISBON, old, id=str(uuid4()))
    newest = replaced(memory, BRAGA, new, at=15)
    assert replaced(memory, LISBON, old, id=str(new), at=20) == new
    assert memory.rows(LIVE) == [(newest,)]


def test_a_repeat_under_another_id_is_a_duplicate(memory: Memory) -> None:
    old = memory.add(PORTO)
    new = replaced(memory, LISBON, old)
    (again,) = memory.store({"text": LISBON, "supersedes": str(old)}, at=12)
    assert isinstance(again, Stored)
    assert (again.id, again.action, again.embedded) == (new, "duplicate", True)


def test_an_unknown_fact_cannot_be_superseded(memory: Memory) -> None:
    assert "no fact" in refused(memory, uuid4())


def test_a_fact_of_another_namespace_cannot_be_superseded(memory: Memory) -> None:
    theirs = memory.add(PORTO, namespace="theirs")
    assert f"no fact {theirs} is in this namespace" in refused(memory, theirs)
    assert memory.ids("Porto", namespace="theirs") == [theirs]


def test_a_superseded_fact_is_refused_with_the_id_of_its_successor(memory: Memory) -> None:
    old = memory.add(PORTO)
    new = replaced(memory, LISBON, old)
    assert f"superseded by {new} already" in refused(memory, old)


@pytest.mark.parametrize("a_pass_came", [True, False])
def test_a_forgotten_fact_cannot_be_superseded(memory: Memory, a_pass_came: bool) -> None:
    old = memory.add(PORTO, decay_class="session")
    if a_pass_came:
        memory.decay(2)
    assert "was forgotten already" in refused(memory, old)


def test_a_fact_whose_id_is_taken_supersedes_nothing(memory: Memory) -> None:
    old, other = memory.add(PORTO), memory.add("Tea at four.")
    assert "belongs to another fact" in refused(memory, old, id=str(other))


def test_a_fact_cannot_supersede_itself(memory: Memory) -> None:
    id_ = str(uuid4())
    with pytest.raises(InvalidInputError, match="own id"):
        memory.store({"text": PORTO, "id": id_, "supersedes": id_})


def test_one_bad_fact_of_a_batch_leaves_the_others_stored(memory: Memory) -> None:
    old = memory.add(PORTO)
    answers = memory.store(
        "Tea at four.",
        {"text": BRAGA, "supersedes": str(uuid4())},
        {"text": LISBON, "supersedes": str(old)},
        {"text": BRAGA, "supersedes": str(old)},
        at=10,
    )
    assert actions(answers) == ["added", "refused", "updated", "refused"]
    assert {row["text"] for row in map(memory.row, [id_ for (id_,) in memory.rows(LIVE)])} == {"Tea at four.", LISBON}


def test_a_chain_within_one_batch_ends_at_its_last_fact(memory: Memory) -> None:
    ids = [str(uuid4()) for _ in range(4)]
    texts = [PORTO, LISBON, PORTO, BRAGA]
    chain = [
        {"id": ids[i], "text": texts[i], "created_at": day(i).isoformat()} | ({"supersedes": ids[i - 1]} if i else {})
        for i in range(4)
    ]
    assert actions(memory.store(*chain, at=9)) == ["added", "updated", "updated", "updated"]
    assert memory.rows(LIVE) == [(UUID(ids[3]),)]
    assert [memory.ids(ASKED, at=9, as_of=day(i + 0.5)) for i in range(4)] == [[UUID(id_)] for id_ in ids]
    assert [memory.ids(ASKED, at=9, known_as_of=day(i + 0.5)) for i in range(4)] == [[UUID(id_)] for id_ in ids]
    before = memory.rows("select id, superseded_at, superseded_by, supersedes_id from facts order by id")
    assert actions(memory.store(*chain, at=9)) == ["unchanged", "updated", "updated", "updated"]
    assert memory.rows("select id, superseded_at, superseded_by, supersedes_id from facts order by id") == before


@examples(40)
@given(
    st.lists(
        st.tuples(st.sampled_from([PORTO, LISBON, BRAGA, "Tea at four."]), st.none() | st.integers(0, 7)), max_size=8
    )
)
def test_a_batch_is_what_its_facts_are_one_by_one(memory: Memory, given_facts: list[tuple[str, int | None]]) -> None:
    batched, single = str(uuid4()), str(uuid4())
    ids = [str(uuid4()) for _ in range(8)]
    chain: list[dict[str, Any]] = [
        {"id": ids[i], "text": text} | ({} if old is None or old == i else {"supersedes": ids[old]})
        for i, (text, old) in enumerate(given_facts)
    ]
    answers = memory.store(*chain, namespace=batched) if chain else []
    alone = [memory.store(fact, namespace=single)[0] for fact in chain]
    became = [str(replace(one, life=UNKNOWN)) if isinstance(one, Stored) else str(one) for one in answers]
    assert became == [str(replace(one, life=UNKNOWN)) if isinstance(one, Stored) else str(one) for one in alone]
    state = """
        select facts.id, superseded_at, superseded_by, supersedes_id, live from facts
        join namespaces on namespaces.id = facts.namespace
        join signatures on signatures.namespace = facts.namespace and fact = facts.id
        where name = %s order by 1
    """
    assert memory.rows(state, batched) == memory.rows(state, single)


def test_of_two_that_supersede_the_same_fact_at_once_one_does(memory: Memory) -> None:
    for round_ in range(10):
        old = memory.add(f"Ana has {round_} cats.")
        rivals = [{"text": f"Ana has {round_} cats and {who} dogs.", "supersedes": str(old)} for who in range(4)]
        with ThreadPoolExecutor(4) as pool:
            answers = [one for (one,) in pool.map(lambda rival: memory.store(rival, at=1), rivals)]
        assert sorted(actions(answers)) == ["refused", "refused", "refused", "updated"]
        winner = next(one.id for one in answers if isinstance(one, Stored))
        assert history(memory, old)["superseded_by"] == winner
    assert len(memory.rows(LIVE)) == 10


def test_a_third_fact_that_takes_the_place_of_another_is_stated_again_once_by_both_deliveries(memory: Memory) -> None:
    old, third, use = memory.add(PORTO), memory.add(BRAGA), uuid4()
    fact = {"id": str(uuid4()), "text": BRAGA, "supersedes": str(old), "session": "chat", "importance": 0.9}
    assert actions(memory.store(fact, at=10, use=use)) == ["updated"]
    assert (memory.row(third)["recall_count"], history(memory, old)["superseded_by"]) == (1, third)
    before = memory.archive(10)
    memory.store(fact, at=10, use=use)
    assert memory.archive(10) == before


def test_one_message_delivered_twice_at_once_is_one_supersession(memory: Memory) -> None:
    for round_ in range(10):
        old = memory.add(f"Ana has {round_} cats.")
        fact = {"text": f"Ana has {round_} cats and a dog.", "id": str(uuid4()), "supersedes": str(old)}
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda _, fact=fact: memory.store(fact, at=1), range(2)))
        assert [actions(one) for one in answers] == [["updated"], ["updated"]]
    assert len(memory.rows(LIVE)) == 10


def test_a_fact_that_is_superseded_while_its_end_is_noticed_is_not_forgotten_too(memory: Memory) -> None:
    old = memory.add(PORTO, decay_class="session")
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        tenant = namespaces.id_of(db, "default")
        activity.lock(db, tenant, [old])
        storing = pool.submit(memory.store, PORTO, at=2)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        supersede.close_within(db, tenant, [Closed(old, day(0.5), day(0.5))])
        db.commit()
        assert actions(storing.result()) == ["added"]
    assert memory.rows("select forgotten_at, superseded_at from facts where id = %s", old) == [(None, day(0.5))]


def test_what_is_stated_again_while_its_fact_is_being_superseded_is_stored_anew(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, touched = memory.add(PORTO), store._touched

    def once_superseded(*given: Any) -> Any:
        monkeypatch.undo()
        memory.store({"text": LISBON, "supersedes": str(old)}, at=1)
        return touched(*given)

    monkeypatch.setattr(store, "_touched", once_superseded)
    with pytest.raises(UnavailableError, match="superseded at this very moment"):
        memory.store(PORTO, at=2)
    assert actions(memory.store(PORTO, at=2)) == ["added"]


def test_batches_that_supersede_the_same_facts_in_opposite_order_do_not_deadlock(memory: Memory) -> None:
    old = [one.id for one in memory.store(*[f"Room {i} is free." for i in range(50)]) if isinstance(one, Stored)]
    facts = [{"text": f"Room {i} is taken.", "supersedes": str(id_)} for i, id_ in enumerate(old)]
    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(lambda batch: memory.store(*batch, at=1), [facts, facts[::-1]])
    assert sorted(actions(ours) + actions(theirs)) == ["duplicate"] * 50 + ["updated"] * 50
    assert len(memory.rows(LIVE)) == 50


def test_a_touch_after_the_supersession_changes_nothing(memory: Memory) -> None:
    old = memory.add(PORTO)
    replaced(memory, LISBON, old)
    before = memory.row(old)
    assert memory.touch(old, at=11).changed == []
    assert memory.regenerate(old, at=11) == []
    assert memory.row(old) == before


def test_as_of_reads_touch_nothing_and_see_the_old_fact_by_its_meaning(memory: Memory) -> None:
    old = memory.add("Grandmother keeps the violoncello upstairs.")
    replaced(memory, "She sold it.", old)
    assert memory.ids("grandmas cellos", at=20, as_of=day(1)) == [old]


def test_reembedding_makes_no_superseded_fact_live(memory: Memory) -> None:
    old = memory.add(PORTO)
    new = replaced(memory, LISBON, old)
    other = memory.having(max_vector_dim=128)
    assert embed.reset(other.context) == 1
    assert embed.embed_pending(other.context, embed.START, day(11)) is not None
    assert embed.embed_pending(other.context, (2**31 - 1, UUID(int=0)), day(11)) is None
    assert other.rows("select fact from signatures where live") == [(new,)]
    assert other.ids(ASKED, at=11) == [new]
    assert other.ids("Porto", at=11, as_of=day(5)) == [old]
    assert other.row(old)["due"] == float("inf")


def test_a_fact_superseded_before_it_had_a_vector_gets_a_signature_and_never_gets_live(memory: Memory) -> None:
    old = memory.add(PORTO)
    memory.rows("delete from signatures where fact = %s", old)
    memory.rows("update activity set fidelity = 0 where fact = %s", old)
    replaced(memory, LISBON, old)
    assert memory.stats(10).pending_embeddings == 0
    assert embed.waiting(memory.context) == 0
    assert embed.embed_pending(memory.context, embed.START, day(11)) is not None
    assert embed.embed_pending(memory.context, embed.START, day(11)) is None
    assert memory.rows("select live from signatures where fact = %s", old) == [(False,)]
    assert memory.row(old)["dims"] == 0


def crash_after(statement: str) -> Callable[..., None]:
    def crash(*_: Any, **__: Any) -> None:
        raise RuntimeError(statement)

    return crash


@pytest.mark.parametrize("step", ["supersession.close", "supersession.link", "facts.ask_add"])
def test_a_process_that_dies_amid_a_supersession_leaves_the_old_fact(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    old = memory.add(PORTO)
    monkeypatch.setattr(f"workers.storage.{step}", crash_after(step))
    with pytest.raises(RuntimeError):
        memory.store({"text": LISBON, "supersedes": str(old)}, at=10)
    monkeypatch.undo()
    assert memory.rows(LIVE) == [(old,)]
    assert replaced(memory, LISBON, old) in memory.ids(ASKED, at=10)


def test_the_latest_of_a_chain_is_shown_for_any_of_its_facts(memory: Memory) -> None:
    ids = [memory.add("Ana lives in Porto.")]
    for day_, town in enumerate(("Braga", "Lisbon", "Faro"), start=1):
        ids.append(replaced(memory, f"Ana lives in {town}.", ids[-1], at=day_))
    for id_ in ids:
        assert facts.show(memory.context, "default", id_, day(10), latest=True)["id"] == ids[-1]
    assert facts.show(memory.context, "default", ids[0], day(10))["id"] == ids[0]
    memory.forget(ids[-1], at=11)
    with pytest.raises(NotFoundError):
        facts.show(memory.context, "default", ids[0], day(12), latest=True)


def test_the_latest_of_a_chain_of_any_length_is_shown(memory: Memory) -> None:
    memory.store(*(f"Ana's order {number} is on its way." for number in range(1_500)))
    memory.rows("""
        update facts set superseded_by = next
        from (select id, lead(id) over (order by id) as next from facts) as chain
        where facts.id = chain.id
    """)
    ids = [id_ for (id_,) in memory.rows("select id from facts order by id")]
    assert facts.show(memory.context, "default", ids[0], day(0), latest=True)["id"] == ids[-1]


def test_a_chain_that_is_a_circle_has_no_latest_fact(memory: Memory) -> None:
    one, two = memory.add(PORTO), memory.add(LISBON)
    memory.rows("update facts set superseded_by = case id when %s then %s else %s end", one, two, one)
    assert facts.show(memory.context, "default", one, day(0), latest=True)["id"] == one
