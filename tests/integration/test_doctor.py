"""The doctor finds each fault of a fact, repairs it on request, and changes nothing else."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from memory import Memory, day

from workers.admin import doctor
from workers.admin.doctor import FAULTS
from workers.coordination import signals
from workers.memory import embed
from workers.storage.connection import transaction


def spoil(memory: Memory, statement: str, id_: UUID) -> None:
    memory.rows(statement, id_)


SPOILT = {
    "no activity": "delete from activity where fact = %s",
    "no vector": "delete from vectors where fact = %s",
    "no signature": "delete from signatures where fact = %s",
    "signature of another": "update signatures set signature = ~signature where fact = %s",
    "wrong dimensions": "update vectors set embedding = subvector(embedding, 1, 32)::halfvec where fact = %s",
    "vector left over": "update activity set fidelity = 32767, due_at = 'infinity' where fact = %s",
    "hidden": "update signatures set live = false where fact = %s",
    "not counted": "update activity set retired = true where fact = %s",
    "wrong due": "update activity set due_at = 'infinity' where fact = %s",
}
OF_ENDED = {
    "shown": "update signatures set live = true where fact = %s",
    "counted though ended": "update activity set retired = false where fact = %s",
    "due though ended": "update activity set due_at = now() where fact = %s",
    "vector left over": "insert into vectors select namespace, fact, 4, '[1,2,3,4]' from activity where fact = %s",
}


@pytest.fixture
def tended(memory: Memory) -> Callable[[], None]:
    """Embed missing vectors and run a pass, as workers do after a repair."""

    def tend() -> None:
        place: embed.Position | None = embed.START
        while place is not None:
            place = embed.embed_pending(memory.context, place, day(2))
        memory.decay(2)

    return tend


def test_nothing_is_wrong_with_facts_in_every_state(memory: Memory) -> None:
    ids = [memory.add(f"Note {i} of the log", salience=i / 10, at=0) for i in range(10)]
    memory.decay(9)
    memory.forget(ids[0], at=9)
    memory.decay(60)
    memory.touch(ids[9], at=60)
    memory.pin(ids[8], at=60)
    assert memory.examine(60) == {}


@pytest.mark.parametrize(("fault", "statement"), SPOILT.items())
def test_a_fault_is_found_mended_and_then_gone(
    memory: Memory, tended: Callable[[], None], fault: str, statement: str
) -> None:
    spoilt, sound = memory.add("The mill stands by the river."), memory.add("The church has a red door.")
    before = memory.row(sound)
    spoil(memory, statement, spoilt)
    assert memory.examine(1)[fault] == 1
    assert memory.examine(1)[fault] == 1
    assert memory.examine(1, mend=True)[fault] == 1
    tended()
    assert memory.examine(2) == {}
    assert memory.row(sound) | {"due": 0} == before | {"due": 0}
    assert [one.id for one in memory.ask("Where is the mill?", at=2, limit=1).results] == [spoilt]


@pytest.mark.parametrize(("fault", "statement"), OF_ENDED.items())
def test_a_fault_of_a_forgotten_fact_is_mended_and_the_fact_stays_forgotten(
    memory: Memory, fault: str, statement: str
) -> None:
    id_ = memory.add("The ferry leaves at six.")
    memory.forget(id_, at=1)
    spoil(memory, statement, id_)
    assert memory.examine(1, mend=True) == {fault: 1}
    assert memory.examine(1) == {}
    assert memory.ask("When does the ferry leave?", at=1).results == []


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_fact_whose_activity_is_rebuilt_is_counted_as_what_it_is(memory: Memory, forgotten: bool) -> None:
    id_ = memory.add("The ferry leaves at six.")
    if forgotten:
        memory.forget(id_, at=1)
    spoil(memory, SPOILT["no activity"], id_)
    memory.examine(1, mend=True)
    assert (memory.stats(1).facts, memory.stats(1).forgotten) == ((0, 1) if forgotten else (1, 0))


@pytest.mark.parametrize(("kind", "reason"), [("semantic", "culled"), ("episodic", "aged"), ("chunk", None)])
def test_a_fact_whose_activity_is_rebuilt_has_its_value_and_ends_as_its_kind_does(
    memory: Memory, kind: str, reason: str | None
) -> None:
    id_ = memory.add("The ferry leaves at six.", kind=kind, importance=1.0)
    worth = memory.value("select worth from activity")
    spoil(memory, SPOILT["no activity"], id_)
    memory.examine(1, mend=True)
    assert memory.value("select worth from activity") == worth
    assert memory.decay(89).counters.forgotten == 0
    memory.decay(2_000)
    assert memory.row(id_)["forgotten_reason"] == reason


@pytest.mark.parametrize("namespace", [None, "default"])
def test_what_is_left_of_a_fact_that_is_gone_is_found_and_deleted(memory: Memory, namespace: str | None) -> None:
    ids = sorted(memory.add(f"Note {n} of the log.") for n in range(4))
    for gone in ids[1:]:
        memory.link(ids[0], gone, strength=0.5)
    memory.rows("insert into likenesses values (1, %s, %s, 0.95, now())", ids[0], ids[2])
    memory.rows("insert into contradictions values (1, %s, %s, now())", ids[0], ids[2])
    memory.pin(ids[3], at=0)
    cut_away(memory, "delete from facts where id = any(%s)", ids[1:])
    assert memory.examine(1, namespace=namespace) == {"left over": 3}
    assert memory.examine(1, namespace=namespace, mend=True) == {"left over": 3}
    assert memory.examine(1) == {}
    left = memory.rows("select 1 from links union all select 2 from likenesses union all select 3 from events")
    assert (left, memory.value("select count(*) from activity"), memory.stats(1).facts) == ([], 1, 1)


def test_what_is_left_is_found_in_every_namespace_and_by_small_steps(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "BATCH", 2)
    kept = [memory.add(f"Note {n}.", namespace=f"tenant-{n % 3}") for n in range(15)]
    gone = [memory.add(f"Note {n}, torn out.", namespace=f"tenant-{n % 5}") for n in range(20)]
    cut_away(memory, "delete from facts where id = any(%s)", gone)
    assert memory.examine(1, namespace="tenant-1") == {"left over": 4}
    assert memory.examine(1, mend=True) == {"left over": 20}
    assert memory.examine(1) == {}
    assert memory.value("select count(*) from signatures") == len(kept)


def cut_away(memory: Memory, statement: str, *values: Any) -> None:
    """Run a statement without foreign keys and triggers, as a careless restore does."""
    with transaction(memory.context.database_url) as db:
        db.execute("set local session_replication_role = replica")
        db.execute(statement, values)


@pytest.mark.parametrize(
    "statement",
    [
        "with gone as (delete from tally_changes) delete from tallies",
        "update tally_changes set facts = facts + 2",
        "insert into tallies (namespace, forgotten_reason, facts) values (1, 'faded', 3)",
        "update activity set tier = 1, decay_class = null, decay_class_source = null",
        "update facts set forgotten_at = null, forgotten_reason = null where forgotten_reason is not null",
    ],
)
def test_wrong_counts_are_counted_again(memory: Memory, statement: str) -> None:
    for n in range(4):
        memory.add(f"Note {n} of the log.", decay_class="stable")
    other = memory.add("The lamp is green.", namespace="other")
    memory.forget(memory.add("The ferry leaves at six."), at=0)
    cut_away(memory, statement)
    assert memory.examine(0, namespace="default")["miscounted"] > 0
    assert memory.examine(0, mend=True)["miscounted"] > 0
    assert "miscounted" not in memory.examine(0)
    assert memory.stats(0).facts == memory.value("select count(*) from activity where not retired and namespace = 1")
    assert memory.row(other)["live"]


def test_words_are_counted_again_after_a_mending(memory: Memory) -> None:
    memory.add("The lamp is green.")
    memory.add("The lamp is blue.", namespace="other")
    signals.take_grown(memory.context.redis)
    memory.examine(1)
    assert signals.take_grown(memory.context.redis) == []
    memory.examine(1, namespace="other", mend=True)
    assert signals.take_grown(memory.context.redis) == ["other"]
    memory.examine(1, mend=True)
    assert {"default", "other"} <= set(signals.take_grown(memory.context.redis))


def test_a_vector_of_other_dimensions_than_the_embedders_is_computed_again(memory: Memory) -> None:
    id_ = memory.add("The mill stands by the river.")
    spoil(memory, "update vectors set full_dims = 32, embedding = subvector(embedding, 1, 32) where fact = %s", id_)
    assert memory.examine(1) == {"wrong dimensions": 1}


def test_every_fault_is_tested() -> None:
    assert SPOILT.keys() | OF_ENDED.keys() | {"left over", "miscounted"} == FAULTS.keys()


def test_only_the_namespace_that_was_asked_for_is_examined(memory: Memory) -> None:
    other = memory.add("The lamp is green.", namespace="other")
    memory.add("The lamp is blue.")
    spoil(memory, SPOILT["hidden"], other)
    assert memory.examine(1, namespace="default", mend=True) == {}
    assert memory.examine(1, namespace="other") == {"hidden": 1}
    assert memory.examine(1, namespace="unknown") == {}
    assert memory.examine(1) == {"hidden": 1}


def test_facts_of_a_short_class_are_distinguished_from_faults(memory: Memory) -> None:
    memory.add("The oven needs ten minutes.", decay_class="session")
    memory.decay(0.9)
    assert memory.examine(0.95) == {}


def test_facts_that_the_next_pass_computes_by_changed_settings_are_no_fault(memory: Memory) -> None:
    spoilt, _ = memory.add("The mill stands by the river."), memory.add("The lamp is blue.", namespace="other")
    memory.decay(1)
    memory.choose({"hygiene.confidenceDecay.halfLife": 60}, at=1)
    spoil(memory, SPOILT["hidden"], spoilt)
    assert memory.examine(1) == {"hidden": 1}
    assert memory.examine(1, mend=True) == {"hidden": 1}
    memory.decay(2)
    assert memory.examine(2) == {}


def test_a_fact_that_changes_at_this_very_instant_is_no_fault(memory: Memory) -> None:
    memory.add("The mill stands by the river.", strength=1.0)
    assert memory.row(memory.value("select id from facts"))["due"] > 6
    assert memory.examine(6) == {}
    assert memory.decay(6.1).counters.warm == 1


def test_what_a_pass_made_of_facts_as_of_next_year_is_no_fault(memory: Memory) -> None:
    for i in range(5):
        memory.add(f"Note {i} of the log", salience=i / 5)
    memory.decay(400)
    assert memory.examine(1) == {}
