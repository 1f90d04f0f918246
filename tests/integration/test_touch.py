"""Use keeps a fact alive: strength, expiry and counters move once for each use, and never backwards."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from math import inf
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory import Memory, day

from workers.core.lifetime import LIFETIMES
from workers.remembering import touch

REFRESHED = {"stable": 90, "active": 14, "durable": 90, "normal": 14}
bounded = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def strength_of(memory: Memory, id_: UUID, at: float) -> float:
    """Return the salience of a fact just used, which is its strength; a reinforcement by nothing reads it."""
    done = touch.reinforce(memory.context, "default", id_, 0.0, day(at))
    assert done is not None
    return done.salience


@pytest.mark.parametrize("coactivations", [0, 1, 5, 6, 1_000])
def test_a_recall_lifts_0_35_to_0_85_however_often_it_was_recalled_before(memory: Memory, coactivations: int) -> None:
    id_ = memory.add("Tea at four.", strength=0.35, coactivations=coactivations)
    memory.touch(id_, at=0)
    row = memory.row(id_)
    assert strength_of(memory, id_, 0) == pytest.approx(0.85, abs=1e-12)
    assert (row["coactivations"], row["recall_count"]) == (coactivations + 1, 1)


def test_strength_never_passes_one(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.9)
    memory.touch(id_, at=1)
    assert strength_of(memory, id_, 1) == pytest.approx(1.0)


def test_a_recall_adds_to_what_is_left_of_the_strength(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.5)
    memory.touch(id_, at=30)
    left = strength_of(memory, id_, 30) - 0.5
    assert 0.05 < left < 0.25


def test_a_repeated_or_older_touch_changes_nothing(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.35, decay_class="stable")
    memory.touch(id_, at=5)
    before = memory.row(id_)
    assert memory.touch(id_, at=5).changed == []
    assert memory.touch(id_, at=2).changed == []
    assert memory.row(id_) == before


@bounded
@given(microseconds=st.lists(st.integers(0, 400 * 86_400_000_000), min_size=1, max_size=6), again=st.integers(0, 5))
def test_touches_that_arrive_again_count_once_at_every_microsecond(
    memory: Memory, microseconds: list[int], again: int
) -> None:
    instants = [day(0) + timedelta(microseconds=number) for number in sorted(microseconds)]
    id_ = memory.add(f"Tea {uuid4()}.", strength=0.35)
    for instant in [*instants, instants[again % len(instants)]]:
        touch.touch(memory.context, "default", [id_], instant)
    assert memory.row(id_)["recall_count"] == len(set(instants))
    assert memory.row(id_)["last_accessed_at"] == instants[-1]


def test_two_threads_that_deliver_the_same_touch_count_it_once(memory: Memory) -> None:
    ids = [memory.add(f"Guest number {number}.") for number in range(20)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda order: memory.touch(*order, at=1).changed, [ids, ids[::-1]]))
    assert sorted(found[0] + found[1]) == sorted(ids)
    assert {memory.row(id_)["recall_count"] for id_ in ids} == {1}


@pytest.mark.parametrize("decay_class", LIFETIMES)
def test_use_starts_the_lifetime_anew_for_four_classes_only(memory: Memory, decay_class: str) -> None:
    id_ = memory.add("Tea at four.", decay_class=decay_class)
    before = memory.row(id_)["expires"]
    memory.touch(id_, at=0.1)
    after = memory.row(id_)
    refreshed = decay_class in REFRESHED
    assert after["expires"] == pytest.approx(0.1 + REFRESHED[decay_class] if refreshed else before)
    assert after["confirmed"] == (0.1 if refreshed else 0)


def test_a_permanent_fact_never_ends(memory: Memory) -> None:
    id_ = memory.add("Ana is allergic to nuts.", decay_class="permanent", confidence=0.05)
    memory.touch(id_, at=1)
    assert (memory.row(id_)["expires"], memory.row(id_)["ends"]) == (inf, inf)


def test_without_reinforcement_on_query_a_recall_counts_and_leaves_the_strength(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.35, decay_class="stable")
    memory.having(decay_reinforce_on_query=False).touch(id_, at=1)
    row = memory.row(id_)
    assert (row["recall_count"], row["base"], row["last_seen"], row["coactivations"]) == (1, 0.35, 0, 0)
    assert row["expires"] == 91


def test_touching_who_is_not_there_changes_nobody(memory: Memory) -> None:
    ended = memory.add("Tea at four.", decay_class="session")
    memory.decay(2)
    theirs = memory.add("Cake on Sunday.", namespace="theirs")
    assert memory.touch(ended, theirs, uuid4(), at=3).changed == []
    assert memory.touch(theirs, at=3, namespace="nobody").changed == []


def test_a_touch_names_those_that_have_less_than_the_full_vector(memory: Memory) -> None:
    faded, fresh = memory.add("Tea at four.", strength=0.4), memory.add("Cake on Sunday.", at=99)
    memory.decay(100)
    assert memory.touch(faded, fresh, at=100).faded == [faded]


def test_a_reinforcement_says_whether_the_fact_had_faded(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.4)
    memory.decay(100)
    done = touch.reinforce(memory.context, "default", id_, 0.2, day(100))
    assert done is not None
    assert done.faded


def test_reinforcing_adds_the_boost_and_confirms_without_counting_a_recall(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.3, decay_class="session")
    done = touch.reinforce(memory.context, "default", id_, 0.2, day(0.5))
    assert done is not None
    assert (done.salience, done.faded) == (pytest.approx(0.5, abs=0.01), False)
    row = memory.row(id_)
    assert (row["recall_count"], row["confirmed"], row["last_seen"], row["expires"]) == (0, 0.5, 0.5, 1)


def test_a_reinforcement_that_arrives_again_changes_nothing(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", strength=0.3)
    touch.reinforce(memory.context, "default", id_, 0.2, day(3))
    before = memory.row(id_)
    again = touch.reinforce(memory.context, "default", id_, 0.2, day(3))
    assert again is not None
    assert again.salience == pytest.approx(before["base"])
    assert memory.row(id_) == before


def test_reinforcing_who_is_not_there_answers_nothing(memory: Memory) -> None:
    memory.add("Tea at four.")
    assert touch.reinforce(memory.context, "default", uuid4(), 0.2, day(0)) is None
    assert touch.reinforce(memory.context, "nobody", uuid4(), 0.2, day(0)) is None
