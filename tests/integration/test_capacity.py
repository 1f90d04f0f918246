"""Capacity: a namespace over its capacity loses the least valuable facts, within the forget limit."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from ebb.contract.documents import Index
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.core import tiers
from workers.core.value import Standing, rank
from workers.decay import forecast, forget_limit, passes
from workers.documents import files
from workers.memory.forget import forget_within
from workers.storage import limits, runs
from workers.storage.connection import transaction
from workers.storage.facts import sizes

LIVE = "select count(*) from facts where forgotten_at is null"
GONE = "select id from facts where forgotten_reason = 'crowded'"


@pytest.fixture
def free(memory: Memory) -> Memory:
    """Return a memory without forget limit."""
    return memory.having(forget_limit=1.0)


def fill(memory: Memory, facts: int = 40, **fields: Any) -> list[UUID]:
    """Store facts, each more valuable than the one before."""
    return [memory.add(f"Guest {number} takes tea.", importance=number / facts, **fields) for number in range(facts)]


@pytest.mark.parametrize("by", ["facts", "bytes"])
def test_a_pass_lets_the_least_valuable_go_until_the_rest_fits(free: Memory, by: str) -> None:
    ids = fill(free)
    if by == "facts":
        free.choose({"capacity.facts": 25}, "capacity.bytes")
        assert free.decay(1).counters.crowded == 15
        assert set(free.rows(GONE)) == {(id_,) for id_ in ids[:15]}
        assert free.decay(2).counters.crowded == 0
    else:
        free.choose({"capacity.bytes": 1})
        assert free.decay(1).counters.crowded == 40
    assert [what for what, _ in free.history(ids[0], at=3)] == ["stored", "forgotten"]
    free.restore(ids[0], at=3)
    assert free.value("select forgotten_reason from facts where id = %s", ids[0]) is None


def test_a_pass_does_not_take_what_another_one_has_just_let_go(free: Memory) -> None:
    ids = fill(free)
    free.choose({"capacity.facts": 25}, "capacity.bytes")
    with ThreadPoolExecutor(1) as pool, transaction(free.context.database_url) as db:
        limits.lock(db, 1)
        passing = pool.submit(free.decay, 1)
        wait_for(lambda: bool(free.value(LOCK_WAITS)))
        forget_within(db, [1] * 10, ids[:10], ["crowded"] * 10, day(1))
        db.commit()
        assert passing.result().counters.crowded == 5
    assert free.value(LIVE) == 25


def test_a_capacity_in_bytes_counts_the_rows_where_they_are(free: Memory) -> None:
    for number in range(40):  # each more than 10,000 bytes, also where they are compressed
        free.add(f"Guest {number} has the keys {token_hex(10_000)}.")
    free.choose({"capacity.bytes": 200_000})
    (ahead,) = forecast.forecast(free.context, "default", 1, day(0))
    gone = free.decay(1).counters.crowded
    assert 20 <= ahead.counts["crowded"] < 40
    assert 20 <= gone < 40
    assert free.value(LIVE) == 40 - gone


def test_a_capacity_in_bytes_takes_no_more_for_the_space_that_others_left_in_the_tables(free: Memory) -> None:
    free.store(*({"text": f"Guest number {number} likes tea with milk."} for number in range(600)))
    with transaction(free.context.database_url) as db:
        row, dims = sizes(db, free.context.database_url)
    free.choose({"capacity.bytes": int(200 * (row + 2 * dims))})
    crowded = []
    for now in range(1, 5):
        crowded += [free.decay(now).counters.crowded, free.decay(now).counters.crowded]
        free.demote(at=now + 0.9)
    assert sum(crowded[1:]) < 10 < crowded[0]


def test_the_average_of_a_capacity_in_bytes_is_that_of_facts_that_have_not_ended(free: Memory) -> None:
    fill(free, 20, decay_class="stable")
    for number in range(20):
        free.add(f"Guest {number} takes coffee.", decay_class="session")
    free.rows("update activity set fidelity = 32767 where decay_class = 'session'")
    url = free.context.database_url
    with transaction(url) as db:
        row, dims = sizes(db, url)
        left = limits.counted_against_capacity
        capacity = limits.Capacity(None, int(15 * (row + 2 * dims)), row, dims)
        assert [left(db, 1, day(at)) for at in (0, 3)] == [(40, 40.0), (20, 40.0)]
        assert [capacity.going([2.0] * 20, *left(db, 1, day(at))) for at in (0, 3)] == [20, 5]


def test_what_is_pinned_or_permanent_or_over_does_not_count_among_what_goes(free: Memory) -> None:
    pinned, permanent = fill(free, 1)[0], free.add("Mira is allergic to peanuts.", decay_class="permanent")
    free.pin(pinned, at=0)
    over = free.add("The bus leaves at four.", decay_class="session", importance=1.0)
    kept = [free.add(f"Mira likes tea {number}.", importance=1.0) for number in range(3)]
    free.choose({"capacity": {"facts": 4}})
    assert free.decay(2).counters.crowded == 1
    live = {id_ for (id_,) in free.rows("select id from facts where forgotten_at is null")}
    assert {pinned, permanent} <= live
    assert over not in live
    assert len(live & set(kept)) == 2


@pytest.mark.parametrize("exempt", ["pinned", "permanent", "of a document"])
def test_what_is_exempt_stays_though_it_alone_exceeds_the_capacity(free: Memory, exempt: str) -> None:
    if exempt == "of a document":
        parts = [{"section": "Boat", "text": f"Cabin {number} has two berths."} for number in range(4)]
        files.index(free.context, Index(path="memory/boat.md", folder="/there", digest="0" * 64, chunks=parts), day(0))
    else:
        ids = fill(free, 4, decay_class="permanent" if exempt == "permanent" else None)
        for id_ in ids if exempt == "pinned" else ():
            free.pin(id_, at=0)
    free.choose({"capacity.facts": 1})
    (ahead,) = forecast.forecast(free.context, "default", 1, day(0))
    assert (ahead.counts.get("crowded", 0), free.decay(1).counters.crowded, free.value(LIVE)) == (0, 0, 4)


def test_the_forget_limit_holds_unless_it_is_forced(memory: Memory) -> None:
    fill(memory)
    memory.choose({"capacity.facts": 10})
    assert memory.decay(1, dry_run=True).counters.crowded == 8
    assert memory.decay(1).counters.crowded == 8
    assert memory.decay(1.1).counters.crowded == 0
    assert memory.decay(3).counters.crowded == 6
    assert memory.decay(3.1, force=True).counters.crowded == 16
    assert memory.value(LIVE) == 10


def test_a_capacity_concerns_its_namespace_alone_and_makes_no_fact_due(free: Memory) -> None:
    fill(free, 5)
    free.add("Tea at four.", namespace="other")
    free.choose({"capacity.facts": 1}, namespace="other")
    free.choose({"capacity.facts": 3})
    assert free.decay(0.01, namespace="default").counters.crowded == 2
    assert free.value(LIVE) == 4
    assert free.value("select count(*) from namespaces where settings_changed_at is not null") == 0


def test_the_order_in_which_they_go_is_that_of_their_values(free: Memory) -> None:
    ids = fill(free, 12)
    free.touch(ids[0], at=1)
    rows = free.rows(
        "select fact, base, recall_count, confirmations, last_seen_at, coactivations from activity order by fact"
    )
    salience = dict(free.rows("select id, content_salience from facts"))
    standing = Standing(
        content=np.array([salience[row[0]] for row in rows], dtype=np.float64),
        importance=np.array([ids.index(row[0]) / 12 for row in rows]),
        strength=tiers.strength(np.array([row[1] for row in rows]), np.array([row[5] for row in rows])),
        seen_at=np.array([row[4].timestamp() for row in rows]),
        shown=np.array([row[2] for row in rows]),
        used=np.array([row[3] for row in rows]),
        links=np.zeros(len(rows), dtype=np.int64),
    )
    expected = [rows[place][0] for place in np.argsort(rank(standing), kind="stable")]
    with transaction(free.context.database_url) as db:
        tenant = free.value("select id from namespaces")
        assert [id_ for id_, _ in limits.claim_least_valuable(db, tenant, 12, day(1))] == expected


def test_a_forecast_says_what_goes_and_passes_then_do_just_that(memory: Memory) -> None:
    fill(memory, 40, decay_class="normal")
    memory.choose({"capacity.facts": 25})
    ahead = forecast.forecast(memory.context, "default", 6, day(0))
    assert [one.counts["crowded"] for one in ahead] == [8, 6, 1, 0, 0, 0]
    assert [one.answer.forgotten for one in ahead] == [8, 6, 1, 0, 0, 0]
    totals = forecast.totals(memory.context, "default", ahead)
    assert (totals.facts, totals.forgotten) == (25, 15)
    assert totals.bytes_freed > 15 * 500
    assert len([one for one in ahead[0].facts if one.change == "crowded"]) == 3
    assert [memory.decay(number).counters.crowded for number in range(1, 7)] == [8, 6, 1, 0, 0, 0]


def test_a_forecast_by_bytes_takes_the_vectors_as_they_are_on_that_day(free: Memory) -> None:
    free.store(*(f"Guest number {number} takes coffee." for number in range(100)))
    with transaction(free.context.database_url) as db:
        row, dims = sizes(db, free.context.database_url)
    free.choose({"capacity.bytes": int(100 * (row + dims))})
    (ahead,) = forecast.forecast(free.context, "default", 1, day(40))
    counters = free.decay(41).counters
    assert (ahead.counts["fingerprinted"], ahead.counts["crowded"]) == (100, 0)
    assert (counters.fingerprinted, counters.crowded) == (100, 0)


@pytest.mark.parametrize("batch", [1, 1_000])
def test_no_more_goes_than_has_to_where_what_goes_takes_more_bytes_than_the_rest(free: Memory, batch: int) -> None:
    free = free.having(decay_batch=batch)
    free.store(*({"text": f"Guest {number} takes tea.", "importance": 0.9} for number in range(30)))
    free.decay(60)
    free.store(*({"text": f"Guest {number} takes coffee.", "importance": 0.0} for number in range(30)), at=60)
    with transaction(free.context.database_url) as db:
        row, dims = sizes(db, free.context.database_url)
    free.choose({"capacity.bytes": int(51 * (row + dims))}, at=60)
    (ahead,) = forecast.forecast(free.context, "default", 1, day(60))
    assert ahead.counts["crowded"] == free.decay(61).counters.crowded == 8


def test_a_forecast_by_bytes_counts_the_vectors_of_what_has_ended_out_once(free: Memory) -> None:
    free.store(*({"text": f"Guest {number} takes coffee.", "decay_class": "checkpoint"} for number in range(30)))
    fill(free)
    with transaction(free.context.database_url) as db:
        row, dims = sizes(db, free.context.database_url)
    free.choose({"capacity.bytes": int(30 * (row + 2 * dims))})

    (ahead,) = forecast.forecast(free.context, "default", 1, day(1))

    tried, done = free.decay(1, dry_run=True).counters, free.decay(1).counters
    assert ahead.counts["crowded"] == tried.crowded == done.crowded > 5


def test_the_vectors_of_held_facts_that_live_on_by_other_settings_count_in_a_forecast_by_bytes(free: Memory) -> None:
    fill(free, confidence=0.105)
    assert free.having(forget_limit=0.0).decay(15).counters.held == 40
    free.store(*(f"Guest {number} takes coffee." for number in range(20)), at=15)
    with transaction(free.context.database_url) as db:
        row, dims = sizes(db, free.context.database_url)
    given = {"hygiene.confidenceDecay.cullFloor": 0.01, "capacity.bytes": int(50 * (row + 2 * dims))}

    tried = [f"{name}={value}" for name, value in given.items()]
    (ahead,) = forecast.forecast(free.context, "default", 1, day(15), given=tried)

    free.choose(given, at=15)
    assert ahead.counts["crowded"] == sum(free.decay(16).counters.crowded for _ in range(2)) > 1


def test_vectors_are_reduced_before_what_is_over_a_capacity_in_bytes_goes(free: Memory) -> None:
    free.store(*(f"Guest number {number} takes coffee." for number in range(100)))
    with transaction(free.context.database_url) as db:
        row, dims = sizes(db, free.context.database_url)
    free.choose({"capacity.bytes": int(100 * (row + dims))})
    run = uuid4()

    for part in sorted(passes.plan(free.context, run, day(41)), key=lambda part: part[1] != runs.CROWDED):
        passes.apply(free.context, part, lambda: None)

    report = passes.finish(free.context, run)
    assert (report.finished, report.counters.fingerprinted, report.counters.crowded) == (True, 100, 0)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("share", [1, 0.6, 0.4])
def test_a_dry_run_counts_what_goes_after_vectors_are_reduced(memory: Memory, share: float, *, force: bool) -> None:
    fill(memory, 100)
    with transaction(memory.context.database_url) as db:
        row, dims = sizes(db, memory.context.database_url)
    memory.choose({"capacity.bytes": int(100 * (row + dims) * share)})
    memory.store("Tom", "Ann", "Zoe", namespace="other")
    memory.choose({"capacity.facts": 2}, namespace="other")

    tried = memory.decay(41, dry_run=True, force=force).counters
    done = memory.decay(41, force=force).counters

    assert (tried.fingerprinted, tried.crowded) == (done.fingerprinted, done.crowded)
    assert (done.crowded > 1) == (share < 1)


def test_a_whole_number_is_a_capacity_however_it_is_written(free: Memory) -> None:
    fill(free, 10)
    free.choose({"capacity.facts": 6.0, "capacity.bytes": 1e12})

    assert free.decay(1).counters.crowded == 4


def test_a_dry_run_over_capacity_meets_the_limit_together_with_what_ends_by_itself(memory: Memory) -> None:
    fill(memory, 15, confidence=0.11)
    memory.store(*(f"Guest {number} takes coffee." for number in range(85)))
    memory.choose({"capacity.facts": 40})

    tried, done = memory.decay(30, dry_run=True).counters, memory.decay(30).counters

    assert (tried.culled, tried.crowded) == (done.culled, done.crowded) == (15, 5)


def test_what_is_over_goes_before_what_is_over_capacity_in_whichever_order_the_parts_of_a_pass_run(
    memory: Memory,
) -> None:
    fill(memory, 15, confidence=0.11)
    memory.store(*(f"Guest {number} takes coffee." for number in range(85)))
    memory.choose({"capacity.facts": 40})
    run = uuid4()

    for part in sorted(passes.plan(memory.context, run, day(30)), key=lambda part: part[1] != runs.CROWDED):
        passes.apply(memory.context, part, lambda: None)

    done = passes.finish(memory.context, run).counters
    assert (done.culled, done.crowded, done.held) == (15, 5, 0)


def test_what_is_over_capacity_waits_an_hour_at_most_for_the_other_parts_of_a_pass(free: Memory) -> None:
    fill(free, 20)
    free.choose({"capacity.facts": 15})
    run = uuid4()
    parts = passes.plan(free.context, run, day(30))
    (crowded,) = (part for part in parts if part[1] == runs.CROWDED)
    assert len(parts) > 1

    passes.apply(free.context, crowded, lambda: None)
    waiting = passes.finish(free.context, run).counters.crowded
    free.rows("update decay_runs set started_at = now() - interval '61 minutes'")
    passes.apply(free.context, crowded, lambda: None)

    assert (waiting, passes.finish(free.context, run).counters.crowded) == (0, 5)


def test_a_part_that_takes_long_goes_on_in_further_tasks_batch_by_batch(free: Memory) -> None:
    narrow = free.having(decay_batch=2)
    fill(narrow, 20)
    narrow.choose({"capacity.facts": 15})
    run = uuid4()
    (crowded,) = passes.plan(narrow.context, run, day(1))

    done = [passes.apply(narrow.context, crowded, lambda: None, until=0) for _ in range(4)]

    assert done == [False, False, False, True]
    report = passes.finish(narrow.context, run)
    assert (report.finished, report.counters.crowded) == (True, 5)


IN_TASKS = """
import json, sys
from workers.tasks import decay

decay.WORK_SECONDS, parts = 0, [json.loads(sys.argv[1])]
decay.apply.apply_async = lambda kwargs, **_: parts.append(kwargs)
for part in parts:
    decay.apply.apply(kwargs=part, throw=True)
print(json.dumps(parts))
"""


def test_a_task_that_does_not_end_its_part_sends_another_for_the_rest(free: Memory) -> None:
    fill(free, 20)
    free.choose({"capacity.facts": 15})
    run = uuid4()
    ((_, segment, part),) = passes.plan(free.context, run, day(1))
    given = {"run": str(run), "segment": segment, "part": part, "grouped": True}
    own = free.context.settings
    environment = {
        "EBB_DATABASE_URL": own.database_url, "EBB_REDIS_URL": own.redis_url, "EBB_DECAY_BATCH": "2",
        "EBB_FORGET_LIMIT": "1",
    }  # fmt: skip
    program = [sys.executable, "-c", IN_TASKS, json.dumps(given)]
    said = subprocess.run(program, env=os.environ | environment, check=True, stdout=subprocess.PIPE).stdout
    assert json.loads(said) == [given] * 4
    report = passes.finish(free.context, run)
    assert (report.finished, report.counters.crowded) == (True, 5)


def test_a_batch_takes_from_as_many_namespaces_over_capacity_as_fit(free: Memory) -> None:
    names = [f"guest-{number}" for number in range(4)]
    for name in names:
        free.store(*(f"Guest {number} takes tea." for number in range(5)), namespace=name)
        free.choose({"capacity.facts": 2}, namespace=name)
    few = free.having(decay_batch=7).context
    (part,) = passes.plan(few, uuid4(), day(1))
    gone = []
    for _ in range(3):
        with transaction(few.database_url) as db:
            state = runs.lock_part(db, *part)
            assert state is not None
            gone.append(forget_limit.forget_least_valuable(few, db, part[0], state))
    assert gone == [7, 5, 0]
    assert [len(free.listed(namespace=name, at=1)) for name in names] == [2, 2, 2, 2]
