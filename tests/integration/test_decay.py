"""Decay on a real database: any sequence of passes leads to the state after one pass."""

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.core.fidelity import FINGERPRINT, pool
from workers.core.lifetime import LIFETIMES
from workers.decay import passes as decay
from workers.decay.passes import Report
from workers.storage import activity
from workers.storage.connection import connect
from workers.storage.runs import Counters

bounded = examples(15)

# Tier and instant of a tombstone depend on the time of the pass; nothing else does.
STATE = """
    select facts.id, forgotten_reason, case when forgotten_at is null then tier end, fidelity, base, coactivations,
        last_seen_at, confidence, last_confirmed_at, expires_at::text, decay_class, recall_count, ends_at::text,
        due_at::text, held, live, full_dims, vector_dims(embedding)
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    left join signatures on signatures.namespace = facts.namespace and signatures.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace and vectors.fact = facts.id
    order by id
"""
VECTORS = "select embedding::real[] from vectors order by fact"
EMPTY = "truncate facts, decay_runs cascade"

remembered = st.lists(
    st.fixed_dictionaries(
        {
            "last_seen_at": st.floats(0, 100).map(lambda number: day(number).isoformat()),
            "decay_class": st.sampled_from([None, None, None, *LIFETIMES]),
            "confidence": st.sampled_from([1.0, 0.7, 0.3, 0.1]),
            "coactivations": st.sampled_from([0, 0, 1, 7]),
        },
        optional={"salience": st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0])},
    ),
    min_size=15,
    max_size=25,
)
instants = st.lists(st.integers(0, 400).map(float), min_size=1, max_size=5)


def remember(facts: list[dict[str, Any]], *memories: Memory) -> None:
    """Store the same facts with the same ids in each memory."""
    given = [fact | {"id": str(uuid4()), "text": f"Guest {i} takes tea."} for i, fact in enumerate(facts)]
    for memory in memories:
        memory.rows(EMPTY)
        memory.store(*given)


def assert_alike(memory: Memory, other: Memory) -> None:
    assert memory.rows(STATE) == other.rows(STATE)
    for (ours,), (theirs,) in zip(memory.rows(VECTORS), other.rows(VECTORS), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-3)


def counted(report: Report) -> Report:
    """Return a report without the fields that differ between equal runs."""
    return replace(report, dry_run=False, counters=replace(report.counters, duration_ms=0))


def pass_after_pass(memory: Memory, passes: list[float]) -> bool:
    return all(memory.decay(at).finished for at in passes)


def apply_all(memory: Memory, parts: list[decay.PartOf]) -> None:
    for part in parts:
        decay.apply(memory.context, part, lambda: None)


@bounded
@given(facts=remembered, passes=instants, last=st.integers(100, 500))
def test_any_passes_in_any_order_leave_what_one_pass_leaves(
    memory: Memory, twin: Memory, facts: list[dict[str, Any]], passes: list[float], last: int
) -> None:
    memory, twin = memory.having(forget_limit=1.0), twin.having(forget_limit=1.0)
    remember(facts, memory, twin)
    for at in [*[at for at in passes if at < last], last, *passes[:2], last]:
        memory.decay(min(at, last))
    twin.decay(last)
    assert_alike(memory, twin)


@bounded
@given(facts=remembered, passes=instants, sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_two_threads_with_batches_of_their_own_leave_what_one_pass_leaves(
    memory: Memory, twin: Memory, facts: list[dict[str, Any]], passes: list[float], sizes: tuple[int, int]
) -> None:
    memory, twin = memory.having(forget_limit=1.0), twin.having(forget_limit=1.0)
    remember(facts, memory, twin)
    workers = [memory.having(decay_batch=size, segments=1) for size in sizes]
    with ThreadPoolExecutor(2) as pool_of_two:
        walks = [pool_of_two.submit(pass_after_pass, worker, passes) for worker in workers]
    assert [walk.result() for walk in walks] == [True, True]
    memory.decay(400)
    twin.decay(400)
    assert_alike(memory, twin)


def test_two_threads_that_work_off_the_same_run_leave_what_one_pass_leaves(memory: Memory, twin: Memory) -> None:
    remember([{"decay_class": name} for name in [None, "short", "permanent"] * 40], memory, twin)
    narrow = memory.having(decay_batch=3)
    run = uuid4()
    parts = decay.plan(narrow.context, run, day(100))
    with ThreadPoolExecutor(2) as pool_of_two:
        walks = [pool_of_two.submit(apply_all, narrow, order) for order in (parts, parts[::-1])]
    assert [walk.exception() for walk in walks] == [None, None]
    ours, theirs = decay.finish(narrow.context, run), twin.decay(100)
    assert_alike(memory, twin)
    assert counted(ours) == counted(theirs)


@pytest.mark.parametrize("passes", [[10, 15], [8.5, 12.5, 15], [15]])
def test_a_vector_pooled_in_steps_is_the_vector_pooled_at_once(memory: Memory, passes: list[float]) -> None:
    text = "The spare key lies under the flower pot."
    id_ = memory.add(text)
    for at in passes:
        memory.decay(at)
    kept = np.array(memory.value(VECTORS), dtype=np.float32)
    assert memory.row(id_)["full_dims"] == 256
    np.testing.assert_allclose(kept, pool(memory.context.embedder.embed([text]), 4)[0], atol=1e-3)


def test_pooling_stops_at_the_smallest_dims_that_are_set(memory: Memory) -> None:
    id_ = memory.add("Tea at four.")
    small = memory.having(min_vector_dim=128)
    small.decay(15)
    assert memory.row(id_)["dims"] == 128


def test_permanent_facts_neither_cool_nor_shrink_nor_end(memory: Memory) -> None:
    id_ = memory.add("Ana is allergic to nuts.", decay_class="permanent", confidence=0.1)
    memory.decay(3_650)
    row = memory.row(id_)
    assert (row["fidelity"], row["dims"], row["forgotten_at"], row["tier"]) == (1, 256, None, 1)
    assert memory.ids("nuts", at=3_650) == [id_]


def test_a_fact_without_vector_stays_so_but_ends_in_its_time(memory: Memory) -> None:
    id_ = memory.add("Tea at four.")
    memory.rows("update activity set fidelity = 0")
    memory.rows("delete from vectors")
    memory.decay(100)
    assert memory.row(id_)["fidelity"] == 0
    memory.decay(600)
    assert (memory.row(id_)["fidelity"], memory.row(id_)["forgotten_reason"]) == (0, "culled")


def test_of_a_forgotten_fact_only_the_signature_is_left(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="checkpoint")
    memory.decay(1)
    row = memory.row(id_)
    assert (row["forgotten_reason"], row["forgotten_at"], row["live"]) == ("expired", day(1), False)
    assert (row["fidelity"], row["dims"], row["due"]) == (FINGERPRINT, 0, np.inf)


def test_a_pass_with_nothing_due_touches_nothing(memory: Memory) -> None:
    memory.store(*[f"Guest {number} takes tea." for number in range(50)])
    memory.decay(10)
    before = memory.rows("select xmin, ctid from activity")
    report = memory.decay(10)
    assert (report.finished, report.counters.processed, report.counters.segments) == (True, 0, 0)
    assert memory.rows("select xmin, ctid from activity") == before


AGES = [0.0, 50.0, 80.0, 90.0, 95.0, 99.0]


def of_all_ages(memory: Memory) -> None:
    for age in AGES:
        classes = [None, "durable", "normal", "short", "permanent"]
        memory.store(*[{"text": f"{name} at {age}", "decay_class": name} for name in classes], at=age)


def test_a_dry_run_writes_nothing_and_counts_what_the_pass_then_does(memory: Memory) -> None:
    of_all_ages(memory)
    before = memory.rows(STATE)
    preview = memory.decay(120, dry_run=True)
    assert memory.rows(STATE) == before
    assert counted(preview) == counted(memory.decay(120))
    assert preview.counters.forgotten > 0
    assert preview.counters.fingerprinted > 0


def test_a_dry_run_split_over_tasks_counts_each_fact_once(memory: Memory) -> None:
    narrow = memory.having(segments=1, decay_batch=3, decay_threads=4)
    of_all_ages(narrow)
    preview = narrow.decay(120, dry_run=True)
    real = narrow.decay(120)
    assert counted(preview) == counted(real)
    assert real.counters.processed == 4 * len(AGES)  # permanent facts are never due


def test_a_dry_run_delivered_twice_counts_each_fact_once(memory: Memory) -> None:
    narrow = memory.having(segments=1, decay_batch=4, decay_threads=1)
    of_all_ages(narrow)
    run = uuid4()
    (part,) = decay.plan(narrow.context, run, day(120), dry_run=True)
    with pytest.raises(KeyboardInterrupt):
        decay.apply(narrow.context, part, interrupt)
    decay.apply(narrow.context, part, lambda: None)
    assert counted(decay.finish(narrow.context, run)) == counted(narrow.decay(120))


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_part_interrupted_between_batches_goes_on_where_it_stopped(memory: Memory, twin: Memory) -> None:
    narrow = memory.having(segments=1, decay_batch=4)
    remember([{"decay_class": name} for name in [None, "normal"] * 10], narrow, twin)
    run = uuid4()
    for part in (parts := decay.plan(narrow.context, run, day(40))):
        with pytest.raises(KeyboardInterrupt):
            decay.apply(narrow.context, part, interrupt)
    for part in parts:
        decay.apply(narrow.context, part, lambda: None)
    assert counted(decay.finish(narrow.context, run)).counters.processed == 20
    twin.decay(40)
    assert [row[:10] for row in memory.rows(STATE)] == [row[:10] for row in twin.rows(STATE)]


def test_a_part_delivered_twice_counts_once(memory: Memory) -> None:
    of_all_ages(memory)
    run = uuid4()
    parts = decay.plan(memory.context, run, day(120))
    for part in [*parts, *parts]:
        decay.apply(memory.context, part, lambda: None)
    assert decay.finish(memory.context, run).counters.processed == 4 * len(AGES)  # permanent facts are never due


def test_a_plan_repeated_with_the_same_run_doubles_nothing(memory: Memory) -> None:
    of_all_ages(memory)
    run = uuid4()
    first, second = (decay.plan(memory.context, run, day(120)) for _ in range(2))
    assert sorted(first) == sorted(second)
    for part in first:
        decay.apply(memory.context, part, lambda: None)
    assert decay.plan(memory.context, run, day(120)) == []
    assert memory.value("select count(*) from decay_runs") == 1


def test_two_scheduled_plans_of_one_minute_make_one_run(memory: Memory) -> None:
    of_all_ages(memory)
    plans = [decay.plan(memory.context, uuid4(), day(120), slot=day(120)) for _ in range(2)]
    assert bool(plans[0])
    assert plans[1] == []
    assert memory.value("select count(*) from decay_runs") == 1


def test_two_beats_that_plan_at_once_make_one_run(memory: Memory) -> None:
    of_all_ages(memory)
    with ThreadPoolExecutor(2) as pool_of_two:
        beats = [pool_of_two.submit(decay.plan, memory.context, uuid4(), day(120), slot=day(120)) for _ in range(2)]
    assert sorted(bool(beat.result()) for beat in beats) == [False, True]


def test_parts_whose_messages_are_lost_come_with_the_next_plan(memory: Memory) -> None:
    of_all_ages(memory)
    lost = decay.plan(memory.context, uuid4(), day(120))
    memory.rows("update decay_runs set started_at = to_timestamp(0)")
    assert set(lost) <= set(decay.plan(memory.context, uuid4(), day(120)))


def test_tiers_sum_to_what_was_processed(memory: Memory) -> None:
    of_all_ages(memory)
    done = memory.decay(100).counters
    assert done.hot + done.warm + done.cold == done.processed > 0
    assert done.forgotten == memory.value("select count(*) from facts where forgotten_at is not null")
    assert done.compressed == memory.value("select count(*) from activity where fidelity between 2 and 16")


def test_the_pass_is_logged_as_documented(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    narrow = memory.having(segments=1)
    narrow.store("Tea at four.", {"text": "Tea at five.", "decay_class": "checkpoint"})
    with caplog.at_level(logging.INFO, "workers.decay.passes"):
        narrow.decay(10)
    assert re.fullmatch(
        r"\[decay-2\.0\] 2/2 \| tiers: hot=0 warm=0 cold=2 \| compressed=1 fingerprinted=0 "
        r"\| \d+\.\dms across 1 segments",
        caplog.messages[0],
    )
    assert caplog.messages[1:] == ["forgotten: expired=1 faded=0 culled=0 aged=0"]


def test_a_dry_run_is_not_logged_as_if_it_had_done_anything(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    memory.add("Tea at four.", decay_class="session")
    with caplog.at_level(logging.INFO, "workers.decay.passes"):
        assert memory.decay(2, dry_run=True).counters.faded == 1
    assert caplog.messages == []


def test_a_run_is_finished_and_logged_by_one_caller_only(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    memory.add("Tea at four.")
    run = uuid4()
    (part,) = decay.plan(memory.context, run, day(100), asked_by="a-caller")
    assert decay.finish(memory.context, run) == Report(begun=True, asked_by="a-caller", counters=Counters(segments=1))
    decay.apply(memory.context, part, lambda: None)
    with caplog.at_level(logging.INFO, "workers.decay.passes"), ThreadPoolExecutor(2) as pool_of_two:
        reports = list(pool_of_two.map(lambda _: decay.finish(memory.context, run), range(2)))
    assert len(caplog.messages) == 1
    assert [report.finished for report in reports] == [True, True]


def test_a_ratio_takes_the_oldest_share_of_what_is_due(memory: Memory) -> None:
    half = memory.having(segments=1, decay_ratio=0.5)
    half.store(*[{"text": f"Tea at {i}.", "last_seen_at": day(i / 100).isoformat()} for i in range(20)])
    assert half.decay(100).counters.processed == 10
    shrunk = memory.rows("select text from facts join activity on fact = id where fidelity <> 1")
    assert {text for (text,) in shrunk} == {f"Tea at {i}." for i in range(10)}
    assert half.decay(100).counters.processed == 5


@pytest.mark.parametrize(("facts", "parts"), [(10, 1), (11, 2), (31, 3), (200, 3)])
def test_a_segment_is_split_over_as_many_tasks_as_set_if_it_fills_them(memory: Memory, facts: int, parts: int) -> None:
    narrow = memory.having(segments=1, decay_batch=10, decay_threads=3)
    narrow.store(*[f"Guest {number} takes tea." for number in range(facts)])
    planned = decay.plan(narrow.context, uuid4(), day(100))
    assert len(planned) == parts
    for part in planned:
        decay.apply(narrow.context, part, lambda: None)
    assert memory.value("select sum(processed)::int from decay_parts") == facts


def test_segments_with_few_due_facts_share_a_task_as_long_as_it_is_one_batch(memory: Memory) -> None:
    narrow = memory.having(segments=8, decay_batch=10)
    narrow.store(*[{"id": str(UUID(int=number + 1)), "text": f"Guest {number} takes tea."} for number in range(40)])
    counts = dict(memory.rows("select segment, count(*)::int from activity group by 1"))
    assert max(counts.values()) <= narrow.context.settings.decay_batch
    planned = decay.plan(narrow.context, uuid4(), day(100))
    assert 40 / 10 <= len(planned) < len(counts)
    covered = memory.rows("select segment || further, quota from decay_parts")
    assert sorted(one for segments, _ in covered for one in segments) == sorted(counts)
    assert all(sum(counts[one] for one in segments) == quota for segments, quota in covered)
    apply_all(narrow, planned)
    report = decay.finish(narrow.context, planned[0][0])
    assert (report.counters.processed, report.counters.segments) == (40, len(counts))


@pytest.mark.slow
def test_facts_that_a_transaction_holds_for_long_are_left_for_the_next_pass(memory: Memory) -> None:
    ids = [memory.add("Tea at four."), memory.add("Cake on Sunday.")]
    with connect(memory.context.database_url) as db:
        activity.lock(db, memory.value("select id from namespaces"), ids[:1])
        assert memory.decay(100).counters.processed == 1
    assert memory.decay(100).counters.processed == 1
    assert [memory.row(id_)["fidelity"] for id_ in ids] == [FINGERPRINT] * 2


def test_users_are_let_through_between_batches_and_outside_of_transactions(memory: Memory) -> None:
    narrow = memory.having(segments=1, decay_batch=2)
    narrow.store(*[f"Guest {number} takes tea." for number in range(4)])
    open_transactions: list[int] = []
    idle = "select count(*) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()"
    parts = decay.plan(narrow.context, uuid4(), day(100))
    for part in parts:
        decay.apply(narrow.context, part, lambda: open_transactions.append(memory.value(idle)))
    assert set(open_transactions) == {0}
    assert len(open_transactions) >= 2


def test_decay_summaries_change_neither_text_nor_summary(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", summary="tea")
    memory.decay(300)
    assert memory.rows("select text, summary from facts where id = %s", id_) == [("Tea at four.", "tea")]


def test_a_later_touch_warms_a_cooled_fact(memory: Memory) -> None:
    id_: UUID = memory.add("Tea at four.")
    memory.decay(300)
    memory.touch(id_, at=300)
    memory.regenerate(id_, at=300)
    memory.decay(301)
    assert (memory.row(id_)["fidelity"], memory.row(id_)["dims"], memory.row(id_)["tier"]) == (1, 256, 1)
