"""Branches: copies of a namespace with shifted instants are made, aged and removed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.facts import Edit
from ebb.contract.graph import Unlink, Unrelate
from ebb.contract.reports import ListFacts
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import LOCK_WAITS, ON_CITUS, Memory, day, wait_for
from psycopg.errors import LockNotAvailable, SerializationFailure

from workers import graph
from workers.admin import branches as branching
from workers.admin import keys, search_indexes, stats
from workers.coordination import contexts, key_ring, signals
from workers.core import decay_intervals
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.memory import edit, facts, touch
from workers.storage import branches, deep, events, packing
from workers.storage.branches import Branch
from workers.storage.connection import Connection, connect, transaction

YEAR = timedelta(days=365)
BRANCH = "default-older-365d"
YOUNG = "default-older-10d"
TENANT_TABLES = """
    select relname from pg_class join pg_attribute on attrelid = pg_class.oid
    where relkind = 'r' and attname = 'namespace' and relnamespace = quote_ident(current_schema())::regnamespace
"""

COPIED = (
    "facts", *branches.OF_FACTS, *branches.BETWEEN_FACTS, "relations", "documents", "lexemes", "forgotten_hashes",
)  # fmt: skip


def filled(memory: Memory) -> list[UUID]:
    """Store facts with rows in every table that a branch copies; return their ids."""
    ids = [
        memory.add("Mira lives in Halle.", entity="Mira", key="home", value="Halle", source_date=day(-3).isoformat()),
        memory.add("Mira lives in Leipzig.", entity="Mira", key="home", value="Leipzig", at=1),
        memory.add("It rains.", decay_class="session", at=2),
        memory.add("Tea is at four.", decay_class="stable", session="chat", turn=1),
        memory.add("The spare key hangs behind the clock.", decay_class="permanent"),
        memory.add("The code is 4711."),
    ]
    memory.store({"text": "Tea is at four.", "session": "another", "turn": 2}, at=2.5)
    memory.touch(ids[0], at=3)
    memory.touch(ids[0], at=5)
    memory.pin(ids[3], at=5)
    memory.pin(ids[1], at=5, until=50)
    memory.forget(ids[5], at=5)
    memory.choose({"hygiene.confidenceDecay.halfLife": 60}, at=5)
    memory.link(ids[0], ids[3], strength=0.5, at=5)
    memory.relate("Mira", "Leipzig", "lives_in", at=5, weight=0.5)
    memory.rows("insert into merged_texts values (1, '\\x01', %s)", ids[3])
    memory.decay(6)
    search_indexes.count_lexemes(memory.context, "default", day(6))
    return ids


def made(
    memory: Memory, days: int = 365, *, steps: int = 10_000, meanwhile: Callable[[], Any] = lambda: None
) -> Branch:
    """Make a branch as its task does, or stop after some steps; `meanwhile` is called when all facts are copied."""
    branch = branching.begin(memory.context, "default", days)
    for pairs in (False, True):
        place: UUID | None = branching.START
        while place is not None:
            if not steps:
                return branch
            steps -= 1
            place = branching.copy(memory.context, branch, place, pairs=pairs)
        meanwhile()
    branching.conclude(memory.context, branch, day(7))
    return branch


def dropped(memory: Memory, name: str) -> None:
    for one in branching.to_drop(memory.context, name, None):
        while branching.drop_facts(memory.context, one):
            pass
        branching.drop(memory.context, one)


def rows(memory: Memory, table: str, namespace: str) -> list[dict[str, Any]]:
    """Return the rows of a namespace in a table, without generated columns."""
    found = memory.rows(
        f"select to_jsonb(t) - 'namespace' - 'search' from {table} t join namespaces n on n.id = t.namespace"
        f" where n.name = %s",
        namespace,
    )
    own = {"events": ["id"], "links": ["id"], "relations": ["id"]}.get(table, [])
    return sorted(({k: v for k, v in row.items() if k not in own} for (row,) in found), key=str)


def aged(memory: Memory, table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as expected in a branch a year older."""
    dated = {
        name
        for (name,) in memory.rows(
            "select attname::text from pg_attribute"
            " where attrelid = %s::regclass and atttypid = 'timestamptz'::regtype",
            table,
        )
    }
    older: dict[str, Any] = {}
    for name, value in row.items():
        older[name] = value
        if name in dated and value is not None:
            older[name] = memory.value("select to_jsonb(%s::timestamptz - interval '365 days')", value)
        if name == "spells" and value is not None:
            packed = decay_intervals.older(bytes.fromhex(value.removeprefix("\\x")), YEAR.total_seconds())
            older[name] = "\\x" + packed.hex()
        if name == "asked":
            older[name] = None
        if name == "details" and (until := value.get("until")):
            older[name] = value | {"until": (datetime.fromisoformat(until) - YEAR).isoformat()}
    return older


def test_every_row_is_copied_with_every_instant_a_year_older(memory: Memory) -> None:
    filled(memory)
    memory.relate("Anselm", "Gera", "lives_in", namespace="other")
    before, archive = {table: rows(memory, table, "default") for table in COPIED}, memory.archive(7)
    assert [table for table, found in before.items() if not found] == ["likenesses", "documents"]
    made(memory)
    for table, found in before.items():
        expected = sorted((aged(memory, table, row) for row in found), key=str)
        assert rows(memory, table, BRANCH) == expected, table
        assert rows(memory, table, "default") == found, table
    assert memory.stats(6, BRANCH).facts == memory.stats(6).facts
    assert memory.archive(7) == archive


def test_instants_in_the_history_are_older_too(memory: Memory) -> None:
    ends = day(300)
    old = memory.add("Mira lives in Halle.", valid_until=day(400).isoformat())
    edit.edit(memory.context, Edit(id=old, valid_until=ends), day(1))
    memory.store({"text": "Mira lives in Leipzig.", "supersedes": str(old)}, at=2)
    made(memory)
    (edited,) = memory.rows(
        "select details from events join namespaces on namespaces.id = namespace where what = 'edited' and name = %s",
        BRANCH,
    )
    assert edited[0] == {
        "was": {"valid_until": (day(400) - YEAR).isoformat()},
        "is": {"valid_until": (ends - YEAR).isoformat()},
    }
    memory.restore(old, at=8, namespace=BRANCH)
    found = facts.page(memory.context, ListFacts(ids=[old], namespace=BRANCH), day(-100))[0]
    assert [one["valid_until"] for one in found] == [ends - YEAR]


@pytest.mark.parametrize("details", [{"until": "soon"}, {"until": 5}, {"was": "x", "is": {"valid_from": "0001-01-03"}}])
def test_an_imported_entry_of_the_history_may_say_anything(memory: Memory, details: dict[str, Any]) -> None:
    memory.add("Tea is at four.")
    with transaction(memory.context.database_url) as db:
        tenant, id_ = db.execute("select namespace, id from facts").fetchone() or (0, UUID(int=0))
        events.add_many(db, tenant, day(1), [(id_, "edited", details)])
    made(memory)
    assert [row["details"] for row in rows(memory, "events", BRANCH)] == [details]


def test_of_each_table_it_is_settled_whether_a_branch_copies_it(memory: Memory) -> None:
    known = {"facts", *branches.OF_FACTS, *branches.BETWEEN_FACTS, *branches.OF_NAMESPACES}
    known |= {*branches.DROPPED, *branches.LEFT}
    assert {name for (name,) in memory.rows(TENANT_TABLES)} == known


def test_a_pass_at_the_real_time_ages_the_branch_and_leaves_the_original_alone(memory: Memory) -> None:
    filled(memory)
    memory.relate("Anselm", "Gera", "lives_in", namespace="other")
    before = {table: rows(memory, table, "default") for table in COPIED}
    made(memory)
    assert memory.decay(7, namespace=BRANCH).counters.forgotten > 0
    there, here = memory.stats(7, BRANCH), memory.stats(7)
    assert there.tiers["hot"] + there.tiers["warm"] < here.tiers["hot"] + here.tiers["warm"]
    assert there.forgotten > here.forgotten
    assert there.branch_of == "default"
    assert {table: rows(memory, table, "default") for table in COPIED} == before
    assert memory.examine(7) == {}


def test_what_a_pass_does_to_a_branch_is_what_a_pass_a_year_later_does_to_the_original(memory: Memory) -> None:
    filled(memory)
    memory.rows("update namespaces set settings_changed_at = null")  # else the pass visits every fact
    made(memory)
    aged_now = memory.decay(7, namespace=BRANCH).counters
    later = memory.decay(7 + 365, namespace="default", dry_run=True).counters
    assert (aged_now.processed, aged_now.changed, aged_now.forgotten) == (
        later.processed,
        later.changed,
        later.forgotten,
    )


def test_settings_that_no_pass_has_applied_yet_are_applied_to_the_branch(memory: Memory) -> None:
    memory.add("The guest in room 3 likes tea.")
    memory.decay(100)
    memory.choose({"hygiene.confidenceDecay.halfLife": 31}, at=100)
    branch = made(memory, 30)
    assert memory.decay(100.01, namespace=branch.name).counters.culled == 1


def test_a_question_strengthens_a_fact_of_the_branch_though_it_was_just_asked_of_the_original(memory: Memory) -> None:
    shown = touch.Shown([memory.add("The guest in room 3 likes tea.")], day(7), question=1)
    assert touch.touch(memory.context, "default", [shown]).changed == shown.ids
    made(memory)
    assert touch.touch(memory.context, BRANCH, [shown]).changed == shown.ids


@pytest.mark.parametrize("steps", range(4))
def test_a_branch_whose_making_died_is_completed_by_the_next_one(memory: Memory, steps: int) -> None:
    filled(memory)
    assert not made(memory, steps=steps).complete
    memory.decay(7, namespace=BRANCH)
    made(memory)
    assert branching.listed(memory.context, "default")[0].complete
    assert len(rows(memory, "facts", BRANCH)) == len(rows(memory, "facts", "default"))
    assert memory.examine(7) == {}


def test_one_task_at_a_time_copies_a_branch_and_none_once_it_is_complete(memory: Memory) -> None:
    filled(memory)
    branch = made(memory, steps=0)
    with transaction(memory.context.database_url) as other:
        assert branches.hold(other, branch)
        with pytest.raises(LockNotAvailable):
            branching.copy(memory.context, branch, branching.START)
    made(memory)
    for work in (partial(branching.copy, after=branching.START), partial(branching.conclude, now=day(8))):
        with pytest.raises(branching.StoppedError, match="was completed or dropped"):
            work(memory.context, branch)


def test_nothing_is_copied_into_a_branch_that_is_being_dropped(memory: Memory) -> None:
    filled(memory)
    branch = made(memory, steps=1)
    branching.drop_facts(memory.context, branch)
    assert not branching.listed(memory.context, "default")[0].complete
    with pytest.raises(branching.StoppedError, match="was completed or dropped"):
        branching.copy(memory.context, branch, branching.START)
    with pytest.raises(UnavailableError, match="is being dropped"):
        branching.begin(memory.context, "default", 365)
    dropped(memory, BRANCH)
    with pytest.raises(NotFoundError, match="was dropped while it was made"):
        branching.begin(memory.context, "default", 365, is_new=False)
    made(memory)
    assert len(rows(memory, "facts", BRANCH)) == len(rows(memory, "facts", "default"))


def test_a_branch_in_many_steps_is_the_same(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(memory)
    made(memory)
    whole = {table: rows(memory, table, BRANCH) for table in COPIED}
    dropped(memory, BRANCH)
    monkeypatch.setattr(branching, "BATCH", 1)
    made(memory)
    assert {table: rows(memory, table, BRANCH) for table in COPIED} == whole


def test_a_fact_that_becomes_deep_while_a_branch_is_made_is_in_it_once(memory: Memory) -> None:
    id_ = memory.add("It rains.", decay_class="session")
    memory.decay(2)
    made(memory, meanwhile=lambda: memory.demote(at=4, namespace="default"))
    assert memory.value("select count(*) from deep") == 1  # that of the original
    assert [row["id"] for row in rows(memory, "facts", BRANCH)] == [str(id_)]
    (outcome,) = memory.restore(id_, at=5, namespace=BRANCH)
    assert outcome.action == "restored"  # type: ignore[union-attr]


def test_a_fact_of_a_branch_that_became_deep_before_its_making_goes_on_is_in_it_once(memory: Memory) -> None:
    memory.add("It rains.", decay_class="session")
    memory.decay(2)
    made(memory, steps=1)
    assert memory.demote(at=2.5, namespace=BRANCH) == 1
    made(memory)
    assert rows(memory, "facts", BRANCH) == []
    assert memory.value("select count(*) from deep") == 1


def test_a_fact_that_was_deep_comes_back_with_every_instant_a_year_older(memory: Memory) -> None:
    id_ = memory.add("It rains.", decay_class="session", valid_until=day(400).isoformat())
    edit.edit(memory.context, Edit(id=id_, valid_until=day(300)), day(0.1))
    memory.touch(id_, at=0.2)
    memory.pin(id_, at=0.3, until=1)
    memory.decay(5)
    before = {table: rows(memory, table, "default") for table in ("activity", "events")}
    assert memory.demote(at=7) == 1
    made(memory)
    with transaction(memory.context.database_url) as db:
        (number,) = db.execute("select id from namespaces where name = %s", [BRANCH]).fetchone() or (0,)
        assert deep.promote(db, number, [id_]) == [id_]
    assert all(row["spells"] for row in before["activity"])
    kept = [{name: row[name] for name in ("spells", "last_seen_at")} for row in rows(memory, "activity", BRANCH)]
    assert kept == [{name: aged(memory, "activity", before["activity"][0])[name] for name in kept[0]}]
    older = [aged(memory, "events", row) for row in before["events"]]
    for one in older:
        for state in ("was", "is"):
            if value := one["details"].get(state, {}).get("valid_until"):
                one["details"][state]["valid_until"] = (datetime.fromisoformat(value) - YEAR).isoformat()
    assert rows(memory, "events", BRANCH) == sorted(older, key=str)


@pytest.mark.parametrize("days", [0, 365])
def test_facts_in_deep_memory_are_unpacked_for_a_branch_only_if_an_instant_is_to_be_shifted(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    id_ = memory.add("It rains.", decay_class="session")
    memory.decay(5)
    assert memory.demote(at=7) == 1
    with monkeypatch.context() as patch:
        patch.delattr(packing, "unpack")
        branch = made(memory, days)
    with transaction(memory.context.database_url) as db:
        assert deep.promote(db, branch.id, [id_]) == [id_]


def test_a_fact_of_the_first_year_sinks_in_a_branch_and_is_shown_there(memory: Memory) -> None:
    memory.add("It rains.", decay_class="session")
    (line,) = (one for one in memory.archive() if "text" in one)
    first = {"created_at": day(-739_240).isoformat(), "forgotten_at": day(-739_239).isoformat()}
    state = line["state"] | {"last_seen_at": first["created_at"], "last_confirmed_at": first["created_at"]}
    line |= first | {"text": "It snows.", "id": str(uuid4()), "forgotten_reason": "faded", "events": [], "state": state}
    assert memory.import_records([line]) == ["kept"]
    made(memory)
    assert memory.value("select count(*) from facts where created_at < '0001-01-01'") == 1
    assert memory.demote(at=7) == 2
    made(memory, 10)
    for branch in (BRANCH, YOUNG):
        assert memory.forgotten(namespace=branch) == [UUID(line["id"])]
        (shown,) = (one for one in memory.archive(namespace=branch) if one.get("text") == "It snows.")
        assert shown["created_at"] == "0001-01-02T00:00:00+00:00"


def test_what_is_copied_or_dropped_at_once_may_take_as_long_as_it_has_rows(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("It rains.")
    limits: list[str | None] = []

    def note(db: Connection, *_: Any) -> None:
        limits.extend(
            setting
            for name in ("statement_timeout", "transaction_timeout")
            for (setting,) in db.execute("select current_setting(%s, true)", [name])
        )

    monkeypatch.setattr(deep, "age", note)
    monkeypatch.setattr(branches, "drop", note)
    branching.drop(memory.context, made(memory))
    assert {*limits} <= {"0", None}
    assert len(limits) == 4


def test_a_fact_that_leaves_deep_memory_while_a_branch_is_made_is_in_it_with_its_links(memory: Memory) -> None:
    id_ = memory.add("It rains.", decay_class="session")
    others = [memory.add("Tea is at four."), memory.add("The code is 4711.")]
    memory.link(id_, others[0])
    memory.link(others[1], id_)
    memory.decay(2)
    assert memory.demote(at=4) == 1
    made(memory, meanwhile=lambda: memory.restore(id_, at=5))
    assert len(rows(memory, "facts", BRANCH)) == len(rows(memory, "activity", BRANCH)) == 3
    assert len(rows(memory, "links", BRANCH)) == 2
    assert memory.examine(7) == {}


@pytest.mark.skipif(ON_CITUS, reason="Citus cannot rebuild the words of facts")
def test_a_branch_that_is_made_while_the_language_changes_has_the_words_of_the_new_one(memory: Memory) -> None:
    memory.add("Beide haben rote Dächer.", decay_class="session")
    memory.decay(2)
    memory.add("Tea is at four.", at=3)
    assert memory.demote(at=9) == 1
    german, branch = memory.having(language="german"), branching.begin(memory.context, "default", 7)
    with ThreadPoolExecutor(2) as pool:
        with connect(memory.context.database_url) as db:
            db.execute("select from facts for update")
            rebuilt = pool.submit(search_indexes.reindex, german.context, day(9))
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            concluded = pool.submit(branching.conclude, memory.context, branch, day(9))
            wait_for(lambda: concluded.done() or memory.value(LOCK_WAITS) > 1)
        rebuilt.result()
        with pytest.raises(SerializationFailure):
            concluded.result()
    branching.conclude(memory.context, branch, day(9))
    assert memory.rows("select count(*), count(distinct words) from deep") == [(2, 1)]


def test_of_a_dropped_branch_nothing_is_left(memory: Memory) -> None:
    filled(memory)
    tables = [name for (name,) in memory.rows(TENANT_TABLES) if name not in branches.LEFT]
    before = {table: memory.value(f"select count(*) from {table}") for table in [*tables, "namespaces"]}
    made(memory)
    memory.decay(7, namespace=BRANCH)
    memory.decay(7, namespace=BRANCH, force=True)
    dropped(memory, "default")
    counted = {table: memory.value(f"select count(*) from {table}") for table in before}
    assert counted | {"tally_changes": 0} == before | {"tally_changes": 0}
    assert branching.listed(memory.context, None) == []
    assert memory.examine(7) == {}


IN_PARTS = """
import json
from uuid import uuid4
from workers.tasks import admin

admin.WORK_SECONDS, parts = 0, [{"namespace": "default"}]
admin.drop_branch.apply_async = lambda kwargs, **_: parts.append(kwargs)
for part in parts:
    done = admin.drop_branch.apply(kwargs=part, task_id=str(uuid4())).result
print(json.dumps([one.get("dropped", []) for one in parts]), json.dumps(done), sep="\\n")
"""


def test_of_many_branches_each_may_be_dropped_by_a_task_of_its_own(memory: Memory) -> None:
    memory.forget(memory.add("Tea is at four."), at=1, purge=True)
    names = [made(memory, days).name for days in (7, 30, 365)]
    urls = {
        "EBB_DATABASE_URL": memory.context.settings.database_url, "EBB_REDIS_URL": memory.context.settings.redis_url
    }  # fmt: skip
    program = [sys.executable, "-c", IN_PARTS]
    said = subprocess.run(program, env=os.environ | urls, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    parts, done = map(json.loads, said)
    assert [len(gone) for gone in parts] == [0, 1, 2, 3]
    assert sorted(done["dropped"]) == sorted(names)


def test_the_keys_of_a_dropped_branch_are_revoked_and_still_close_the_system(memory: Memory) -> None:
    filled(memory)
    made(memory)
    redis, key = memory.context.redis, keys.create(memory.context, BRANCH, ["read"], None, day(7)).key
    dropped(memory, "default")

    found = key_ring.look_up(redis, key_ring.digest(key).hex())
    assert (found.any_key, found.grant) == (True, None)
    assert [one.revoked_at is not None for one in keys.of_namespace(memory.context, "default")] == [True]


def test_a_branch_of_the_same_name_as_a_dropped_one_has_no_contexts_or_regrets_of_it(memory: Memory) -> None:
    filled(memory)
    made(memory)
    given = contexts.ShownContext(1.0, "memory.recall", "Where does Mira live?", [])
    contexts.note(memory.context.redis, BRANCH, given, 1)
    before = sum(signals.counted(memory.context.redis, signals.REGRETS).values())
    signals.count(memory.context.redis, signals.REGRETS, BRANCH)

    dropped(memory, "default")
    made(memory)

    assert contexts.latest(memory.context.redis, BRANCH, 0) == []
    assert memory.stats(7, BRANCH).regretted == 0
    assert sum(signals.counted(memory.context.redis, signals.REGRETS).values()) == before + 1


Operation = Callable[[Memory, str, list[UUID]], object]

OPERATIONS: dict[str, Operation] = {
    "touch": lambda memory, name, ids: memory.touch(*ids, at=8, namespace=name),
    "say again": lambda memory, name, _: memory.store(
        "Mira lives in Leipzig.", "Tea is at four.", namespace=name, at=8
    ),
    "edit": lambda memory, name, ids: edit.edit(memory.context, Edit(id=ids[3], tags=["tea"], namespace=name), day(8)),
    "supersede": lambda memory, name, ids: memory.store(
        {"text": "Mira lives in Gera.", "supersedes": str(ids[1])}, namespace=name, at=8
    ),
    "pin": lambda memory, name, ids: memory.pin(ids[0], at=8, namespace=name),
    "unpin": lambda memory, name, ids: memory.unpin(ids[3], at=8, namespace=name),
    "link": lambda memory, name, ids: memory.link(ids[3], ids[4], at=8, namespace=name),
    "unlink": lambda memory, name, ids: graph.unlink(
        memory.context, Unlink(source=ids[0], target=ids[3], namespace=name)
    ),
    "relate": lambda memory, name, _: memory.relate("Mira", "Gera", "lives_in", at=8, namespace=name),
    "unrelate": lambda memory, name, _: graph.unrelate(
        memory.context, Unrelate(source="Mira", target="Leipzig", type="lives_in", namespace=name)
    ),
    "forget": lambda memory, name, ids: memory.forget(ids[3], ids[4], at=8, namespace=name),
    "restore": lambda memory, name, ids: memory.restore(*ids[3:], at=8, namespace=name),
    "settings": lambda memory, name, _: memory.choose({"hygiene.confidenceDecay.halfLife": 30}, at=8, namespace=name),
    "count words": lambda memory, name, _: search_indexes.count_lexemes(memory.context, name, day(8)),
    "mend": lambda memory, name, _: memory.examine(8, namespace=name, mend=True),
    "pass": lambda memory, name, _: memory.decay(900, namespace=name, force=True),
    "restore again": lambda memory, name, _: memory.restore_selected(at=901, namespace=name),
    "regenerate": lambda memory, name, ids: memory.regenerate(*ids, at=901, namespace=name),
    "backfill": lambda memory, name, _: memory.backfill(901, namespace=name),
    "forget for good": lambda memory, name, ids: memory.forget(ids[0], at=901, namespace=name, purge=True),
    "forget all": lambda memory, name, _: memory.decay(4000, namespace=name, force=True),
    "purge": lambda memory, name, _: memory.purge(at=9000, namespace=name),
}
"""What changes facts of a namespace, each given its name and the ids of `filled`."""


@pytest.mark.parametrize(("changed", "other"), [(YOUNG, "default"), ("default", YOUNG)])
def test_nothing_that_is_done_in_one_namespace_reaches_the_facts_of_another_with_the_same_ids(
    memory: Memory, changed: str, other: str
) -> None:
    ids = filled(memory)
    made(memory, 10)
    before, without_effect = content(memory, other), set()
    own = content(memory, changed)
    for name, operation in OPERATIONS.items():
        last = own
        operation(memory, changed, ids)
        assert content(memory, other) == before, name
        own = content(memory, changed)
        without_effect |= {name} if own == last else set()
    assert without_effect == {"mend", "regenerate"}


def test_held_facts_are_held_in_the_branch_since_that_much_earlier(memory: Memory) -> None:
    memory.store(*({"text": f"Guest number {number} likes tea."} for number in range(10)), classify=True)
    memory.decay(68)
    before = memory.rows("select held_since from namespaces")
    made(memory, 10)
    stats.settle_tallies(memory.context, day(69))
    (original,), (branch,) = memory.rows("select held_since from namespaces order by id")
    assert ([(original,)], original - branch) == (before, timedelta(days=10))


def test_what_is_left_of_a_lost_fact_is_deleted_in_its_own_namespace_alone(memory: Memory) -> None:
    ids = filled(memory)
    made(memory, 10)
    with transaction(memory.context.database_url) as db:
        db.execute("set local session_replication_role = replica")
        db.execute("delete from facts where namespace = 1 and id = any(%s)", [ids[:4]])
    before = content(memory, YOUNG)
    assert memory.examine(7, namespace="default", mend=True)["left over"] == 4
    assert content(memory, YOUNG) == before


def content(memory: Memory, namespace: str) -> dict[str, Any]:
    """Return all rows of a namespace, and what its readers see; counts are added up later, by any reader."""
    counted = ("tallies", "tally_changes", "tally_history", "erasures")
    found: dict[str, Any] = {
        table: rows(memory, table, namespace) for (table,) in memory.rows(TENANT_TABLES) if table not in counted
    }
    found["namespace"] = memory.rows("select turns, settings, held_since from namespaces where name = %s", namespace)
    found["stats"] = memory.stats(7, namespace)
    found["read"] = [one.text for one in memory.ask("Where does Mira live?", at=7, namespace=namespace).results]
    found["listed"] = memory.listed(at=7, namespace=namespace)
    return found


def test_what_is_no_branch_is_neither_made_nor_dropped(memory: Memory) -> None:
    memory.add("Tea is at four.")
    memory.add("Tea is at five.", namespace=BRANCH)
    with pytest.raises(InvalidInputError, match="is a namespace of its own and no branch"):
        made(memory)
    with pytest.raises(NotFoundError, match="there is no 'unknown'"):
        branching.begin(memory.context, "unknown", 1)
    with pytest.raises(InvalidInputError, match="would have 131 characters"):
        branching.begin(memory.context, "n" * 120, 365)
    made(memory, 30)
    with pytest.raises(InvalidInputError, match="is a branch itself; branch 'default'"):
        branching.begin(memory.context, "default-older-30d", 365)
    assert branching.to_drop(memory.context, BRANCH, None) == []
    dropped(memory, BRANCH)
    assert len(rows(memory, "facts", BRANCH)) == 1


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=16), st.floats(0, 4e9))
@examples(100)
def test_older_intervals_are_shifted_by_that_much(begun: list[tuple[int, int]], seconds: float) -> None:
    packed = b"".join(decay_intervals.PACKED.pack(*one, 7, 3) for one in begun)
    older = decay_intervals.PACKED.iter_unpack(decay_intervals.older(packed, seconds))
    for before, after in zip(decay_intervals.PACKED.iter_unpack(packed), older, strict=True):
        assert after[0] == max(before[0] - int(seconds), 0)
        assert after[1] == (before[1] if before[1] == decay_intervals.NEVER else max(before[1] - int(seconds), 0))
        assert after[2:] == before[2:]
