"""The forget limit: passes end a share of a namespace in a day and a week; the rest is held for its owner."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.core.forget_limit import Limit, remaining
from workers.decay import forecast, forget_limit, passes
from workers.memory.add import Stored
from workers.storage import limits
from workers.storage.connection import connect, transaction
from workers.storage.due import Work

FADED = 200
"""Days after which a fact of confidence 0.2 is no longer believed, and one of 1.0 still is."""

WORKS: list[Work] = ["decay", "prune", "janitor"]
EMPTY = "truncate namespaces, decay_runs, tallies, tally_changes, endings cascade"
SPENT = st.tuples(st.integers(-240, 12).map(lambda hours: hours / 24), st.integers(1, 80), st.integers(0, 9))
bounded = examples(15)


def doubtful(
    memory: Memory, count: int, namespace: str = "default", prefix: str = "Rumour", at: float = 0
) -> list[UUID]:
    facts = [{"text": f"{prefix} number {number}.", "confidence": 0.2, "salience": 0.5} for number in range(count)]
    return [one.id for one in memory.store(*facts, namespace=namespace, at=at) if isinstance(one, Stored)]


def default(memory: Memory, count: int, at: float = 0, **fields: Any) -> list[UUID]:
    """Store facts with a derived decay class, of 90 days."""
    facts = [{"text": f"Guest number {number} likes tea on day {at}.", **fields} for number in range(count)]
    return [one.id for one in memory.store(*facts, at=at, classify=True) if isinstance(one, Stored)]


def sure(memory: Memory, count: int, namespace: str = "default", at: float = 0) -> None:
    memory.store(*[f"Certainty number {number}." for number in range(count)], namespace=namespace, at=at)


def forgotten(memory: Memory, ids: Sequence[UUID]) -> int:
    count = memory.value("select count(*) from facts where id = any(%s) and forgotten_at is not null", list(ids))
    return int(count)


def test_the_memory_of_a_default_user_is_not_lost_to_one_pass_after_a_pause(memory: Memory) -> None:
    ids = default(memory, 300)
    done = memory.decay(68).counters
    assert (done.forgotten, done.held, forgotten(memory, ids)) == (60, 240, 60)
    assert (memory.stats(68).held, memory.stats(68).facts) == (240, 240)
    assert (memory.decay(100).counters.forgotten, memory.stats(100).facts) == (0, 240)


def test_the_least_valuable_go_first_as_readers_and_the_forecast_expect(memory: Memory) -> None:
    said = [{"text": f"Rumour number {n}.", "confidence": 0.2, "importance": n / 20} for n in range(20)]
    ids = [one.id for one in memory.store(*reversed(said)) if isinstance(one, Stored)][::-1]
    ahead = forecast.forecast(memory.context, "default", FADED, day(0))
    assert sum(one.counts["culled"] for one in ahead) == 5
    seen = {one["text"] for one in memory.listed(at=FADED)}
    assert memory.decay(FADED).counters.forgotten == 5
    assert forgotten(memory, ids[:5]) == 5
    assert seen == {one["text"] for one in said[5:]}


def test_a_share_of_a_day_ends_however_many_passes_come(memory: Memory) -> None:
    ids = doubtful(memory, 100)
    for number in range(10):
        memory.decay(FADED + number / 100)
    assert (forgotten(memory, ids), memory.stats(FADED + 1).held) == (20, 80)


def test_five_facts_may_end_however_small_the_namespace(memory: Memory) -> None:
    ids = doubtful(memory, 9)
    done = memory.decay(FADED).counters
    assert (done.culled, done.held, forgotten(memory, ids)) == (5, 4, 5)


def test_the_share_is_of_what_lived_when_the_day_began(memory: Memory) -> None:
    ids = doubtful(memory, 250)
    sure(memory, 350)
    memory.decay(FADED)
    assert forgotten(memory, ids) == 120


def test_the_day_and_the_week_roll(memory: Memory) -> None:
    for number in range(10):
        doubtful(memory, 20, prefix=f"Hearsay {number}", at=number)
    memory.rows("update activity set confidence = 0.2, due_at = %s where confidence = 0.2", day(179))
    ends = 180.0
    done = [memory.decay(ends + number + 0.5).counters.culled for number in range(10)]
    assert done[:5] == [20] * 5
    assert sum(done) > 100


def test_a_week_has_a_limit_of_its_own(memory: Memory) -> None:
    for number in range(7):
        doubtful(memory, 20, prefix=f"Hearsay {number}", at=number)
    frugal = memory.having(forget_limit_week=0.3)
    done = [frugal.decay(180.5 + number).counters for number in range(7)]
    assert [one.culled for one in done] == [20, 20, 2, 0, 0, 0, 0]
    assert sum(one.held for one in done) == 140 - 42


@pytest.mark.parametrize("limits", [{"forget_limit": 0.0}, {"forget_limit_week": 0.0}])
def test_a_limit_of_zero_lets_nothing_end(memory: Memory, limits: dict[str, float]) -> None:
    ids = doubtful(memory, 3)
    done = memory.having(**limits).decay(FADED).counters
    assert (done.forgotten, done.held, forgotten(memory, ids)) == (0, 3, 0)


def test_a_limit_of_one_is_none(memory: Memory) -> None:
    ids = doubtful(memory, 250)
    memory.having(forget_limit=1.0).decay(FADED)
    assert forgotten(memory, ids) == 250


@bounded
@given(
    shares=st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.99, 1.0]), st.sampled_from([0.0, 0.3, 0.5, 1.0])),
    live=st.integers(0, 500),
    spent=st.lists(SPENT, max_size=6, unique_by=lambda one: one[0]),
)
def test_what_is_left_is_the_same_in_sql_and_in_python(
    memory: Memory, shares: tuple[float, float], live: int, spent: list[tuple[float, int, int]]
) -> None:
    now = day(20)
    with transaction(memory.context.database_url) as db:
        db.execute("truncate tallies, tally_changes, endings")
        db.execute("update forget_limits set a_day = %s, a_week = %s", shares)
        db.execute("insert into tallies (namespace, facts) values (1, %s)", (live,))
        for days, facts, asked in spent:
            db.execute("insert into endings values (1, %s, %s, %s)", (day(20 + days), facts, asked))
        stored = db.execute("select forget_room(1, %s)", (now,)).fetchone()
        db.execute("update forget_limits set a_day = 0.2, a_week = 0.5")
    endings = [(day(20 + days).timestamp(), *counts) for days, *counts in spent]
    assert stored == (remaining(Limit(*shares), live, endings, now.timestamp()),)


@pytest.mark.parametrize("count", [30, 100])
def test_the_limit_is_one_for_all_tasks_of_all_passes_at_once(memory: Memory, count: int) -> None:
    doubtful(memory, count)
    oldest = memory.rows("select fact from activity order by ends_at, fact limit %s", max(count // 5, 5))
    narrow = memory.having(decay_batch=2)
    works: list[Work] = ["decay", "decay", "janitor"]
    runs = [
        (run := uuid4(), passes.plan(narrow.context, run, day(FADED), work=work, namespace=name))
        for work, name in zip(works, [None, "default", "default"], strict=True)
    ]
    parts = [part for each in zip(*(parts for _, parts in runs), strict=True) for part in each]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda part: passes.apply(narrow.context, part, lambda: None), parts))
    done = [passes.finish(narrow.context, run).counters for run, _ in runs]
    gone = memory.rows("select id from facts where forgotten_at is not null order by id")
    assert gone == sorted(oldest)
    assert sum(one.culled for one in done) == len(oldest)
    assert sum(one.held for one in done) == count - len(oldest) == memory.stats(FADED).held


@bounded
@given(
    ages=st.lists(st.floats(0, 30), min_size=8, max_size=40),
    moments=st.lists(st.tuples(st.sampled_from(WORKS), st.floats(FADED, FADED + 0.9)), max_size=5),
)
def test_passes_in_between_hold_and_forget_what_one_pass_does_within_a_day(
    memory: Memory, twin: Memory, ages: list[float], moments: list[tuple[Work, float]]
) -> None:
    given = [
        {"id": str(uuid4()), "text": f"Rumour {i}.", "confidence": 0.2, "created_at": day(age).isoformat()}
        for i, age in enumerate(ages)
    ]
    for one in (memory, twin):
        one.rows(EMPTY)
        one.store(*given)
    for work, at in [*sorted(moments, key=lambda one: one[1]), ("decay", FADED + 0.95)]:
        memory.decay(at, work=work, namespace="default")
    twin.decay(FADED + 0.95)
    state = "select id, forgotten_reason, held from facts join activity on fact = id order by id"
    assert memory.rows(state) == twin.rows(state)


def test_what_is_held_stays_visible(memory: Memory) -> None:
    doubtful(memory, 30)
    memory.decay(FADED)
    assert len(memory.ids("rumour", at=FADED, limit=200)) == 24
    assert len(memory.ids("rumour", at=FADED + 500, limit=200)) == 24


def test_what_is_held_waits_while_others_end(memory: Memory) -> None:
    first = doubtful(memory, 30)
    memory.decay(FADED)
    later = doubtful(memory, 4, prefix="Hearsay", at=FADED)
    assert memory.decay(2 * FADED).counters.culled == 4
    assert (forgotten(memory, first), forgotten(memory, later)) == (6, 4)


def test_force_forgets_what_was_held_and_counts_nothing(memory: Memory) -> None:
    first = doubtful(memory, 30)
    memory.decay(FADED)
    done = memory.decay(FADED + 1, force=True).counters
    assert (done.culled, done.held, forgotten(memory, first)) == (24, 0, 30)
    assert memory.value("select count(*) from namespaces where held_since is not null") == 0
    assert memory.value("select sum(facts) from endings") == 6


def test_forcing_one_namespace_leaves_what_another_holds(memory: Memory) -> None:
    for name in ("own", "other"):
        doubtful(memory, 20, namespace=name)
    memory.decay(FADED)
    memory.decay(FADED, namespace="own", force=True)
    assert (memory.stats(FADED, "own").held, memory.stats(FADED, "other").held) == (0, 15)


def test_a_forced_dry_run_lets_nothing_go_and_counts_what_the_forced_pass_forgets(memory: Memory) -> None:
    doubtful(memory, 30)
    memory.decay(FADED)
    preview = memory.decay(FADED, force=True, dry_run=True).counters
    assert memory.stats(FADED).held == 24
    assert preview.culled == memory.decay(FADED, force=True).counters.culled == 24


def test_a_dry_run_meets_the_same_limit_and_holds_nothing(memory: Memory) -> None:
    doubtful(memory, 30)
    preview = memory.decay(FADED, dry_run=True).counters
    assert (preview.culled, preview.held, memory.stats(FADED).held) == (6, 24, 0)
    done = memory.decay(FADED).counters
    assert (done.culled, done.held) == (preview.culled, preview.held)


def test_a_lifetime_that_its_owner_chose_ends_without_limit(memory: Memory) -> None:
    memory.store(*[{"text": f"Note number {i}.", "decay_class": "checkpoint"} for i in range(30)])
    memory.decay(0.1)
    done = memory.decay(1).counters
    assert (done.expired, done.held) == (30, 0)


def test_a_lifetime_that_words_decided_counts(memory: Memory) -> None:
    memory.store(*[{"text": f"Preflight number {i}."} for i in range(30)], classify=True)
    memory.decay(0.1)
    done = memory.decay(1).counters
    assert (done.expired, done.held) == (6, 24)


def test_a_lifetime_that_ran_out_while_no_pass_came_for_long_counts(memory: Memory) -> None:
    memory.store(*[{"text": f"Note number {i}.", "decay_class": "normal"} for i in range(30)])
    memory.decay(3)
    done = memory.decay(30).counters
    assert (done.forgotten, done.held) == (6, 24)


def test_what_is_held_goes_when_the_lifetime_that_its_owner_chose_is_over(memory: Memory) -> None:
    memory.store(*[{"text": f"Note number {i}.", "decay_class": "normal"} for i in range(30)])
    for at in (1, 11, 13.5):
        memory.decay(at)
    assert memory.stats(13.5).held == 24
    assert (memory.decay(14.2).counters.faded, memory.stats(14.2).held) == (24, 0)


def test_another_namespace_is_not_held_for_it(memory: Memory) -> None:
    doubtful(memory, 30, namespace="large")
    others = doubtful(memory, 5, namespace="small")
    memory.decay(FADED)
    assert forgotten(memory, others) == 5
    assert (memory.stats(FADED, "large").held, memory.stats(FADED, "small").held) == (24, 0)
    assert memory.rows("select name from namespaces where held_since is not null") == [("large",)]


def test_what_is_restored_gives_nothing_back_to_the_limit(memory: Memory) -> None:
    doubtful(memory, 30)
    memory.decay(FADED)
    ((gone,), *_) = memory.rows("select id from facts where forgotten_at is not null")
    memory.restore(gone, at=FADED)
    assert memory.value("select sum(facts) from endings") == 6


def held_ones(memory: Memory) -> UUID:
    doubtful(memory, 30)
    memory.decay(FADED)
    ((held,), *_) = memory.rows("select fact from activity where held")
    assert isinstance(held, UUID)
    return held


def test_a_touch_releases_a_held_fact(memory: Memory) -> None:
    held = held_ones(memory)
    memory.touch(held, at=FADED)
    assert not memory.row(held)["held"]
    assert memory.stats(FADED).held == 23


def test_a_touched_fact_that_was_held_is_not_lost_to_the_next_force(memory: Memory) -> None:
    held = held_ones(memory)
    memory.touch(held, at=FADED)
    memory.decay(FADED, force=True)
    assert memory.row(held)["forgotten_at"] is None


def test_regenerating_a_held_fact_keeps_it_held(memory: Memory) -> None:
    held = held_ones(memory)
    memory.regenerate(held, at=FADED)
    memory.decay(FADED + 3)
    assert memory.row(held)["held"]
    assert forgotten(memory, [held]) == 0


def test_reaching_the_limit_is_logged_prominently(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    doubtful(memory, 30)
    with caplog.at_level(logging.WARNING, "workers.decay.passes"):
        memory.decay(FADED)
    (said,) = caplog.messages
    assert said.startswith("FORGET LIMIT MET: 24 facts are over but stay visible.")
    assert "`ebb held -n NAME`" in said


def test_rules_that_end_many_facts_at_once_meet_the_limit_in_order(memory: Memory) -> None:
    for number in range(40):
        memory.add(f"Rumour {number}.", at=number / 100, confidence=0.5)
    oldest = memory.rows("select fact from activity order by last_confirmed_at limit 8")
    memory.choose({"hygiene.confidenceDecay.halfLife": 5})
    memory.decay(60)
    assert memory.rows("select id from facts where forgotten_at is not null order by id") == sorted(oldest)


def test_the_end_of_many_facts_locks_none_of_other_namespaces_while_it_is_decided(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget_limit, "MANY", 20)
    doubtful(memory, 100, namespace="busy")
    others = doubtful(memory, 1, namespace="quiet")
    url, busy = memory.context.database_url, memory.value("select id from namespaces where name = 'busy'")
    with ThreadPoolExecutor() as pool, connect(url) as deciding, connect(url) as user:
        limits.lock_cutoff(deciding, busy)
        done = pool.submit(memory.decay, FADED)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        user.execute("select from activity where fact = any(%s) for update nowait", [others])
        user.rollback()
        deciding.rollback()
        counters = done.result().counters
    assert (counters.forgotten, counters.held) == (21, 80)
