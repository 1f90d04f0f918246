"""Tallies equal a count under concurrent writes, and never block a writer."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.admin import stats
from workers.storage import tallies
from workers.storage.connection import connect, transaction

COUNTED = """
    select facts.namespace, decay_class, decay_class_source, tier, fidelity, held, stale, null as forgotten_reason,
        count(*)::bigint as facts
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where forgotten_at is null and superseded_at is null
    group by 1, 2, 3, 4, 5, 6, 7
    union all
    select namespace, null, null, null, null, null, null, forgotten_reason, count(*)
    from facts
    where forgotten_at is not null and superseded_at is null
    group by namespace, forgotten_reason
"""
TALLIED = """
    select namespace, decay_class, decay_class_source, tier, fidelity, held, stale, forgotten_reason, sum(facts)::bigint
    from (select * from tallies union all select * from tally_changes) as counted
    group by 1, 2, 3, 4, 5, 6, 7, 8
    having sum(facts) <> 0
"""
EMPTY = "truncate namespaces, facts, decay_runs, forgotten_hashes, tallies, tally_changes cascade"
OURS, THEIRS = "ours", "theirs"
CLASSES = [None, "permanent", "stable", "session"]
TEXTS = [f"Tea at {hour} o'clock." for hour in range(8)]

MOMENTS = st.tuples(
    st.sampled_from(["store", "touch", "forget", "restore", "supersede", "pass", "purge", "pin", "backfill", "settle"]),
    st.integers(0, len(TEXTS) - 1),
    st.sampled_from([OURS, THEIRS]),
    st.floats(0.01, 40),
)


def assert_counted(memory: Memory) -> None:
    """Check the tallies of all namespaces against a count."""
    assert sorted(memory.rows(TALLIED), key=str) == sorted(memory.rows(COUNTED), key=str)


@examples(25)
@given(moments=st.lists(MOMENTS, min_size=5, max_size=25))
def test_counters_are_what_counting_gives_whatever_happens(
    memory: Memory, moments: list[tuple[str, int, str, float]]
) -> None:
    memory.rows(EMPTY)
    now = 0.0
    for what, number, namespace, days in moments:
        now += days
        happen(memory, what, number, namespace, now)
        assert_counted(memory)
    stats.settle_tallies(memory.context, day(0))
    assert_counted(memory)
    assert memory.value("select count(*) from tally_changes") == 0


def happen(memory: Memory, what: str, number: int, namespace: str, now: float) -> None:
    """Apply one operation to the facts with one text, or to all."""
    text = TEXTS[number]
    rows = memory.rows(
        "select facts.id from facts join namespaces on namespaces.id = namespace where text = %s and name = %s",
        text,
        namespace,
    )
    ids = [id_ for (id_,) in rows]
    given: dict[str, object] = {"text": text, "decay_class": CLASSES[number % len(CLASSES)], "again": True}
    newer = {"text": f"{text} At last.", "supersedes": str(ids[0])} if ids else {"text": text}
    acts: dict[str, Callable[[], object]] = {
        "store": lambda: memory.store(given, {"text": f"{text} Sharp."}, at=now, namespace=namespace),
        "supersede": lambda: memory.store(newer, at=now, namespace=namespace),
        "touch": lambda: memory.touch(*ids, at=now, namespace=namespace),
        "forget": lambda: memory.forget(*ids, at=now, namespace=namespace, purge=number % 2 == 0),
        "restore": lambda: memory.restore(*ids, at=now, namespace=namespace),
        "pass": lambda: memory.decay(now, force=number % 2 == 0),
        "purge": lambda: memory.purge(at=now),
        "pin": lambda: [memory.pin(id_, at=now, namespace=namespace) for id_ in ids if remembered(memory, id_, now)],
        "backfill": lambda: memory.backfill(now, namespace=None),
        "settle": lambda: stats.settle_tallies(memory.context, day(0)),
    }
    acts[what]()


def remembered(memory: Memory, id_: UUID, now: float) -> bool:
    row = memory.row(id_)
    return bool(row["live"] and row["ends"] > now)


def test_a_change_that_is_rolled_back_is_not_counted(memory: Memory) -> None:
    memory.store(*TEXTS)
    with transaction(memory.context.database_url) as db:
        db.execute("delete from facts")
        assert tallies.live(db, memory.value("select id from namespaces")) == 0
        db.rollback()
    assert_counted(memory)
    assert memory.stats().facts == len(TEXTS)


def test_settling_that_dies_has_changed_nothing(memory: Memory) -> None:
    memory.store(*TEXTS)
    with connect(memory.context.database_url) as db:
        assert tallies.settle(db, 100)[0] > 0
        memory.rows("select pg_terminate_backend(%s::int)", db.info.backend_pid)
        with pytest.raises(psycopg.OperationalError):
            db.execute("select 1")
        db.close()
    assert_counted(memory)
    assert memory.value("select count(*) from tallies") == 0


def test_a_writer_waits_neither_for_settling_nor_for_other_writers(memory: Memory) -> None:
    fact, other = memory.add("Tea at four."), memory.add("Cake on Sunday.")
    with connect(memory.context.database_url) as db, connect(memory.context.database_url) as writer:
        tallies.settle(db, 100)
        writer.execute("update activity set tier = 2 where fact = %s", [fact])
        with connect(memory.context.database_url) as second:
            second.execute("set local lock_timeout = '1s'")
            second.execute("update activity set tier = 2 where fact = %s", [other])
        memory.add("Nuts are forbidden.")
        db.commit()
        writer.commit()
    assert_counted(memory)


def test_two_settle_at_once_and_nothing_is_counted_twice(memory: Memory) -> None:
    memory.store(*TEXTS)
    with connect(memory.context.database_url) as db:
        assert tallies.settle(db, 100)[0] > 0
        assert stats.settle_tallies(memory.context, day(0)) == 0
        db.commit()
    assert_counted(memory)


def test_readers_never_see_a_fact_come_or_go_while_others_touch_and_settle(memory: Memory) -> None:
    ids = [memory.add(text) for text in TEXTS]
    memory.decay(300)

    def touch(number: int) -> None:
        for round_ in range(10):
            memory.touch(ids[number], at=301 + 20 * round_)
            memory.decay(320 + 20 * round_)

    def settle() -> None:
        for _ in range(30):
            stats.settle_tallies(memory.context, day(0))

    def look() -> Iterator[int]:
        for _ in range(60):
            yield memory.stats(301).facts

    with ThreadPoolExecutor(5) as pool:
        working = [pool.submit(touch, number) for number in range(3)] + [pool.submit(settle)]
        seen = set(pool.submit(lambda: list(look())).result())
        for one in working:
            one.result()
    assert seen == {len(TEXTS)}
    assert_counted(memory)


def test_a_pinned_fact_is_counted_until_its_pin_ends(memory: Memory) -> None:
    for_good, for_days = memory.add("Tea at four."), memory.add("Cake on Sunday.")
    memory.pin(for_good, at=0)
    memory.pin(for_days, at=0, until=3)
    assert [memory.stats(at).pinned for at in (0.0, 2.9, 3.1)] == [2, 2, 1]
    memory.forget(for_good, at=1)
    assert memory.stats(2).pinned == 1
