"""Restore: forgotten facts are listed and restored by ids, time, reason or run; superseded ones are reopened."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from itertools import chain
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.reports import ListContradictions
from ebb.contract.retention import Outcome
from memory import DAY_0, Memory, day
from redis import Redis
from test_consolidate import HAS_MOVED, MOVED
from test_forget import did

from workers.decay import consolidate
from workers.errors import InvalidInputError
from workers.memory import facts as forgotten
from workers.memory import facts as show
from workers.memory import restore, supersede
from workers.memory.add import Stored
from workers.memory.forget import forget_within
from workers.memory.restore import BY_DECAY
from workers.queues import MAINTENANCE, STORE, lists_of
from workers.storage import events
from workers.storage.connection import transaction

TEXT = "The spare key lies under the flower pot."
FADING = ("tier", "salience", "retention", "strength", "effective_confidence", "due_at", "ends_at", "ends_for")
LIFETIME = {
    *FADING, "last_seen_at", "last_confirmed_at", "expires_at", "recall_count", "access_count", "last_accessed",
    "last_accessed_at", "confidence", "decay_summary", "dims", "fidelity",
}  # fmt: skip
"""Fields of the decay state, which a restore renews."""


def shown(memory: Memory, id_: UUID, at: float) -> dict[str, Any]:
    """Return a fact without its decay state."""
    fact = show.show(memory.context, "default", id_, day(at))
    return {name: value for name, value in fact.items() if name not in LIFETIME}


def restorations(memory: Memory, *ids: UUID) -> dict[UUID, list[str]]:
    with transaction(memory.context.database_url) as db:
        return events.restorations(db, 1, ids)


def forget_for(memory: Memory, reason: str, *ids: UUID, at: float, run: UUID | None = None) -> None:
    with transaction(memory.context.database_url) as db:
        forget_within(db, [1] * len(ids), ids, [reason] * len(ids), day(at), run)


# One fact -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [*BY_DECAY, "asked", "retracted"])
@pytest.mark.parametrize("years", [0, -3, 3])
def test_a_restored_fact_is_unchanged_for_every_reason_and_date_of_forgetting(
    memory: Memory, reason: str, years: int
) -> None:
    fields = {"entity": "Mira", "key": "key", "value": "pot", "tags": ["house"], "decay_class": "stable", "session": 7}
    id_ = memory.add(TEXT, **fields, metadata={"a": [1]}, source="chat", importance=0.7, category="home", turn=3)
    before = shown(memory, id_, 1)
    forget_for(memory, reason, id_, at=1 + 365 * years)
    if years > 0 and reason not in BY_DECAY:
        assert did(memory.restore(id_, at=2)) == ["refused"]
        return
    assert did(memory.restore(id_, at=2)) == ["restored"]
    assert shown(memory, id_, 2) == before
    assert (memory.row(id_)["expires"], memory.ids("spare key", at=2)) == (92, [id_])


def test_a_fact_that_is_restored_before_its_last_confirmation_lives_from_that_one_on(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="stable")
    memory.reinforce(id_, at=20)
    memory.decay(3_650, force=True)
    assert did(memory.restore(id_, at=3)) == ["restored"]
    assert (memory.row(id_)["confirmed"], memory.row(id_)["expires"]) == (20, 110)


def test_what_a_pass_at_a_future_instant_forgot_comes_back_and_lives_from_now(memory: Memory) -> None:
    facts = [memory.add(f"{TEXT} {i}", decay_class=name) for i, name in enumerate(("session", "normal", "stable"))]
    memory.decay(3_650, force=True)
    assert memory.ids("spare key", at=1) == []
    assert did(memory.restore(*facts, at=1)) == ["restored"] * 3
    assert set(memory.ids("spare key", at=1)) == set(facts)
    assert [round(memory.row(id_)["expires"], 6) for id_ in facts] == [2, 15, 91]
    memory.decay(1.5)
    assert set(memory.ids("spare key", at=1.5)) == set(facts)


def test_a_restore_that_comes_again_after_the_fact_ended_again_changes_nothing(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    memory.decay(2)
    memory.restore(id_, at=3)
    memory.decay(5)
    assert did(memory.restore(id_, at=3)) == ["unchanged"]
    assert memory.row(id_)["forgotten_reason"] in BY_DECAY
    assert did(memory.restore(id_, at=6)) == ["restored"]


def test_a_restore_that_comes_again_regenerates_what_its_broken_off_delivery_did_not(memory: Memory) -> None:
    id_ = memory.add("The bicycle was sold to a neighbour")
    memory.forget(id_, at=1)
    for _ in range(2):
        assert restore.restore(memory.context, "default", [id_], day(2)).faded == [id_]
    memory.regenerate(id_, at=2)
    assert restore.restore(memory.context, "default", [id_], day(2)).faded == []


def test_what_was_restored_twice_does_not_end_by_itself_again(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    memory.decay(2)
    assert memory.restore(id_, at=3) == [Outcome(id=id_, action="restored", pinned=False)]
    memory.decay(5)
    assert memory.restore(id_, at=6) == [Outcome(id=id_, action="restored", pinned=True)]
    memory.decay(3_650, force=True)
    assert memory.ids("spare key", at=3_650) == [id_]
    assert memory.history(id_)[-3:] == [("forgotten", 5), ("restored", 6), ("pinned", 6)]
    memory.unpin(id_, at=3_651)
    memory.decay(3_653)
    assert memory.row(id_)["forgotten_reason"] in BY_DECAY
    assert restore.revive(memory.context, "default", [id_], day(3_654)) == ([id_], [id_])
    assert memory.row(id_)["pinned_until"] == 3_651  # a recall is no wish of the owner


def test_what_its_owner_forgets_and_restores_twice_is_not_pinned(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    for at in (0.1, 0.2, 0.3):
        memory.forget(id_, at=at)
        assert memory.restore(id_, at=at + 0.05) == [Outcome(id=id_, action="restored", pinned=False)]


def test_a_restored_fact_keeps_the_reason_for_which_it_had_been_forgotten(memory: Memory) -> None:
    pruned, expired, never = memory.add(TEXT), memory.add("Tea at four."), memory.add("Cake on Sunday.")
    forget_for(memory, "pruned", pruned, at=1)
    forget_for(memory, "expired", expired, at=1)
    memory.restore(pruned, expired, at=2)
    memory.rows("update events set details = '{}' where fact = %s and what = 'restored'", expired)
    assert restorations(memory, pruned, expired, never) == {pruned: ["pruned"], expired: ["expired"]}


# Superseded facts -----------------------------------------------------------------------------------------------


@pytest.fixture
def cities(memory: Memory) -> tuple[UUID, UUID]:
    """Return a superseded fact and the one that superseded it on day 2."""
    city = {"entity": "Ana", "key": "city"}
    old = memory.add("Ana lives in Rome.", value="Rome", **city)
    (new,) = memory.store({"text": "Ana lives in Bonn.", "value": "Bonn", "supersedes": str(old), **city}, at=2)
    assert isinstance(new, Stored)
    return old, new.id


def test_a_reopened_fact_contradicts_the_newer_one(memory: Memory, cities: tuple[UUID, UUID]) -> None:
    old, new = cities
    assert did(memory.restore(old, at=3)) == ["restored"]
    assert set(memory.ids("Where does Ana live?", at=3)) == {old, new}
    assert memory.rows("select superseded_at, superseded_by, valid_until from facts where id = %s", old) == [
        (None, None, None)
    ]
    (pair,) = supersede.contradicting(memory.context, ListContradictions(), day(3)).contradictions
    assert {one.id for one in pair.facts} == {old, new}
    assert memory.history(old)[:3] == [("stored", 0), ("superseded", 2), ("restored", 3)]
    assert ("supersession undone", 3) in memory.history(new)
    assert memory.examine(3) == {}


def test_a_reopened_fact_can_be_superseded_again(memory: Memory, cities: tuple[UUID, UUID]) -> None:
    old, new = cities
    memory.restore(old, at=3)
    supersede.keep(memory.context, "default", new, [old], day(4))
    assert memory.ids("Where does Ana live?", at=4) == [new]
    assert did(memory.restore(old, at=3)) == ["refused"]
    assert did(memory.restore(old, at=5)) == ["restored"]


def test_a_superseded_fact_stays_so_where_a_live_one_says_the_same(memory: Memory, cities: tuple[UUID, UUID]) -> None:
    old, _ = cities
    memory.add("Ana lives in Rome.", at=3)
    (refused,) = memory.restore(old, at=4)
    assert "says the same" in str(refused)


def test_a_tombstone_is_taken_off_first_then_the_supersession(memory: Memory, cities: tuple[UUID, UUID]) -> None:
    old, _ = cities
    memory.forget(old, at=3)
    memory.restore(old, at=4)
    assert memory.rows("select superseded_at is null, forgotten_at is null from facts where id = %s", old) == [
        (False, True)
    ]
    memory.restore(old, at=5)
    assert old in memory.ids("Where does Ana live?", at=5)


# Listing and restoring many ---------------------------------------------------------------------------------------


def test_forgotten_facts_are_listed_newest_first_in_pages_with_their_run(memory: Memory) -> None:
    run = uuid4()
    facts = [memory.add(f"Note {i}.", decay_class="session", at=i) for i in range(5)]
    memory.decay(2.5, run=run)
    memory.decay(9)
    assert memory.forgotten(limit=2) == memory.forgotten() == memory.forgotten(limit=1)
    assert set(memory.forgotten()[3:]) == set(memory.forgotten(run=run)) == set(facts[:2])
    assert memory.forgotten(run=uuid4()) == memory.forgotten(namespace="unknown") == []


def test_a_selection_is_by_time_and_reason(memory: Memory) -> None:
    early, late, asked = memory.add("One."), memory.add("Two."), memory.add("Three.")
    forget_for(memory, "faded", early, at=1)
    forget_for(memory, "culled", late, at=5)
    memory.forget(asked, at=6)
    memory.rows("update facts set tombstone_at = forgotten_at")
    assert memory.forgotten(since=1) == [late, early]
    assert memory.forgotten(since=2) == memory.forgotten(reasons=("culled",)) == [late]
    assert memory.forgotten(until=5) == [early]
    assert memory.forgotten(reasons=("asked",)) == [asked]


def test_what_was_dated_wrongly_is_found_by_when_it_was_done(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    forget_for(memory, "faded", id_, at=1)
    an_hour_ago = (memory.value("select now() - interval '1 hour'") - DAY_0) / timedelta(days=1)
    assert memory.forgotten(since=an_hour_ago) == [id_]
    assert memory.forgotten(since=an_hour_ago + 1) == []


def test_until_when_a_fact_can_be_restored_is_its_retention_after_the_later_date(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    forget_for(memory, "faded", id_, at=1)
    memory.rows("update facts set tombstone_at = %s", day(4))
    page = forgotten.forgotten(memory.context, "default", restore.Selection(BY_DECAY), 1)
    assert [one.restorable_until for one in page.facts] == [None]
    owner = memory.having(deep_days=30).context
    page = forgotten.forgotten(owner, "default", restore.Selection(BY_DECAY), 1)
    assert [one.restorable_until for one in page.facts] == [day(34)]


def test_everything_that_a_pass_at_a_future_instant_forgot_comes_back_by_its_time_or_run(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "AT_ONCE", 20)
    memory.store(*[{"text": f"Note {i}.", "decay_class": "session"} for i in range(45)])
    facts = {id_ for (id_,) in memory.rows("select id from facts")}
    asked, run = memory.add("The secret recipe."), uuid4()
    memory.forget(asked, at=0.5)
    memory.decay(3_650, run=run, force=True)
    assert restore.selected(memory.context, "default", restore.Selection(BY_DECAY, since=day(1))) == 45
    assert memory.restore_selected(at=1, since=1) == ["restored"] * 45
    assert memory.restore_selected(at=1, run=run) == []
    assert {id_ for (id_,) in memory.rows("select id from facts where forgotten_at is null")} == facts
    memory.decay(3_650, run=(again := uuid4()), force=True)
    assert memory.restore_selected(at=2, run=again) == ["restored"] * 45
    assert memory.stats(2).pinned == 45


def test_only_what_is_in_the_way_of_others_stays_when_many_are_restored(memory: Memory) -> None:
    first = memory.add(TEXT, decay_class="session")
    memory.decay(2)
    (second,) = memory.store(TEXT, at=3)
    assert isinstance(second, Stored)
    other = memory.add("Tea at four.", decay_class="session")
    memory.decay(4)
    assert sorted(memory.restore_selected(at=5, since=0)) == ["refused", "restored"]
    assert set(memory.ids("spare key tea", at=5)) == {second.id, other}
    assert memory.row(first)["forgotten_reason"] in BY_DECAY


def test_merged_facts_come_back_by_the_run_that_merged_them(memory: Memory) -> None:
    memory.add(MOVED)
    memory.add(HAS_MOVED, at=1)
    until = float("inf")
    done = consolidate.consolidate(memory.context, "default", UUID(int=7), day(2), until, apply=True, force=True)
    merged = sum(len(group.merge) for group in done.merged.groups)
    assert memory.restore_selected(at=3, run=UUID(int=7)) == ["restored"] * merged == ["restored"]


def test_a_selection_of_nothing_restores_nothing(memory: Memory) -> None:
    assert memory.restore_selected(at=1, since=0) == memory.restore_selected(at=1, since=0, namespace="unknown") == []
    assert not any(isinstance(one, InvalidInputError) for one in memory.restore_selected(at=1, since=0))


# Import ---------------------------------------------------------------------------------------------------------


def test_an_earlier_archive_restores_facts_that_decay_ended_since(memory: Memory) -> None:
    facts = [memory.add(f"Note {i}.", decay_class="session") for i in range(3)]
    memory.add("Tea at four.", decay_class="permanent")
    lines = memory.archive(0)
    memory.decay(3_650, force=True)
    assert sorted(memory.import_records(lines, at=1)) == ["restored"] * 3 + ["unchanged"]
    assert {id_ for (id_,) in memory.rows("select id from facts where forgotten_at is null")} >= set(facts)
    assert memory.import_records(lines, at=1) == memory.import_records(lines, at=1.1) == ["unchanged"] * 4
    assert memory.examine(1.1) == {}


def test_an_archive_does_not_restore_what_was_over_when_it_was_written(memory: Memory, twin: Memory) -> None:
    note = memory.add("The ticket is in the car.", decay_class="session")
    memory.add(TEXT, decay_class="permanent")
    lines = memory.archive(3)
    assert twin.import_records(lines, at=3) == ["added"] * 2
    assert twin.import_records(lines, at=3) == ["unchanged"] * 2
    twin.decay(3)
    assert twin.import_records(lines, at=3) == ["unchanged"] * 2
    assert twin.row(note)["forgotten_reason"] is not None


def test_an_archive_restores_neither_facts_forgotten_on_request_nor_superseded_ones(
    memory: Memory, cities: tuple[UUID, UUID]
) -> None:
    asked = memory.add(TEXT, at=3)
    lines = memory.archive(4)
    for line in lines:
        line |= {"superseded_at": None, "superseded_by": None}
    memory.forget(asked, at=5)
    done = dict(zip([line.get("id") for line in lines], memory.import_records(lines, at=6), strict=True))
    assert (done[str(asked)], done[str(cities[0])]) == ("forgotten", "unchanged")
    assert asked not in memory.ids("spare key", at=6)


def test_facts_restored_by_archives_are_never_pinned_for_that(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    lines = memory.archive(0)
    for at in (3, 6, 9):
        memory.decay(at)
        assert memory.import_records(lines, at=at + 1) == ["restored"]
    assert (memory.row(id_)["pinned_until"], memory.stats(10).pinned) == (None, 0)


def test_an_archive_does_not_restore_a_duplicate_of_a_live_fact(memory: Memory) -> None:
    memory.add(TEXT, decay_class="session")
    lines = memory.archive(0)
    memory.decay(3)
    memory.add(TEXT, at=4)
    assert memory.import_records(lines, at=5) == ["duplicate"]


# Purge ----------------------------------------------------------------------------------------------------------


def test_a_tombstone_with_a_date_long_past_is_kept_for_its_retention(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    forget_for(memory, "asked", id_, at=1)
    assert memory.having(time_travel=False).purge(at=100) == 0
    memory.rows("update facts set tombstone_at = forgotten_at")
    assert memory.having(time_travel=False).purge(at=100) == 1


LONG_RESTORE = """
from celery.exceptions import Ignore
from workers.memory import restore
from workers.tasks import retention

restore.AT_ONCE, retention.SHORT_SECONDS = 1, 0
try:
    retention.restore.run(namespace="default", reason="asked")
except Ignore:
    pass
"""


def test_the_rest_of_a_long_restore_is_left_to_children_that_do_not_recall(memory: Memory) -> None:
    memory.forget(memory.add("Tea at four."), memory.add("Tea at five."), at=0)
    urls = {
        "EBB_DATABASE_URL": memory.context.settings.database_url, "EBB_REDIS_URL": memory.context.settings.redis_url
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", LONG_RESTORE], env=os.environ | urls, check=True)
    with Redis.from_url(urls["EBB_REDIS_URL"]) as broker:
        keys = {queue: lists_of(queue) for queue in (STORE, MAINTENANCE)}
        sent = {queue: [one for key in of for one in broker.lrange(key, 0, -1)] for queue, of in keys.items()}
        broker.delete(*chain.from_iterable(keys.values()))
    waiting = {queue: [json.loads(one)["headers"]["task"] for one in messages] for queue, messages in sent.items()}
    assert waiting == {STORE: ["memory.regenerate"], MAINTENANCE: ["memory.restore"]}
    assert memory.value("select count(*) from facts where forgotten_at is not null") == 1


KILLED_RESTORE = """
import json
from uuid import uuid4
from workers.memory import restore
from workers.tasks import retention

def kill(_, faded):
    if not killed:
        killed.append(True)
        raise SystemExit
    sent.extend(map(str, faded))

killed, sent = [], []
restore.AT_ONCE, restored = 2, {"kwargs": {"reason": "asked"}, "task_id": str(uuid4())}
retention.regenerate_soon = kill
try:
    retention.restore.apply(**restored)
except SystemExit:
    pass
print(json.dumps({"answer": retention.restore.apply(**restored).result, "sent": sent}))
"""


def test_a_restore_of_many_counts_and_regenerates_what_its_killed_delivery_restored(memory: Memory) -> None:
    ids = [memory.add(f"Tea at {hour}.") for hour in ("four", "five", "six")]
    memory.forget(*ids, at=0)
    urls = {
        "EBB_DATABASE_URL": memory.context.settings.database_url, "EBB_REDIS_URL": memory.context.settings.redis_url
    }  # fmt: skip
    program = [sys.executable, "-c", KILLED_RESTORE]
    done = json.loads(subprocess.run(program, env=os.environ | urls, check=True, stdout=subprocess.PIPE).stdout)
    assert done["answer"]["restored"] == 3
    assert sorted(done["sent"]) == sorted(map(str, ids))


TWO_SUCCESSORS = """
import json
from uuid import uuid4
from workers.coordination import signals
from workers.memory import restore
from workers.tasks import retention
from workers.tasks.task import context

sent, task = [], str(uuid4())
restore.AT_ONCE, retention.SHORT_SECONDS, retention.WORK_SECONDS = 1, 0, 0
retention.restore.apply_async = lambda kwargs, **_: sent.append(kwargs)
for _ in range(2):
    retention.restore.apply(kwargs={"reason": "asked"}, task_id=task)
    signals.drop_done(context.redis, task)
first, second = sent
retention.restore.apply(kwargs=first, task_id=str(uuid4()))
retention.WORK_SECONDS = 1_000
print(json.dumps(retention.restore.apply(kwargs=second, task_id=str(uuid4())).result))
"""


def test_a_restore_of_many_counts_what_another_successor_of_the_same_request_restored(memory: Memory) -> None:
    memory.forget(*[memory.add(f"Tea at {hour}.") for hour in ("four", "five", "six", "seven")], at=0)
    urls = {
        "EBB_DATABASE_URL": memory.context.settings.database_url, "EBB_REDIS_URL": memory.context.settings.redis_url
    }  # fmt: skip
    program = [sys.executable, "-c", TWO_SUCCESSORS]
    done = json.loads(subprocess.run(program, env=os.environ | urls, check=True, stdout=subprocess.PIPE).stdout)
    assert done["restored"] == 4
