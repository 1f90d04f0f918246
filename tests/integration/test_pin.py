"""A pinned fact does not decay; decay continues at the end of its pin."""

from math import inf
from uuid import uuid4

import pytest
from ebb.contract.recall import Lookup
from memory import Memory, day

from workers.core.fidelity import FINGERPRINT, FULL
from workers.errors import InvalidInputError
from workers.memory.recall.lookups import lookup


@pytest.mark.parametrize("decay_class", [None, "session", "stable", "permanent"])
def test_a_pinned_fact_survives_every_pass_whole(memory: Memory, decay_class: str | None) -> None:
    id_ = memory.add("Tea at four.", decay_class=decay_class, confidence=0.2)
    assert memory.pin(id_, at=0.5) == "pinned"
    for at in (1, 30, 300, 3_000):
        memory.decay(at, force=True)
    row = memory.row(id_)
    assert memory.ids("tea", at=3_000) == [id_]
    assert (row["fidelity"], row["dims"], row["ends"], row["due"], row["expires"]) == (FULL, 256, inf, inf, inf)


def test_a_fact_pinned_until_an_instant_fades_on_from_there_as_if_seen_then(memory: Memory) -> None:
    pinned, seen = memory.add("Tea at four."), memory.add("Cake on Sunday.", at=100)
    memory.pin(pinned, at=1, until=100)
    memory.decay(99)
    assert memory.row(pinned)["fidelity"] == FULL
    for at in (106, 113, 120, 129, 190):
        memory.decay(at)
        ours, theirs = memory.row(pinned), memory.row(seen)
        assert [ours[name] for name in ("tier", "fidelity", "dims", "ends", "due")] == [
            pytest.approx(theirs[name], abs=1e-6) for name in ("tier", "fidelity", "dims", "ends", "due")
        ]
    assert memory.row(pinned)["fidelity"] == FINGERPRINT


def test_a_pinned_lifetime_restarts_when_the_pin_ends(memory: Memory) -> None:
    id_ = memory.add("The ticket is in the car.", decay_class="checkpoint")
    memory.pin(id_, at=0.1, until=10)
    assert memory.ids("ticket", at=10 + 3.9 / 24) == [id_]
    assert memory.ids("ticket", at=10 + 4 / 24) == []
    memory.decay(11)
    assert memory.row(id_)["forgotten_reason"] == "expired"


def test_ending_a_pin_without_end_gives_the_lifetime_back(memory: Memory) -> None:
    id_ = memory.add("The ticket is in the car.", decay_class="session")
    memory.pin(id_, at=0.5)
    memory.pin(id_, at=0.6)
    memory.touch(id_, at=5)
    assert memory.unpin(id_, at=20) == "unpinned"
    row = memory.row(id_)
    assert (row["expires"], row["pinned_until"]) == (21, 20)
    memory.decay(20.5)
    assert memory.ids("ticket", at=20.5) == [id_]
    assert memory.unpin(id_, at=20.6) == "unchanged"


@pytest.mark.parametrize("decay_class", ["stable", "session"])
def test_use_of_a_pinned_fact_does_not_shorten_its_life(memory: Memory, decay_class: str) -> None:
    used, unused = (memory.add(f"Tea with {name}.", decay_class=decay_class) for name in ("Ana", "Ben"))
    for id_ in (used, unused):
        memory.pin(id_, at=0.5, until=50)
    memory.touch(used, at=20)
    assert memory.row(used)["expires"] == memory.row(unused)["expires"]
    memory.unpin(used, at=30)
    assert memory.row(used)["expires"] == 30 + (90 if decay_class == "stable" else 1)


@pytest.mark.parametrize("at", [60, 99.9, 100.8])
def test_a_pinned_fact_is_as_strong_in_recalls_and_lookups_as_in_lists(memory: Memory, at: float) -> None:
    id_ = memory.add("Tea at four.", entity="Ana", decay_class="session", salience=0.7)
    memory.pin(id_, at=0.1, until=100)
    (listed,), (recalled,) = memory.listed(at=at), memory.ask("tea", at=at, explain=True).results
    (known,), _ = lookup(memory.context, Lookup(entity="Ana"), day(at))
    assert recalled.tier == known.tier == listed["tier"]
    assert known.score == pytest.approx(listed["effective_confidence"], rel=0.01)  # that halves in 90 days too


def test_a_pinned_fact_ranks_as_if_it_were_just_used(memory: Memory) -> None:
    pinned = memory.add("Tea at four.", salience=0.7)
    memory.pin(pinned, at=1)
    memory.add("Tea at five.", salience=0.7, at=90)
    one, other = (each.explain for each in memory.ask("tea", at=90, explain=True).results)
    assert one is not None
    assert other is not None
    assert one["prior"] == other["prior"]


def test_pinning_restores_what_had_faded(memory: Memory) -> None:
    id_ = memory.add("Tea at four.")
    memory.decay(100)
    assert memory.row(id_)["fidelity"] == FINGERPRINT
    memory.pin(id_, at=101, until=400)
    memory.decay(300)
    assert (memory.row(id_)["fidelity"], memory.row(id_)["dims"]) == (FULL, 256)


def test_pinning_again_the_same_way_changes_nothing(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="stable")
    for until in (None, 50.0):
        assert memory.pin(id_, at=1, until=until) == "pinned"
        before, events = memory.row(id_), memory.history(id_)
        assert memory.pin(id_, at=2, until=until) == "unchanged"
        assert (memory.row(id_), memory.history(id_)) == (before, events)


def test_a_pin_can_be_moved_and_ended(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="normal")
    for until in (100.0, None, 50.0, 200.0):
        memory.pin(id_, at=1, until=until)
    assert memory.row(id_)["expires"] == 214
    memory.unpin(id_, at=10)
    assert memory.row(id_)["expires"] == 24
    assert memory.history(id_) == [("stored", 0), *[("pinned", 1)] * 4, ("unpinned", 10)]


def test_a_pin_that_comes_again_after_a_later_one_is_refused(memory: Memory) -> None:
    id_ = memory.add("Tea at four.")
    memory.pin(id_, at=1)
    memory.unpin(id_, at=2)
    with pytest.raises(InvalidInputError, match="was pinned or unpinned at"):
        memory.pin(id_, at=1)


def test_a_fact_used_while_it_was_held_lives_its_lifetime_after_a_pin(memory: Memory, twin: Memory) -> None:
    for number in range(30):
        memory.add(f"Ticket number {number} is in the car.", decay_class="session")
    memory.rows("update activity set decay_class_source = 'auto'")
    memory.decay(3)
    (one,), (other,), *_ = memory.rows("select fact from activity where held and not retired")
    for id_, until in ((one, 10), (other, None)):
        memory.reinforce(id_, at=5)
        memory.pin(id_, at=6, until=until)
    assert set(twin.import_records(memory.archive(7), at=7)) <= {"added", "kept"}
    for each in (memory, twin):
        each.unpin(other, at=20)
        assert [each.row(id_)["expires"] for id_ in (one, other)] == [11, 21]


def test_pinning_a_held_fact_releases_it_permanently(memory: Memory) -> None:
    memory.store(*[{"text": f"Rumour {number}.", "confidence": 0.2} for number in range(130)])
    memory.decay(200)
    ((held,), *_) = memory.rows("select fact from activity where held")
    memory.pin(held, at=200)
    memory.decay(201, force=True)
    assert (memory.row(held)["held"], memory.row(held)["forgotten_at"]) == (False, None)


def test_what_is_not_live_cannot_be_pinned(memory: Memory) -> None:
    over, gone = memory.add("Tea at four.", decay_class="session"), memory.add("Cake on Sunday.")
    memory.forget(gone, at=1)
    theirs = memory.add("Coffee at ten.", namespace="theirs")
    for id_ in (over, gone, theirs, uuid4()):
        with pytest.raises(InvalidInputError, match="no live fact"):
            memory.pin(id_, at=2)
    with pytest.raises(InvalidInputError, match="no live fact"):
        memory.pin(over, at=0, namespace="unknown")


def test_a_pin_must_end_in_the_future(memory: Memory) -> None:
    id_ = memory.add("Tea at four.")
    with pytest.raises(InvalidInputError, match="is past"):
        memory.pin(id_, at=5, until=5)
    assert memory.history(id_) == [("stored", 0)]


def test_pinned_facts_are_counted_while_they_are(memory: Memory) -> None:
    for id_, until in ((memory.add("Tea at four."), None), (memory.add("Cake on Sunday."), 10.0)):
        memory.pin(id_, at=1, until=until)
    memory.add("Coffee at ten.")
    assert [memory.stats(at).pinned for at in (1, 9, 10)] == [2, 2, 1]


def test_a_forgotten_pinned_fact_is_restored_pinned(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="session")
    memory.pin(id_, at=0)
    memory.forget(id_, at=1)
    assert memory.stats(1).pinned == 0
    memory.restore(id_, at=2)
    memory.decay(500)
    assert memory.ids("tea", at=500) == [id_]
    memory.unpin(id_, at=500)
    assert memory.row(id_)["expires"] == 501


def test_new_rules_of_fading_leave_pinned_facts_alone(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", confidence=0.3)
    memory.pin(id_, at=1)
    memory.decay(2)
    memory.having(cull_floor=0.5, cold_threshold=1.0).decay(400, force=True)
    assert (memory.row(id_)["fidelity"], memory.row(id_)["forgotten_at"]) == (FULL, None)
