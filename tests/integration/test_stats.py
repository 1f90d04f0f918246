"""Statistics need no pass and include ended facts."""

from memory import Memory


def test_facts_are_counted_by_tier_fidelity_and_decay_class(memory: Memory) -> None:
    memory.store("Tea at four.", {"text": "Nuts are forbidden.", "decay_class": "permanent"})
    memory.add("Cake on Sunday.", at=100, strength=0.9)
    memory.decay(100)
    found = memory.stats(100)
    assert found.facts == 3
    assert found.tiers == {"hot": 1, "warm": 1, "cold": 1}
    assert found.fidelity == {"full": 2, "pooled": 0, "fingerprint": 1}
    assert found.decay_classes == {"none": 2, "permanent": 1}


def test_ended_facts_that_no_pass_has_forgotten_are_reported(memory: Memory) -> None:
    memory.store("Tea at four.", {"text": "The ticket is in the car.", "decay_class": "checkpoint"})
    assert (memory.stats(0.1).expired_pending, memory.stats(0.1).due) == (0, 0)
    before = memory.stats(1)
    assert (before.facts, before.expired_pending, before.due, before.forgotten) == (2, 1, 1, 0)
    memory.decay(1)
    after = memory.stats(1)
    assert (after.facts, after.expired_pending, after.due, after.forgotten) == (1, 0, 0, 1)


def test_what_is_due_is_what_the_next_pass_processes(memory: Memory) -> None:
    memory.store(*[{"text": f"Tea at {i}.", "salience": i / 20} for i in range(20)])
    for at in (0.0, 3.0, 8.0, 30.0, 700.0):
        assert memory.stats(at).due == memory.decay(at).counters.processed


def test_forgotten_facts_are_counted_by_reason(memory: Memory) -> None:
    asked = memory.add("Tea at four.")
    memory.store({"text": "The ticket is in the car.", "decay_class": "checkpoint"}, {"text": "Cake.", "confidence": 0})
    memory.forget(asked, at=0.5)
    memory.decay(1)
    found = memory.stats(1)
    assert (found.forgotten, found.forgotten_by_reason) == (3, {"asked": 1, "culled": 1, "expired": 1})


def test_namespaces_are_counted_apart_and_an_unknown_one_is_empty(memory: Memory) -> None:
    memory.add("Tea at four.", namespace="ours")
    assert memory.stats(namespace="ours").facts == 1
    assert memory.stats(namespace="theirs").facts == 0
    assert memory.stats(namespace="theirs").tiers == {"hot": 0, "warm": 0, "cold": 0}
