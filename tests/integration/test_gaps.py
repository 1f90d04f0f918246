"""Gaps: facts that ended in a long period without passes, or by a clock that jumped, are held until confirmed."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.facts import Edit
from ebb.contract.reports import ListFacts, ShowStats
from memory import Memory, day

from workers.admin import purge, stats
from workers.core.confidence import DAY
from workers.core.forget_limit import MOST_WHILE_OFF, MOST_WHILE_UP, is_gap, is_set_back
from workers.decay import forecast, forget_limit, passes
from workers.memory import edit, facts
from workers.memory.add import Stored
from workers.memory.store import store_many
from workers.validation.facts import new_fact

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("since_last", "since_start", "expected"),
    [
        (300.0, 90 * DAY, False),
        (MOST_WHILE_UP, 90 * DAY, False),
        (MOST_WHILE_UP + 1, 90 * DAY, True),
        (365 * DAY, 366 * DAY, True),
        (3 * DAY, DAY, False),
        (MOST_WHILE_OFF, DAY, False),
        (MOST_WHILE_OFF + 1, DAY, True),
        (30 * DAY, 60.0, True),
        (-365 * DAY, DAY, False),
    ],
)
def test_a_gap_is_a_day_while_the_server_ran_and_a_week_while_it_did_not(
    since_last: float, since_start: float, expected: bool
) -> None:
    assert is_gap(NOW - since_last, NOW, NOW - since_start) is expected


def test_a_clock_that_shows_more_than_a_day_before_the_last_pass_was_set_back() -> None:
    assert is_set_back(NOW + 2 * DAY, NOW)
    assert not is_set_back(NOW + 60, NOW)


@pytest.fixture
def memory(memory: Memory) -> Memory:
    """Return a memory without time travel, as gaps are not detected in simulations."""
    return memory.having(time_travel=False)


def store(
    memory: Memory, text: str, days_ago: float, decay_class: str | None = "session", namespace: str = "a"
) -> UUID:
    """Store a fact some real days ago; a session fact ends after one."""
    fact = new_fact({"text": text, "decay_class": decay_class}, 65_536)
    at = datetime.now(UTC) - timedelta(days=days_ago)
    (stored,) = store_many(memory.context, namespace, [fact], at, classify=False)
    assert isinstance(stored, Stored)
    return stored.id


def passed(memory: Memory, **options: Any) -> passes.Report:
    """Run a pass at the real time."""
    run = uuid4()
    for part in passes.plan(memory.context, run, datetime.now(UTC), **options):
        passes.apply(memory.context, part, lambda: None)
    return passes.finish(memory.context, run)


def last_pass(memory: Memory, days_ago: float) -> None:
    """Set the time of the last pass over all namespaces."""
    memory.rows("delete from pass_clock")
    memory.rows("insert into pass_clock (at) values (clock_timestamp() - %s)", timedelta(days=days_ago))


def test_what_ended_while_the_system_was_off_for_a_month_waits_for_confirmation(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for namespace in ("a", "b"):
        store(memory, "Tea is at four.", 30, namespace=namespace)
        store(memory, "Tea was at three.", 40, namespace=namespace)
        store(memory, "Tea is green.", 0.5, None, namespace)
    last_pass(memory, 35)
    assert passed(memory, work="startup prune").counters.forgotten == 2
    assert "NO PASS CAME" in caplog.text
    for _ in range(2):
        assert passed(memory).counters.forgotten == 0
    live = "select text, held from facts join activity on id = fact and forgotten_at is null order by 1"
    assert memory.rows(live) == [
        ("Tea is at four.", True), ("Tea is at four.", True), ("Tea is green.", False), ("Tea is green.", False),
    ]  # fmt: skip
    found = stats.stats(memory.context, ShowStats(namespace="a"), datetime.now(UTC))
    assert (found.held, found.facts, found.gap is not None) == (1, 2, True)
    assert passed(memory, force=True, namespace="a").counters.forgotten == 1
    assert stats.stats(memory.context, ShowStats(namespace="a"), datetime.now(UTC)).gap is None
    assert stats.stats(memory.context, ShowStats(namespace="b"), datetime.now(UTC)).held == 1
    assert memory.examine() == {}


@pytest.mark.parametrize("days_ago", [0.01, 35])
def test_what_ended_in_a_gap_is_shown_before_a_pass_and_after_it(memory: Memory, days_ago: float) -> None:
    ids = [store(memory, f"Tea number {number} is green.", 40 - number) for number in range(0, 20, 5)]
    store(memory, "Tea is hot.", 0.1)
    last_pass(memory, days_ago)
    before = shown(memory)
    assert before & set(ids) == (set() if days_ago < 1 else set(ids[1:]))
    passed(memory)
    assert shown(memory) == before
    last_pass(memory, 0)
    assert shown(memory) == before


def test_what_ended_in_a_gap_is_shown_in_no_branch(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    last_pass(memory, 35)
    memory.rows("insert into namespaces (name) values ('origin')")
    memory.rows("update namespaces set branch_of = (select id from namespaces where name = 'origin') where name = 'a'")
    assert shown(memory) == set()


def shown(memory: Memory) -> set[UUID]:
    """Return the facts that a list shows at the real time."""
    return {one["id"] for one in facts.page(memory.context, ListFacts(namespace="a", limit=100), datetime.now(UTC))[0]}


def test_what_ends_after_a_gap_is_forgotten_as_ever(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    last_pass(memory, 35)
    passed(memory)
    ended = memory.value("select gap_until from namespaces")
    memory.rows("update namespaces set gap_until = %s", ended - timedelta(hours=6))
    store(memory, "Tea is at five.", 1.01)
    assert passed(memory).counters.forgotten == 1
    assert stats.stats(memory.context, ShowStats(namespace="a"), datetime.now(UTC)).held == 1


def test_passes_that_come_regularly_hold_nothing(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    last_pass(memory, 0.01)
    assert passed(memory).counters.forgotten == 1
    assert memory.value("select clock_timestamp() - at < interval '1 minute' from pass_clock") is True


def test_the_first_pass_of_all_holds_nothing(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    memory.rows("delete from pass_clock")
    assert passed(memory).counters.forgotten == 1


def test_a_pass_over_one_namespace_finds_a_gap_but_is_none_that_the_others_had(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    store(memory, "Tea is at four.", 30, namespace="b")
    last_pass(memory, 3)
    assert passed(memory, namespace="a").counters.forgotten == 1
    last_pass(memory, 35)
    assert passed(memory, namespace="b").counters.forgotten == 0
    assert stats.stats(memory.context, ShowStats(namespace="b"), datetime.now(UTC)).gap is not None


def test_a_dry_run_neither_notes_nor_holds_anything(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    last_pass(memory, 35)
    before = memory.rows("select at from pass_clock")
    passed(memory, dry_run=True)
    assert memory.rows("select at from pass_clock") == before
    assert stats.stats(memory.context, ShowStats(namespace="a"), datetime.now(UTC)).gap is None


def test_a_scheduled_purge_leaves_alone_what_waits_and_an_asked_for_one_does_not(memory: Memory) -> None:
    id_ = store(memory, "Tea is at four.", 60, None)
    memory.rows("update facts set forgotten_at = now() - interval '50 days', forgotten_reason = 'asked'")
    last_pass(memory, 45)
    forget_limit.check_for_gap(memory.context, everywhere=False)
    now = datetime.now(UTC)
    assert purge.purge_batch(memory.context, now, None, in_gaps=False).facts == 0
    assert purge.purge_batch(memory.context, now, "a").facts == 1
    assert memory.value("select count(*) from facts where id = %s", id_) == 0


def test_a_clock_that_is_set_right_again_takes_the_gap_back(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    """A clock a year ahead: the pass holds all facts, and the next pass finds the clock set back."""
    id_ = store(memory, "Tea is at four.", 0.5)
    passed(memory)
    memory.rows("update pass_clock set at = %s", memory.value("select at from pass_clock") + timedelta(days=365))
    memory.rows("update namespaces set gap_from = now(), gap_until = now() + interval '365 days'")
    memory.rows("update activity set held = true, due_at = 'infinity' where fact = %s", id_)
    caplog.set_level(logging.WARNING)
    passed(memory)
    assert "was set back" in caplog.text
    assert memory.rows("select gap_until, held_since from namespaces where name = 'a'") == [(None, None)]
    assert memory.value("select due_at < clock_timestamp() + interval '1 day' from activity where fact = %s", id_)
    memory.rows("update pass_clock set at = now() - interval '20 hours'")
    late = datetime.now(UTC) + timedelta(days=0.6)
    run = uuid4()
    for part in passes.plan(memory.context, run, late):
        passes.apply(memory.context, part, lambda: None)
    assert passes.finish(memory.context, run).counters.forgotten == 1


def test_a_clock_that_is_set_right_again_leaves_no_trace_of_the_time_ahead(memory: Memory) -> None:
    """All facts are as they were: none is held, none counts as ended, and none is cold but those that are."""
    store(memory, "Tea is at four.", 0.5, "stable")
    store(memory, "Tea is green.", 0.5, None)
    passed(memory)
    before = memory.rows("select fact, tier, ends_at, held from activity order by fact")
    ahead = datetime.now(UTC) + timedelta(days=365)
    memory.rows("update pass_clock set at = %s", ahead)
    memory.rows("update namespaces set gap_from = now(), gap_until = %s", ahead)
    memory.rows("insert into endings (namespace, at, facts) select id, %s, 5 from namespaces", ahead)
    for part in passes.plan(memory.having(time_travel=True).context, uuid4(), ahead):
        passes.apply(memory.context, part, lambda: None)
    assert stats.stats(memory.context, ShowStats(namespace="a"), ahead).held == 1
    passed(memory)
    passed(memory)
    assert memory.rows("select fact, tier, ends_at, held from activity order by fact") == before
    assert stats.stats(memory.context, ShowStats(namespace="a"), datetime.now(UTC)).tiers == {
        "hot": 0,
        "warm": 2,
        "cold": 0,
    }
    assert memory.value("select forget_room(id, now()) from namespaces") == 5


def test_what_was_done_ahead_of_a_clock_that_was_set_right_overtakes_no_request(memory: Memory) -> None:
    """Else forgetting, restoring, editing, pinning and choosing settings would be refused until that time."""
    now = (datetime.now(UTC) - day(0)) / timedelta(days=1)
    ahead, later = memory.having(time_travel=True), now + 365
    kept, gone, old = (memory.add(f"Tea number {number} is green.", at=now) for number in range(3))
    ahead.forget(kept, gone, at=later)
    ahead.restore(kept, at=later + 0.1)
    ahead.pin(kept, at=later + 0.2)
    edit.edit(ahead.context, Edit(id=kept, namespace="default", category="ahead"), day(later))
    memory.rows("update facts set superseded_at = %s where id = %s", day(later), old)
    ahead.choose({"hygiene.episodicTTL": False}, at=later)
    assert [one.action for one in memory.restore(gone, old, at=now)] == ["restored", "restored"]
    assert edit.edit(memory.context, Edit(id=kept, namespace="default", category="now"), day(now)).action == "updated"
    assert memory.unpin(kept, at=now) == "unpinned"
    assert [one.action for one in memory.forget(kept, at=now)] == ["forgotten"]
    assert memory.choose({"hygiene.episodicTTL": True}, at=now)["episodicTTL"]


def test_a_simulation_has_no_gaps(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    last_pass(memory, 35)
    forget_limit.check_for_gap(memory.having(time_travel=True).context, everywhere=True)
    assert memory.value("select count(*) from namespaces where gap_until is not null") == 0


def test_a_dry_run_and_a_forecast_foresee_a_gap_that_the_next_pass_finds(memory: Memory) -> None:
    store(memory, "Tea is at four.", 30)
    last_pass(memory, 35)
    tried = passed(memory, dry_run=True).counters
    foreseen = forecast.forecast(memory.context, "a", 1, datetime.now(UTC))[0].answer
    done = passed(memory).counters
    assert (tried.forgotten, tried.held) == (foreseen.forgotten, foreseen.held) == (done.forgotten, done.held) == (0, 1)
