"""Forgetting on request: hidden at once, restored on request, and not stored again unless asked."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.retention import Outcome
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.admin import search_indexes
from workers.core.fidelity import FINGERPRINT, FULL
from workers.errors import InvalidInputError, UnavailableError
from workers.memory import embed, restore, store
from workers.memory.add import Stored
from workers.memory.forget import forget_within, outcome_of
from workers.storage import activity
from workers.storage.connection import connect, transaction

TEXT = "The spare key lies under the flower pot."


def did(outcomes: list[Outcome | InvalidInputError]) -> list[str]:
    return ["refused" if isinstance(one, InvalidInputError) else one.action for one in outcomes]


def said(memory: Memory, *facts: str | dict[str, Any], at: float) -> list[tuple[str, UUID]]:
    return [(one.action, one.id) for one in memory.store(*facts, at=at) if isinstance(one, Stored)]


def tenant(memory: Memory) -> int:
    return int(memory.value("select id from namespaces"))


# Forget ---------------------------------------------------------------------------------------------------------


def test_what_is_forgotten_on_request_is_hidden_at_once_and_keeps_its_text(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    assert memory.forget(id_, at=3) == [outcome_of(id_, day(3), "asked", "forgotten")]
    row = memory.row(id_)
    assert memory.ids("spare key", at=3) == []
    assert (row["text"], row["forgotten_reason"], row["live"], row["dims"]) == (TEXT, "asked", False, 0)
    assert (row["fidelity"], row["due"]) == (FINGERPRINT, float("inf"))


def test_forgetting_again_changes_nothing_and_says_when_and_why_it_was_forgotten(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.forget(id_, at=3)
    before, events = memory.row(id_), memory.history(id_)
    assert memory.forget(id_, id_, at=5) == [outcome_of(id_, day(3), "asked", "unchanged")] * 2
    assert (memory.row(id_), memory.history(id_)) == (before, events)


def test_each_of_many_ids_is_answered_for_itself(memory: Memory) -> None:
    live, gone, unknown = memory.add(TEXT), memory.add("Tea at four."), uuid4()
    theirs = memory.add("Cake on Sunday.", namespace="theirs")
    memory.forget(gone, at=1)
    assert did(memory.forget(unknown, gone, live, theirs, at=2)) == ["unknown", "unchanged", "forgotten", "unknown"]
    assert memory.row(theirs)["forgotten_at"] is None
    assert did(memory.forget(live, at=2, namespace="unknown")) == ["unknown"]


def test_a_deletion_request_overrides_an_ending_by_decay(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    memory.decay(2)
    assert memory.forget(id_, at=3) == [outcome_of(id_, day(3), "asked", "forgotten")]
    assert said(memory, TEXT, at=4) == [("forgotten", id_)]
    assert memory.history(id_) == [("stored", 0), ("forgotten", 2), ("forgotten", 3)]


@pytest.mark.parametrize("fields", [{"decay_class": "permanent"}, {}])
def test_only_a_deletion_request_removes_a_permanent_or_pinned_fact(memory: Memory, fields: dict[str, Any]) -> None:
    id_ = memory.add(TEXT, confidence=0.2, **fields)
    memory.pin(id_, at=0) if not fields else None
    memory.decay(3_000, force=True)
    assert memory.ids("spare key", at=3_000) == [id_]
    assert did(memory.forget(id_, at=3_000)) == ["forgotten"]
    assert memory.ids("spare key", at=3_000) == []


def test_a_repeated_deletion_request_does_not_undo_a_later_restore(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.forget(id_, at=1)
    memory.restore(id_, at=2)
    (refused,) = memory.forget(id_, at=1)
    assert "was restored at" in str(refused)
    assert memory.ids("spare key", at=2) == [id_]


def test_a_late_deletion_request_overrides_what_a_recall_restored_after_it(memory: Memory) -> None:
    id_ = memory.add("The oven is slow.", decay_class="session")
    memory.decay(2)
    assert restore.revive(memory.context, "default", [id_], day(5))[0] == [id_]
    (outcome,) = memory.forget(id_, at=4)
    assert isinstance(outcome, Outcome)
    assert outcome.action == "forgotten"


def test_concurrent_deliveries_of_a_deletion_request_forget_each_fact_once(memory: Memory) -> None:
    ids = [memory.add(f"Guest number {number}.") for number in range(30)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda order: did(memory.forget(*order, at=1)), [ids, ids[::-1]]))
    assert sorted(found[0] + found[1]) == ["forgotten"] * 30 + ["unchanged"] * 30
    assert memory.value("select count(*) from events") == 30


def test_a_batch_of_a_pass_notes_all_that_it_forgets_in_one_statement(memory: Memory) -> None:
    memory.store(*[{"text": f"Guest number {number}.", "decay_class": "checkpoint"} for number in range(150)])
    memory.decay(2)
    assert memory.rows("select what, details->>'reason', count(*) from events group by 1, 2") == [
        ("forgotten", "expired", 150)
    ]


# Stored again ---------------------------------------------------------------------------------------------------


def test_statements_forgotten_on_request_are_not_stored_again(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.forget(id_, at=1)
    assert said(memory, TEXT, f"  {TEXT.upper()} ", "Tea at four.", at=2)[:2] == [("forgotten", id_)] * 2
    assert memory.rows("select text from facts where forgotten_at is null") == [("Tea at four.",)]


def test_a_first_store_repeated_after_a_deletion_request_stores_nothing(memory: Memory) -> None:
    fact = {"id": str(uuid4()), "text": TEXT}
    memory.store(fact)
    memory.forget(UUID(fact["id"]), at=1)
    assert said(memory, fact, at=0) == [("forgotten", UUID(fact["id"]))]


def test_storing_with_again_adds_the_fact_and_revokes_the_deletion_request(memory: Memory) -> None:
    first = memory.add(TEXT, decay_class="session")
    memory.forget(first, at=0.1)
    again = {"id": str(uuid4()), "text": TEXT, "again": True, "decay_class": "session"}
    assert said(memory, again, at=0.2) == [("added", UUID(again["id"]))]
    assert said(memory, again, TEXT, at=0.3) == [("unchanged", UUID(again["id"])), ("duplicate", UUID(again["id"]))]
    assert [action for action, _ in said(memory, TEXT, at=2)] == ["added"]


def test_what_faded_by_itself_is_stored_as_new(memory: Memory) -> None:
    first = memory.add(TEXT, confidence=0.2)
    memory.decay(200)
    ((action, second),) = said(memory, TEXT, at=201)
    assert (action, second != first) == ("added", True)


def test_a_deletion_request_applies_to_its_namespace_only(memory: Memory) -> None:
    memory.forget(memory.add(TEXT, namespace="ours"), at=1, namespace="ours")
    memory.add(TEXT, at=2, namespace="theirs")
    assert memory.value("select count(distinct digest) from forgotten_hashes") == 1
    memory.forget(*memory.ids("key", at=2, namespace="theirs"), at=3, namespace="theirs")
    assert memory.value("select count(distinct digest) from forgotten_hashes") == 2


def test_a_live_statement_is_a_duplicate_even_if_an_older_one_was_forgotten_on_request(memory: Memory) -> None:
    older = memory.add(TEXT)
    memory.rows("update facts set superseded_at = %s where id = %s", day(1), older)
    newer = memory.add(TEXT, at=2)
    memory.forget(older, at=3)
    assert said(memory, TEXT, at=4) == [("duplicate", newer)]


def in_another_transaction(memory: Memory, begin: Callable[[Any], object], act: Callable[[], Any]) -> "Future[Any]":
    """Open a transaction, run an action until it waits for the transaction, commit, and return the action's result."""
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        begin(db)
        acting = pool.submit(act)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.commit()
        acting.exception()
    return acting


def test_a_store_that_waits_while_its_fact_is_forgotten_does_not_make_it_due_again(memory: Memory) -> None:
    id_, number = memory.add(TEXT), tenant(memory)
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        activity.lock(db, number, [id_])
        acting = pool.submit(lambda: memory.store(TEXT, at=1))
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        forget_within(db, [number], [id_], ["asked"], day(1))
        db.commit()
        acting.exception()
    assert memory.value("select retired and due_at = 'infinity' from activity") is True
    assert memory.stats(at=2).facts == 0


def test_a_store_at_the_moment_of_a_deletion_request_does_not_slip_through(memory: Memory) -> None:
    id_, number = memory.add(TEXT), tenant(memory)
    acting = in_another_transaction(
        memory,
        lambda db: forget_within(db, [number], [id_], ["asked"], day(1)),
        lambda: memory.store(TEXT, at=1, touch=False),
    )
    assert isinstance(acting.exception(), UnavailableError)
    assert said(memory, TEXT, at=1) == [("forgotten", id_)]
    assert memory.value("select count(*) from facts") == 1


@pytest.mark.parametrize("purge", [True, False])
def test_a_store_of_a_known_statement_that_is_just_being_forgotten_says_so(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, purge: bool
) -> None:
    id_, touched = memory.add(TEXT), store._touched

    def once_forgotten(*given: Any) -> Any:
        monkeypatch.undo()
        memory.forget(id_, at=1, purge=purge)
        return touched(*given)

    monkeypatch.setattr(store, "_touched", once_forgotten)
    with pytest.raises(UnavailableError, match="forgotten or superseded at this very moment"):
        memory.store({"text": TEXT, "session": "s"}, at=1)
    assert said(memory, {"text": TEXT, "session": "s"}, at=1) == [("forgotten", id_)]
    assert memory.value("select count(*) from occurrences") == 0


def test_what_is_forgotten_stays_so_after_every_background_job(memory: Memory) -> None:
    pending, faded, fresh = (memory.add(f"{TEXT} {name}") for name in ("Pending.", "Faded.", "Fresh."))
    memory.rows("update activity set fidelity = 0 where fact = %s", pending)
    memory.forget(pending, faded, fresh, at=1)
    memory.regenerate(pending, faded, fresh, at=2)
    memory.touch(pending, faded, fresh, at=2)
    for at in (10, 40, 800):
        memory.decay(at, force=True)
    embed.reset(memory.context)
    place: embed.Position | None = embed.START
    while place is not None:
        place = embed.embed_pending(memory.context, place, day(3))
    search_indexes.count_lexemes(memory.context, "default", day(4))
    search_indexes.index_large_namespaces(memory.having(ann_threshold=1).context)
    assert memory.ids("spare key under the flower pot", at=4) == []
    assert memory.rows("select * from vectors") == memory.rows("select * from lexemes") == []
    assert memory.rows("select * from signatures where live") == []


# Restore --------------------------------------------------------------------------------------------------------


REASONS: dict[str, Callable[[Memory, UUID], object]] = {
    "asked": lambda memory, id_: memory.forget(id_, at=200),
    "expired": lambda memory, _: memory.decay(200),
    "culled": lambda memory, _: memory.decay(200),
    "expired unmet": lambda _memory, _id: None,
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_was_forgotten_for_any_reason_is_live_again_as_if_just_recalled(memory: Memory, reason: str) -> None:
    fields = {"confidence": 0.2} if reason == "culled" else {"decay_class": "stable"}
    id_ = memory.add(TEXT, strength=0.4, **fields)
    REASONS[reason](memory, id_)
    assert memory.ids("spare key", at=201) == []
    assert did(memory.restore(id_, at=201)) == ["restored"]
    row = memory.row(id_)
    assert memory.ids("spare key", at=201) == [id_]
    assert (row["forgotten_at"], row["forgotten_reason"], row["live"]) == (None, None, True)
    assert (row["last_seen"], row["confirmed"], row["recall_count"], row["fidelity"]) == (201, 201, 0, FULL)
    assert row["base"] == pytest.approx(0.5, abs=0.01)
    assert row["expires"] == (291 if reason != "culled" else float("inf"))
    assert [what for what, _ in memory.history(id_)] == ["stored", "forgotten", "restored"]


def test_restoring_twice_changes_nothing(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.forget(id_, at=1)
    memory.restore(id_, at=2)
    before, events = memory.row(id_), memory.history(id_)
    assert did(memory.restore(id_, id_, at=2)) == did(memory.restore(id_, id_, at=3)) == ["unchanged", "unchanged"]
    assert (memory.row(id_), memory.history(id_)) == (before, events)


def test_a_restored_fact_lives_on_though_its_confidence_was_too_low(memory: Memory) -> None:
    id_ = memory.add(TEXT, confidence=0.05)
    memory.decay(1)
    assert memory.row(id_)["forgotten_reason"] == "culled"
    memory.restore(id_, at=2)
    memory.decay(100)
    assert (memory.row(id_)["confidence"], memory.ids("key", at=100)) == (1.0, [id_])


def test_what_soft_decay_took_comes_back_with_the_fact(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="normal")
    memory.decay(10.55)
    assert memory.value("select halvings::int from activity") == 2
    memory.forget(id_, at=10.56)
    memory.restore(id_, at=10.57)
    assert memory.value("select halvings::int from activity") == 0
    assert (memory.row(id_)["expires"], memory.row(id_)["confidence"]) == (24.57, 1.0)


def test_a_restored_fact_is_found_by_its_signature_until_its_vector_is_computed_again(memory: Memory) -> None:
    id_ = memory.add("Grandmother keeps the violoncello upstairs.")
    memory.forget(id_, at=1)
    memory.having(regeneration_enabled=False).restore(id_, at=2)
    assert memory.row(id_)["fidelity"] == FINGERPRINT
    assert memory.ids("grandmas cellos", at=2) == [id_]


def test_a_restored_fact_without_vector_waits_for_one_again(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.rows("update activity set fidelity = 0")
    memory.rows("delete from vectors")
    memory.forget(id_, at=1)
    assert memory.stats(1).pending_embeddings == 0
    memory.restore(id_, at=2)
    assert memory.stats(2).pending_embeddings == 1


def test_a_duplicate_of_a_live_fact_is_not_restored(memory: Memory) -> None:
    first = memory.add(TEXT)
    memory.forget(first, at=1)
    ((_, second),) = said(memory, {"text": TEXT, "again": True}, at=2)
    (refused,) = memory.restore(first, at=3)
    assert f"for fact {second} says the same" in str(refused)
    memory.forget(second, at=4)
    assert did(memory.restore(second, first, at=5)) == ["restored", "refused"]


def test_of_a_statement_with_and_without_detail_one_is_restored(memory: Memory) -> None:
    plain = memory.add(TEXT)
    memory.forget(plain, at=1)
    ((_, detailed),) = said(memory, {"text": TEXT, "again": True, "entity": "Mira"}, at=2)
    memory.forget(detailed, at=3)
    found = memory.restore(plain, detailed, at=4)
    assert did(found) == ["restored", "refused"]
    assert f"for fact {plain} says the same" in str(found[1])


def test_an_ended_duplicate_does_not_prevent_a_store(memory: Memory) -> None:
    first = memory.add(TEXT)
    memory.forget(first, at=1)
    said(memory, {"text": TEXT, "again": True, "decay_class": "session"}, at=2)
    assert did(memory.restore(first, at=4)) == ["restored"]


def test_ids_that_are_not_there_are_refused_and_the_others_restored(memory: Memory) -> None:
    ours, theirs = memory.add(TEXT), memory.add("Tea at four.", namespace="theirs")
    memory.forget(ours, at=1)
    memory.forget(theirs, at=1, namespace="theirs")
    assert did(memory.restore(uuid4(), theirs, ours, at=2)) == ["refused", "refused", "restored"]
    assert did(memory.restore(ours, at=2, namespace="unknown")) == ["refused"]
    assert memory.row(theirs)["forgotten_reason"] == "asked"


def test_a_repeated_restore_does_not_undo_a_later_deletion_request(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.forget(id_, at=1)
    memory.restore(id_, at=2)
    memory.forget(id_, at=3)
    (refused,) = memory.restore(id_, at=2)
    assert "was forgotten at" in str(refused)
    assert memory.ids("key", at=3) == []


def test_restoring_revokes_the_deletion_request(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.forget(id_, at=1)
    memory.restore(id_, at=2)
    assert said(memory, TEXT, at=3) == [("duplicate", id_)]


def test_a_superseded_fact_that_is_restored_stays_superseded(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    memory.rows("update facts set superseded_at = %s", day(1))
    memory.rows("update signatures set live = false")
    memory.add(TEXT, at=2)
    memory.forget(id_, at=3)
    assert did(memory.restore(id_, at=4)) == ["restored"]
    assert (memory.row(id_)["live"], memory.row(id_)["last_seen"]) == (False, 0)


def test_restoring_while_the_same_is_being_stored_ends_in_one_live_fact(memory: Memory) -> None:
    id_, number = memory.add(TEXT), tenant(memory)
    memory.forget(id_, at=1)
    copy = """
        insert into facts (namespace, id, text, hash, created_at, valid_from)
        select namespace, gen_random_uuid(), text, hash, created_at, valid_from from facts where namespace = %s
    """
    acting = in_another_transaction(memory, lambda db: db.execute(copy, [number]), lambda: memory.restore(id_, at=2))
    assert isinstance(acting.exception(), UnavailableError)
    assert did(memory.restore(id_, at=2)) == ["refused"]
    assert memory.row(id_)["forgotten_reason"] == "asked"


def test_a_fact_that_is_being_embedded_while_it_is_forgotten_keeps_no_vector(memory: Memory) -> None:
    id_, number = memory.add(TEXT), tenant(memory)
    acting = in_another_transaction(
        memory, lambda db: activity.lock(db, number, [id_]), lambda: memory.forget(id_, at=1)
    )
    assert did(acting.result()) == ["forgotten"]
    with transaction(memory.context.database_url) as db:
        assert db.execute("select count(*) from vectors").fetchone() == (0,)
