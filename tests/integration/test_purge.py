"""Purge: old tombstones are erased without a trace of their text, and stay forgotten."""

import itertools
import math
from typing import Any
from uuid import UUID

import pytest
from ebb.contract.retention import ShowHistory
from memory import Memory, day

from workers.admin import purge, search_indexes
from workers.coordination import signals
from workers.errors import InvalidInputError, UnavailableError
from workers.memory import history
from workers.memory.forget import outcome_of
from workers.storage import activity
from workers.storage.connection import connect

# a number this long does not occur in a hash by chance
SECRET = "Xylophone lessons with Quetzalcoatl cost 47110815."
TABLES = """
    select relname from pg_class where relkind = 'r' and relnamespace = quote_ident(current_schema())::regnamespace
"""


def traces(memory: Memory, id_: UUID) -> set[str]:
    """Return the tables that contain a word of the secret, its hash or its id."""
    found = set()
    for (table,) in memory.rows(TABLES):
        rows = " ".join(row for (row,) in memory.rows(f"select one::text from {table} as one")).lower()
        words = ("xylophon", "quetzalcoatl", "47110815", str(id_), memory.value("select sha256(%s)::text", b"x")[2:20])
        found |= {f"{table}: {word}" for word in words if word in rows}
    return found


def secret(memory: Memory, *, at: float = 0) -> UUID:
    id_ = memory.add(SECRET, at=at, entity="Quetzalcoatl", tags=["xylophone"])
    memory.pin(id_, at=at)
    search_indexes.count_lexemes(memory.context, "default", day(at))
    return id_


def test_a_fact_is_purged_when_its_time_is_over_and_not_before(memory: Memory) -> None:
    id_ = secret(memory)
    memory.forget(id_, at=10)
    assert memory.purge(at=40) == 0
    assert purge.waiting(memory.context, day(40.1), None) == 1
    assert memory.purge(at=40.1) == 1
    assert memory.purge(at=40.1) == purge.waiting(memory.context, day(500), None) == 0


def test_what_was_superseded_is_purged_after_the_days_of_history_or_never(memory: Memory) -> None:
    old = memory.add("Mira lives in Rome.", at=0)
    (new,) = (one.id for one in memory.store({"text": "Mira lives in Leipzig.", "supersedes": old}, at=1))
    assert memory.purge(at=1000) == 0
    brief = memory.having(history_days=60.0)
    assert brief.purge(at=60) == 0
    assert purge.waiting(brief.context, day(62), None) == brief.purge(at=62) == 1
    assert memory.rows("select id from facts") == [(new,)]
    assert brief.purge(at=62) == 0


def test_only_the_deletion_request_is_left_of_a_purged_fact(memory: Memory) -> None:
    id_ = secret(memory)
    assert len(traces(memory, id_)) > 6
    memory.forget(id_, at=10)
    memory.purge(at=50)
    search_indexes.count_lexemes(memory.context, "default", day(50))
    assert traces(memory, id_) == {f"forgotten_hashes: {id_}"}


def test_what_was_purged_at_once_is_gone_and_stays_so(memory: Memory) -> None:
    id_ = secret(memory)
    assert memory.forget(id_, at=1, purge=True) == [outcome_of(id_, day(1), "asked", "purged")]
    search_indexes.count_lexemes(memory.context, "default", day(1))
    assert traces(memory, id_) == {f"forgotten_hashes: {id_}"}
    (again,) = memory.store(SECRET, at=2)
    assert (again.action, again.id) == ("forgotten", id_)  # type: ignore[union-attr]
    assert memory.forget(id_, at=3, purge=True) == [outcome_of(id_, day(1), "asked", "unchanged")]


@pytest.mark.parametrize("reason", ["asked", "expired"])
def test_tombstones_can_be_purged_at_once_too(memory: Memory, reason: str) -> None:
    id_ = memory.add(SECRET, decay_class="session")
    memory.forget(id_, at=0.5) if reason == "asked" else memory.decay(2)
    (fate,) = memory.forget(id_, at=3, purge=True)
    assert (fate.action, fate.reason) == ("purged", "asked")  # type: ignore[union-attr]
    assert memory.value("select count(*) from facts") == 0


def test_what_was_purged_can_neither_be_restored_nor_shown(memory: Memory) -> None:
    id_ = memory.add(SECRET)
    memory.forget(id_, at=1, purge=True)
    (refused,) = memory.restore(id_, at=2)
    assert "it was purged" in str(refused)
    with pytest.raises(InvalidInputError, match="it was purged"):
        history.history(memory.context, ShowHistory(id=id_), day(2))


def test_what_faded_by_itself_is_purged_if_that_is_wanted_and_may_be_stored_again(memory: Memory) -> None:
    memory.add(SECRET, decay_class="session")
    memory.decay(2)
    assert memory.purge(at=33) == 0
    assert memory.having(deep_days=30).purge(at=33) == 1
    assert memory.value("select count(*) from forgotten_hashes") == 0
    memory.add(SECRET, at=34)


def test_a_purge_takes_any_number_in_batches_and_names_whose_they_were(memory: Memory) -> None:
    for name, count in (("ours", 1_500), ("theirs", 20)):
        memory.store(*[{"text": f"{name} {i}", "decay_class": "checkpoint"} for i in range(count)], namespace=name)
    memory.add("Tea at four.", namespace="idle")
    memory.decay(2)
    memory.demote(at=40)
    owner = memory.having(deep_days=30)
    batches = [purge.purge_batch(owner.context, day(40), None) for _ in range(3)]
    assert [batch.facts for batch in batches] == [1_000, 520, 0]
    assert {name for batch in batches for name in batch.namespaces} == {"ours", "theirs"}


def test_what_a_purge_erases_before_it_is_broken_off_is_counted_for_its_task(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "BATCH", 2)
    ids = [memory.add(f"Stone {number} is grey.") for number in range(5)]
    for id_ in ids:
        memory.forget(id_, at=1)
    erase, left = purge.purge_batch, [1, 1]

    def broken_off(*given: Any, **options: Any) -> purge.Purged:
        if not left:
            raise UnavailableError("broken off")
        left.pop()
        return erase(*given, **options)

    monkeypatch.setattr(purge, "purge_batch", broken_off)
    with pytest.raises(UnavailableError):
        purge.purge(memory.context, day(40), None, "a-task", math.inf)
    assert signals.progress(memory.context.redis, "a-task") == {"purged": 4, "sunk": 0}


@pytest.mark.parametrize("other", ["demote_batch", "purge_batch"])
def test_a_purge_looks_once_for_what_there_is_none_of(
    memory: Memory, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "BATCH", 2)
    for number in range(5):
        id_ = memory.add(f"Stone {number} is grey.", decay_class="session" if other == "purge_batch" else None)
        if other == "demote_batch":
            memory.forget(id_, at=1)
    memory.decay(2)
    look, times = getattr(purge, other), itertools.count()

    def counted(*given: Any, **options: Any) -> Any:
        next(times)
        return look(*given, **options)

    monkeypatch.setattr(purge, other, counted)
    assert purge.purge(memory.context, day(40), None, "a-task", math.inf).total() == 5
    assert next(times) == 1


def test_locked_facts_are_left_for_the_next_purge(memory: Memory) -> None:
    id_ = memory.add(SECRET)
    memory.forget(id_, at=1)
    with connect(memory.context.database_url) as db:
        activity.lock(db, memory.value("select id from namespaces"), [id_])
        assert memory.purge(at=50) == 0
    assert memory.purge(at=50) == 1


def test_the_retention_is_a_setting_and_any_instant_may_be_asked_about(memory: Memory) -> None:
    memory.forget(memory.add(SECRET), at=1)
    assert memory.having(retention_days=5).purge(at=7) == 1
    assert purge.waiting(memory.having(retention_days=36_000).context, day(-700_000), None) == 0


def test_packing_long_texts_ends_a_transaction_early_and_goes_on_in_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "PORTION", 2)
    monkeypatch.setattr(purge, "PACKING_SECONDS", 0)
    memory.store(*({"text": f"Guest {number} takes tea.", "decay_class": "session"} for number in range(5)))
    memory.decay(3, force=True)
    assert [purge.demote_batch(memory.context, day(5), None) for _ in range(4)] == [2, 2, 1, 0]
