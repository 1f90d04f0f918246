"""Decay that would eat too much of a memory stops, keeps the rest in sight, and waits for somebody."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from memory import Memory, day

from workers.forgetting import decay
from workers.remembering.add import Stored

FADED = 200
"""Days after which a fact of confidence 0.2 is no longer believed, and one of 1.0 still is."""


def doubtful(memory: Memory, count: int, namespace: str = "default", prefix: str = "Rumour") -> list[UUID]:
    facts = [{"text": f"{prefix} number {number}.", "confidence": 0.2} for number in range(count)]
    return [one.id for one in memory.store(*facts, namespace=namespace) if isinstance(one, Stored)]


def sure(memory: Memory, count: int, namespace: str = "default") -> None:
    memory.store(*[f"Certainty number {number}." for number in range(count)], namespace=namespace)


def forgotten(memory: Memory, ids: Sequence[UUID]) -> int:
    count = memory.value("select count(*) from facts where id = any(%s) and forgotten_at is not null", list(ids))
    return int(count)


def test_a_pass_forgets_at_most_a_hundred_of_a_small_namespace(memory: Memory) -> None:
    ids = doubtful(memory, 130)
    done = memory.decay(FADED).counters
    assert (done.culled, done.held, forgotten(memory, ids)) == (100, 30, 100)
    assert done.processed == 130
    assert (memory.stats(FADED).held, memory.stats(FADED).facts) == (30, 30)


def test_a_pass_forgets_at_most_the_share_of_a_large_namespace(memory: Memory) -> None:
    ids = doubtful(memory, 250)
    sure(memory, 350)
    memory.decay(FADED)
    assert forgotten(memory, ids) == 120


def test_within_the_limit_all_that_fades_is_forgotten_and_nothing_held(memory: Memory) -> None:
    ids = doubtful(memory, 100)
    assert memory.decay(FADED).counters.held == 0
    assert forgotten(memory, ids) == 100
    assert memory.value("select count(*) from namespaces where held_since is not null") == 0


def test_the_limit_is_one_for_all_tasks_of_a_pass_at_once(memory: Memory) -> None:
    ids = doubtful(memory, 300)
    narrow = memory.having(decay_batch=2)
    run = uuid4()
    parts = decay.plan(narrow.context, run, day(FADED))
    assert len({segment for _, segment, _ in parts}) > 50
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: decay.apply(narrow.context, part, lambda: None), parts))
    done = decay.finish(narrow.context, run).counters
    assert (done.culled, done.held, forgotten(memory, ids)) == (100, 200, 100)


def test_what_is_held_stays_in_sight(memory: Memory) -> None:
    doubtful(memory, 130)
    memory.decay(FADED)
    assert len(memory.ids("rumour", at=FADED, limit=200)) == 30
    assert len(memory.ids("rumour", at=FADED + 500, limit=200)) == 30


def test_a_held_namespace_forgets_nothing_more_until_forced(memory: Memory) -> None:
    first = doubtful(memory, 130)
    memory.decay(FADED)
    later = doubtful(memory, 5, prefix="Hearsay")
    assert memory.decay(FADED + 1).counters.held == 5
    assert memory.decay(FADED + 2).counters.processed == 0
    assert (forgotten(memory, first), forgotten(memory, later)) == (100, 0)


def test_force_forgets_what_was_held_and_lets_the_namespace_go(memory: Memory) -> None:
    first = doubtful(memory, 130)
    memory.decay(FADED)
    done = memory.decay(FADED + 1, force=True).counters
    assert (done.culled, done.held, forgotten(memory, first)) == (30, 0, 130)
    later = doubtful(memory, 5, prefix="Hearsay")
    memory.decay(FADED + 2)
    assert forgotten(memory, later) == 5


def test_a_forced_pass_knows_no_limit(memory: Memory) -> None:
    ids = doubtful(memory, 150)
    memory.decay(FADED, force=True)
    assert forgotten(memory, ids) == 150


def test_a_forced_dry_run_lets_nothing_go(memory: Memory) -> None:
    doubtful(memory, 130)
    memory.decay(FADED)
    memory.decay(FADED, force=True, dry_run=True)
    assert memory.stats(FADED).held == 30
    assert memory.value("select count(*) from namespaces where held_since is not null") == 1


def test_a_forced_dry_run_counts_what_the_forced_pass_then_forgets(memory: Memory) -> None:
    doubtful(memory, 130)
    memory.decay(FADED)
    preview = memory.decay(FADED, force=True, dry_run=True).counters
    assert preview.culled == memory.decay(FADED, force=True).counters.culled == 30


def test_a_dry_run_meets_the_same_limit_and_holds_nothing(memory: Memory) -> None:
    doubtful(memory, 130)
    preview = memory.decay(FADED, dry_run=True).counters
    assert (preview.culled, preview.held, memory.stats(FADED).held) == (100, 30, 0)
    done = memory.decay(FADED).counters
    assert (done.culled, done.held) == (preview.culled, preview.held)


def test_expiry_does_not_count_towards_the_limit(memory: Memory) -> None:
    memory.store(*[{"text": f"Note number {i}.", "decay_class": "checkpoint"} for i in range(150)])
    done = memory.decay(1).counters
    assert (done.expired, done.held) == (150, 0)


def test_a_held_namespace_still_lets_expire_what_expires(memory: Memory) -> None:
    doubtful(memory, 130)
    memory.decay(FADED)
    memory.add("The parking ticket is in the car.", at=FADED, decay_class="checkpoint")
    assert memory.decay(FADED + 1).counters.expired == 1


def test_another_namespace_is_not_held_for_it(memory: Memory) -> None:
    doubtful(memory, 130, namespace="large")
    others = doubtful(memory, 50, namespace="small")
    memory.decay(FADED)
    assert forgotten(memory, others) == 50
    assert (memory.stats(FADED, "large").held, memory.stats(FADED, "small").held) == (30, 0)
    assert memory.rows("select name from namespaces where held_since is not null") == [("large",)]


def test_a_touch_releases_a_held_fact(memory: Memory) -> None:
    doubtful(memory, 130)
    memory.decay(FADED)
    ((held,), *_) = memory.rows("select fact from activity where held")
    memory.touch(held, at=FADED)
    assert not memory.row(held)["held"]
    assert memory.stats(FADED).held == 29


def test_a_touched_fact_that_was_held_is_not_lost_to_the_next_force(memory: Memory) -> None:
    doubtful(memory, 130)
    memory.decay(FADED)
    ((held,), *_) = memory.rows("select fact from activity where held")
    memory.touch(held, at=FADED)
    memory.decay(FADED, force=True)
    assert memory.row(held)["forgotten_at"] is None


def test_regenerating_a_held_fact_keeps_it_held(memory: Memory) -> None:
    doubtful(memory, 130)
    memory.decay(FADED)
    ((held,), *_) = memory.rows("select fact from activity where held")
    memory.regenerate(held, at=FADED)
    assert memory.row(held)["held"]
    assert forgotten(memory, [held]) == 0


def test_the_limit_can_be_raised_and_lowered(memory: Memory) -> None:
    ids = doubtful(memory, 250)
    memory.having(forget_limit=1.0).decay(FADED)
    assert forgotten(memory, ids) == 250


def test_meeting_the_limit_is_said_loudly(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    doubtful(memory, 130)
    with caplog.at_level(logging.WARNING, "workers.forgetting.decay"):
        memory.decay(FADED)
    (said,) = caplog.messages
    assert said.startswith("FORGET LIMIT MET: 30 facts would fade for good but are kept.")
    assert "`ebb decay --force`" in said
