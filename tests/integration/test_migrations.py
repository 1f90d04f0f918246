"""Migrations keep every fact of a database of an earlier release, also after interruptions."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from databases import new_database
from ebb.contract.documents import NewItem
from ebb.contract.recall import Lookup
from memory import DAY_0, ON_CITUS, Memory, day, wait_for

from api.up import servers
from workers.admin import search_indexes
from workers.decay.consolidate import compare
from workers.documents import items
from workers.errors import SchemaError, UnavailableError
from workers.memory import estimate, recall
from workers.memory.embed import check_embedder
from workers.storage import migrations, schema
from workers.storage.connection import close_pools, connect
from workers.storage.migrations import Migration

RELEASES = Path(__file__).parent / "releases"
LAST_DAY = 60
"""The day of the last pass in the first release's database."""

FIRST_ON_CITUS = 24
"""The schema of this number was the first that could be distributed."""

OF_46 = "function stays(one activity, next outlook, instant timestamp with time zone)"
"""What only workers of schema 46 and older look for when they start."""

SLEEPING = "select pg_sleep(600)%"
SESSIONS = "select count(*) from pg_stat_activity where datname = current_database() and query like %s"


@pytest.fixture
def old_url(postgres: servers.Postgres) -> Iterator[str]:
    """Return the URL of a database restored from a dump of the first release."""
    with new_database(postgres) as url:
        psql = [str(servers.postgres_programs() / "psql"), "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", url]
        subprocess.run([*psql, "-f", str(RELEASES / "0001.sql")], check=True, capture_output=True)
        yield url
        close_pools()


@pytest.fixture
def old(memory: Memory, old_url: str) -> Memory:
    """Return a memory on the migrated database of the first release."""
    schema.apply(old_url)
    moved = memory.having(database_url=old_url)
    check_embedder(moved.context)
    return moved


def lines(namespace: str) -> list[dict[str, Any]]:
    """Return the first release's export of the same database."""
    archive = (RELEASES / f"0001-{namespace}.jsonl").read_text(encoding="utf-8")
    return [line for line in map(json.loads, archive.splitlines()) if "archive" not in line]


AS_SHOWN = {"decay_summary", "due_at", "retention", "salience", "tier"}
"""Differences by the current rules: permanent facts cooled in the first release."""


def facts(namespace: str) -> list[dict[str, Any]]:
    return [line for line in lines(namespace) if "text" in line]


def numbered(*sql: str, mode: Any = "transaction") -> tuple[Migration, ...]:
    """Return migrations after the newest one."""
    after = schema.version() + 1
    return tuple(Migration(after + i, f"of_a_test_{i}", one, mode) for i, one in enumerate(sql))


def migrate(url: str, *sql: str, mode: Any = "transaction") -> list[str]:
    """Run migrations after the newest one; return the reports."""
    said: list[str] = []
    with migrations.exclusive(url, said.append) as db:
        migrations.run(url, db, numbered(*sql, mode=mode), said.append)
    return said


def of_name(name: str) -> str:
    """Return the statements of the migration with this name."""
    return next(one.sql for one in migrations.known() if one.name == name)


def test_migrated_the_first_release_has_the_catalogue_of_a_fresh_database(old: Memory) -> None:
    with connect(old.context.database_url) as db:
        live = schema.live_catalogue(db)
    live["objects"].pop(OF_46, None)
    assert live == schema.expected_catalogue()


@pytest.mark.skipif(ON_CITUS, reason="migration 47 removes functions there, as Citus replaces none of them")
def test_a_migration_keeps_what_workers_of_the_version_before_look_for_when_they_start(old_url: str) -> None:
    removed: dict[int, set[str]] = {}
    with migrations.exclusive(old_url, print) as db:
        before = schema.live_catalogue(db)["objects"].keys()
        for count, one in enumerate(migrations.known(), start=1):
            migrations.run(old_url, db, migrations.known()[:count], print)
            after = schema.live_catalogue(db)["objects"].keys()
            if before - after:
                removed[one.number] = before - after
            before = after
    assert removed == {12: {"function forget_horizon(tenant integer, instant timestamp with time zone)"}}


def as_computed(value: Any) -> Any:
    """Return what equals a value on every processor: the last bit of a power depends on its instructions."""
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


@pytest.mark.parametrize("namespace", ["default", "mira"])
def test_every_fact_of_the_first_release_is_there_after_the_migration(old: Memory, namespace: str) -> None:
    exported = {line["id"]: line for line in old.archive(LAST_DAY, namespace) if "text" in line}
    wanted = {line["id"]: line for line in facts(namespace)}
    assert set(exported) == set(wanted)
    for id_, fact in wanted.items():
        found = exported[id_]
        fact["state"]["compared"] &= found["state"]["compared"]  # facts with near-duplicates are compared again
        computed = AS_SHOWN if fact["decay_class"] == "permanent" else AS_SHOWN & {"decay_summary"}
        if fact["forgotten_at"]:  # the first release showed the confidence of one that had expired without soft decay
            computed = computed | {"effective_confidence"}
        assert {name: found[name] for name in fact.keys() - computed if name in found} == {
            name: as_computed(value) for name, value in fact.items() if name not in computed
        }
    assert old.examine(LAST_DAY, namespace=namespace) == {}


@pytest.mark.parametrize("namespace", ["default", "mira"])
def test_live_facts_of_the_first_release_are_found_by_their_words(old: Memory, namespace: str) -> None:
    live = [fact for fact in facts(namespace) if fact["forgotten_at"] is None and fact["superseded_at"] is None]
    assert len(live) > 10
    for fact in live:
        if fact["kind"] != "item":
            assert fact["id"] in map(str, old.ids(fact["text"], at=LAST_DAY, namespace=namespace, limit=20))


def test_a_fact_of_the_first_release_is_found_under_the_session_in_which_it_is_said_again(old: Memory) -> None:
    known = old.listed(at=LAST_DAY, limit=1)[0]
    same = {name: known[name] for name in ("text", "kind", "entity", "key", "value", "source")}
    (stored,) = old.store(same | {"session": "later"}, at=LAST_DAY)
    assert getattr(stored, "action", None) == "duplicate"
    assert [one["id"] for one in old.listed(at=LAST_DAY, session="later")] == [known["id"]]


def test_an_export_of_the_first_release_is_imported(memory: Memory) -> None:
    done = memory.import_records(lines("default"), at=LAST_DAY)
    assert set(done[: len(facts("default"))]) <= {"added", "kept"}
    brought = {line["id"]: line["text"] for line in memory.archive(LAST_DAY) if "text" in line}
    assert brought == {fact["id"]: fact["text"] for fact in facts("default")}


def test_migrating_again_changes_nothing(old: Memory) -> None:
    url = old.context.database_url
    before = old.archive(LAST_DAY)
    assert schema.apply(url) == []
    assert old.archive(LAST_DAY) == before


def test_two_migrations_at_once_take_turns(old_url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(schema.apply, [old_url, old_url]))
    assert min(done, key=len) == []
    with connect(old_url) as db:
        schema.verify(db)


def test_an_older_schema_is_refused_by_workers_with_what_to_do(old_url: str) -> None:
    with connect(old_url) as db, pytest.raises(SchemaError, match=r"has schema 1, .* run `ebb migrate`"):
        schema.verify(db)


def test_a_database_that_only_calls_itself_the_first_release_is_refused(old_url: str) -> None:
    with connect(old_url) as db:
        db.execute("drop table links")
    with pytest.raises(SchemaError, match="links"):
        schema.apply(old_url)


def test_a_migration_that_is_killed_in_the_middle_goes_on_afterwards(memory: Memory) -> None:
    url = memory.context.database_url
    for number in range(10):
        memory.add(f"Fact number {number}.")
    program = (
        "import sys; sys.path[:0] = ['tests', 'tests/integration']\n"
        "from test_migrations import migrate\n"
        f"migrate({url!r}, 'create table halfway ()', 'select pg_sleep(600)')\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", program], cwd=RELEASES.parents[2], env=dict(os.environ))
    wait_for(lambda: memory.value(SESSIONS, SLEEPING) == 1)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    memory.rows("select pg_terminate_backend(pid) from pg_stat_activity where query like %s", SLEEPING)
    said = migrate(url, "create table halfway ()", IN_PARTS, mode="in parts")
    assert not any("of_a_test_0" in one for one in said)
    assert memory.value("select count(*) from facts where source = 'x'") == 10


LIVELY = "create or replace function lively() returns int language sql return 1"
IN_PARTS = f"{LIVELY};\nupdate facts\nset source = 'x'\nwhere source is null"


def test_a_migration_in_parts_updates_every_fact_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "PART", 3)
    for number in range(7):
        memory.add(f"Fact number {number}.", namespace=f"tenant-{number % 2}")
    migrate(memory.context.database_url, IN_PARTS, mode="in parts")
    assert memory.rows("select source, count(*), count(distinct xmin::text) from facts group by 1") == [("x", 7, 3)]


def test_facts_of_other_parts_can_be_written_while_a_part_waits(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "PART", 1)
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT", "200ms")
    monkeypatch.setattr(migrations, "PAUSE_SECONDS", 0.2)
    first, last = sorted(memory.add(f"Fact number {number}.") for number in range(2))
    url, hold = memory.context.database_url, "select from facts where id = %s for update nowait"
    with ThreadPoolExecutor(1) as one, psycopg.connect(url, application_name="a pass") as other:
        other.execute(hold, [last])
        done = one.submit(migrate, url, IN_PARTS, mode="in parts")
        wait_for(lambda: memory.value("select source from facts where id = %s", first) == "x")
        other.execute(hold, [first])  # no deadlock: nothing holds this row any more
        assert memory.value("select count(*) from facts where source = 'x'") == 1
        other.commit()
        done.result()
    assert memory.value("select count(*) from facts where source = 'x'") == 2


def test_workers_of_the_previous_version_start_between_the_parts_of_a_migration_and_new_ones_do_not(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("A fact.")
    url, after = memory.context.database_url, schema.version() + 1
    readable = next(one for one in migrations.statements(of_name("between_angles")) if "function readable" in one)
    replaced = readable.replace("'ss'", "'s'")
    assert replaced != readable
    fails = f"{replaced};\nupdate facts\nset source = 1 / 0\nwhere true"
    with pytest.raises(SchemaError, match="division by zero"):
        migrate(url, fails, mode="in parts")
    with connect(url) as db:
        assert migrations.number(db) == schema.version()
    monkeypatch.setattr(migrations, "NUMBER", "select max(number) from schema_migrations")  # as the previous version
    with connect(url) as db:
        assert schema.differences(db) == []
    monkeypatch.undo()
    migrate(url, fails.replace("1 / 0", "'x'"), mode="in parts")
    with connect(url) as db:
        assert migrations.number(db) == after


@pytest.mark.skipif(ON_CITUS, reason="nodes of Citus would keep the limit that the test gives the role")
def test_a_migration_has_no_time_limit_and_says_what_it_waits_for(memory: Memory) -> None:
    url = memory.context.database_url
    memory.rows("alter role postgres set statement_timeout = '50ms'")
    said: list[str] = []
    try:
        with psycopg.connect(url, application_name="a long report") as reader:
            reader.execute("set statement_timeout = 0")
            reader.execute("select * from likenesses")
            with migrations.exclusive(url, said.append) as db:
                report = threading.Event()

                def note(text: str) -> None:
                    said.append(text)
                    report.set()

                with (
                    migrations.watched(url, db.info.backend_pid, note, every_seconds=0.1),
                    ThreadPoolExecutor(1) as one,
                ):
                    done = one.submit(db.execute, "alter table likenesses add column mood text")
                    assert report.wait()
                    wait_for(lambda: any("waiting for" in each and "a long report" in each for each in said))
                    reader.commit()
                    done.result()
    finally:
        memory.rows("alter role postgres reset statement_timeout")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["transaction", "outside a transaction"])
def test_while_a_migration_waits_for_a_backup_others_read(
    memory: Memory, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT", "200ms")
    url, said = memory.context.database_url, list[str]()
    both = "alter table likenesses add column mood text;\nalter table links add column mood text;\n"
    with (
        ThreadPoolExecutor(1) as one,
        migrations.exclusive(url, said.append) as db,
        psycopg.connect(url, application_name="a backup") as backup,
    ):
        backup.execute("select count(*) from links")
        done = one.submit(migrations.run, url, db, numbered(both, mode=mode), said.append)
        wait_for(lambda: any("waiting for process" in each and "(a backup)" in each for each in said))
        with psycopg.connect(url) as reader:
            reader.execute("set lock_timeout = '3s'")
            reader.execute("select count(*) from links")
        backup.commit()
        done.result()
    changed = "select count(*) from pg_attribute where attname = 'mood' and attrelid in (%s::regclass, %s::regclass)"
    assert memory.value(changed, "links", "likenesses") == 2


def test_special_letters_and_blanks_around_names_of_the_first_release_are_found_without_them(old_url: str) -> None:
    named = """
        update facts set text = %s, entity = '  Zoë ', key = ' home '
        where id = (select id from facts where entity is null and kind = 'semantic' and forgotten_at is null limit 1)
        returning id
    """
    with connect(old_url) as db:
        (id_,) = db.execute(named, ["Zoë wohnt in der Hauptstraße."]).fetchone() or (None,)
    schema.apply(old_url)
    with connect(old_url) as db:
        found = "select entity, key, search @@ 'hauptstrasse & zoe'::tsquery from facts where id = %s"
        assert db.execute(found, [id_]).fetchone() == ("Zoë", "home", True)


def test_names_with_several_blanks_are_found_as_they_are_looked_up(memory: Memory) -> None:
    fact = memory.add("Ada Byron wrote the first program.", entity="Ada", key="job")
    item = memory.add("The item of a folder.", at=1)
    with connect(memory.context.database_url) as db:
        db.execute("update facts set entity = e'Ada \t Byron', key = e'first\njob' where id = %s", [fact])
        db.execute("update facts set kind = 'item', entity = 'my  notes', key = 'two  blanks' where id = %s", [item])
    migrate(memory.context.database_url, of_name("single_blanks"), mode="in parts")
    assert memory.rows("select entity, key from facts order by created_at") == [
        ("Ada Byron", "first job"),
        ("my  notes", "two  blanks"),
    ]
    (found,), _ = recall.lookup(memory.context, Lookup(entity="Ada  Byron", key="first job"), day(0))
    assert found.id == fact


@pytest.mark.parametrize("pinned", [False, True])
def test_items_with_a_lifetime_of_their_own_expire_by_it(memory: Memory, pinned: bool) -> None:
    id_, other = uuid4(), uuid4()
    item = NewItem(path=["users"], key="drink", document="{}", ttl=100 * 24 * 60)
    items.put(
        memory.context, "default", [item, NewItem(path=["users"], key="food", document="{}")], [id_, other], day(0)
    )
    memory.touch(id_, other, at=1)
    if pinned:
        memory.pin(id_, at=1)
    after = memory.rows("select to_jsonb(activity) - 'due_at' from activity order by fact = %s", id_)
    with connect(memory.context.database_url) as db:
        earlier = """
            update activity set decay_class = 'permanent', last_confirmed_at = %s, expires_at = 'infinity',
                kept_lifetime = null, due_at = 'infinity', ends_at = 'infinity'
            where decay_class = 'durable'
        """
        db.execute(earlier, [day(0)])
    migrate(memory.context.database_url, of_name("items"))
    memory.decay(1)
    assert memory.rows("select to_jsonb(activity) - 'due_at' from activity order by fact = %s", id_) == after


def test_tags_get_the_composed_form_in_which_they_are_looked_for(memory: Memory) -> None:
    decomposed = "cafe\u0301"
    fact = memory.add("Ada has breakfast at the corner.")
    with connect(memory.context.database_url) as db:
        tags = [decomposed, "home", "caf\u00e9"]
        db.execute("update facts set tags = %s where id = %s", [tags, fact])
    migrate(memory.context.database_url, of_name("composed_tags"), mode="in parts")
    assert memory.rows("select tags from facts") == [(["caf\u00e9", "home"],)]
    assert memory.ids("breakfast", tag=decomposed) == [fact]


def test_words_that_the_parser_took_for_a_path_are_found(memory: Memory) -> None:
    with connect(memory.context.database_url) as db:
        db.execute(of_name("iota_below"))
    path, other = memory.add("Her notes are in home~ada_byron."), memory.add("She signs as ada_lovelace@engine.")
    found = "select id from facts where search @@ %s::tsquery"
    assert memory.rows(found, "byron") == []
    before = memory.rows("select xmin::text from facts where id = %s", other)
    migrate(memory.context.database_url, of_name("underscores"), mode="in parts")
    assert memory.rows(found, "byron") == [(path,)]
    assert memory.rows(found, "lovelace & engine") == [(other,)]
    assert memory.rows("select xmin::text from facts where id = %s", other) == before


def test_what_the_parser_took_for_a_tag_and_words_in_another_form_are_found(memory: Memory) -> None:
    older = next(one for one in migrations.statements(of_name("folded")) if "function folded" in one)
    with connect(memory.context.database_url) as db:
        db.execute(older)
        db.execute(of_name("underscores"))
    mail, greek = memory.add("Write to <ada@engine>."), memory.add("ένας λόγος", entity="Λόγος")
    wide, hebrew = memory.add("Tea ＜hot＞."), memory.add("It is \ufb2aלום.")  # noqa: RUF001
    other = memory.add("It is known.")
    found = "select id from facts where search @@ to_tsquery('simple', %s)"
    assert not any(memory.rows(found, word) for word in ("engine", "λογοσ", "hot", "שלום"))
    before = memory.rows("select xmin::text from facts where id = %s", other)
    migrate(memory.context.database_url, of_name("between_angles"), mode="in parts")
    migrate(memory.context.database_url, of_name("folded_again"), mode="outside a transaction")
    assert memory.rows(found, "engine") == [(mail,)]
    assert memory.rows(found, "λογοσ") == [(greek,)]
    assert memory.rows(found, "hot") == [(wide,)]
    assert memory.rows(found, "שלום") == [(hebrew,)]
    assert memory.ids("x", entity="ΛΟΓΟΣ", min_relevance=0) == [greek]
    assert memory.rows("select xmin::text from facts where id = %s", other) == before


@pytest.mark.skipif(ON_CITUS, reason="its plans show no indexes")
def test_a_session_goes_on_using_an_index_of_a_function_that_a_migration_replaces(memory: Memory) -> None:
    memory.add("Ada sings.", entity="Ada")
    older = next(one for one in migrations.statements(of_name("folded")) if "function folded" in one)
    live = "entity is not null and forgotten_at is null and superseded_at is null"
    plan = f"explain select from facts where namespace = 1 and left(folded(entity), 200) = 'ada' and {live}"
    with connect(memory.context.database_url, autocommit=True) as session:
        session.execute("set enable_seqscan = off")
        session.execute(older)

        def condition() -> list[str]:
            return [line for (line,) in session.execute(plan) if "Index Cond" in line and "left" in line.lower()]

        assert len(condition()) == 1
        migrate(memory.context.database_url, of_name("between_angles"), mode="in parts")
        assert len(condition()) == 1


@pytest.mark.skipif(ON_CITUS, reason="stores wait at another node")
def test_a_fact_that_is_being_stored_while_functions_change_has_the_words_of_the_new_ones(memory: Memory) -> None:
    url = memory.context.database_url
    waiting = "select pid from pg_locks where not granted and relation = to_regclass(%s)"
    with connect(url) as db:
        db.execute(of_name("underscores"))
    with ThreadPoolExecutor(2) as pool, connect(url) as holding:
        holding.execute("lock table signatures in exclusive mode")
        storing = pool.submit(memory.add, "Write to <ada@engine>.")
        wait_for(lambda: bool(memory.rows(waiting, "signatures")))
        migrating = pool.submit(migrate, url, of_name("between_angles"), mode="in parts")
        wait_for(lambda: migrating.done() or bool(memory.rows(waiting, "facts")))
        holding.commit()
        storing.result()
        migrating.result()
    assert memory.value("select count(*) from facts where search @@ to_tsquery('simple', 'engine')") == 1


def test_updates_of_all_facts_run_in_parts() -> None:
    large = [one for one in migrations.known() if re.search(r"^update facts\b", one.sql, re.MULTILINE)]
    assert len(large) > 3
    assert {one.mode for one in large} == {"in parts"}


@pytest.mark.skipif(ON_CITUS, reason="the builds of Citus' nodes wait elsewhere")
def test_an_index_that_is_built_again_is_there_until_then(memory: Memory) -> None:
    url, building = memory.context.database_url, "create index concurrently%"
    there = "select count(*) from pg_index where indexrelid = to_regclass('facts_topics') and indisvalid"
    migrating = "select count(*) from pg_stat_activity where query like %s and wait_event = 'virtualxid'"
    with ThreadPoolExecutor(1) as one, psycopg.connect(url) as report:
        report.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        report.execute("select 1")  # a build waits for this snapshot
        done = one.submit(migrate, url, of_name("folded_again"), mode="outside a transaction")
        wait_for(lambda: memory.value(migrating, building) == 1)
        assert memory.value(there) == 1
        report.commit()
        done.result()
    with connect(url) as db:
        schema.verify(db)


UNSTABLE = """
    select proname from pg_proc
    where proname = any(%s) group by proname having bool_and(provolatile <> 'i')
"""


def test_updates_by_migrations_call_immutable_functions_alone_as_citus_demands(memory: Memory) -> None:
    on_citus = [one for one in migrations.known() if one.number > FIRST_ON_CITUS]
    updates = [part for one in on_citus for part in migrations.statements(one.sql) if "\nupdate " in f"\n{part}"]
    called = {name for part in updates for name in re.findall(r"\b(\w+)\(", part)}
    assert "regexp_replace" in called
    assert memory.rows(UNSTABLE, list(called)) == []


def test_near_duplicates_of_an_earlier_release_are_compared_again_unless_they_were_set_apart(memory: Memory) -> None:
    alike = [memory.add("Ada drinks tea without milk."), memory.add("Ada drinks the tea without milk.")]
    apart = [memory.add("Bo sleeps in the small room."), memory.add("Bo sleeps in a small room.")]
    unlike = [memory.add("Sie trinkt gerne Kaffee."), memory.add("Sie trinkt ungerne Kaffee.")]
    assert compare(memory.context, "default", day(1)) == 6
    pairs = "select fact, other from likenesses"
    assert {tuple(pair) for pair in memory.rows(pairs)} == {tuple(sorted(alike)), tuple(sorted(apart))}
    found = "insert into likenesses select namespace, %s, %s, 0.95, created_at from facts where id = %s"
    with connect(memory.context.database_url) as db:
        db.execute(found, [*sorted(unlike), unlike[0]])
        db.execute("update likenesses set apart_at = found_at where fact = any(%s)", [apart])
    migrate(memory.context.database_url, of_name("near_duplicates_again"))
    assert {id_ for (id_,) in memory.rows("select fact from activity where not compared")} == {*alike, *unlike}
    assert compare(memory.context, "default", day(2)) == 4
    assert {tuple(pair) for pair in memory.rows(pairs)} == {tuple(sorted(alike)), tuple(sorted(apart))}


def test_what_ended_by_itself_in_an_earlier_release_becomes_deep(old: Memory) -> None:
    by_itself = (
        "select count(*) from facts where forgotten_reason not in ('asked', 'retracted') and superseded_at is null"
    )
    wanted = old.value(by_itself)
    before = {line["id"]: line["text"] for line in old.archive(LAST_DAY) if "text" in line}
    assert old.demote(at=5_000) == old.value("select count(*) from deep") == wanted > 0
    assert old.value(by_itself) == 0
    assert {line["id"]: line["text"] for line in old.archive(LAST_DAY) if "text" in line} == before


def test_where_facts_are_long_their_salience_is_estimated_again(memory: Memory) -> None:
    for namespace, times in (("notes", 1), ("chats", 100)):
        memory.add("The oboe is tuned. " * times, namespace=namespace)
        search_indexes.count_lexemes(memory.context, namespace, day(0))
        estimate.estimate_again(memory.context, namespace, day(0))
    assert estimate.grown_tenfold(memory.context) == []
    migrate(memory.context.database_url, of_name("long_facts"))
    assert estimate.grown_tenfold(memory.context) == ["chats"]


def test_a_connection_that_ends_says_to_run_it_again(memory: Memory) -> None:
    end_itself = "select pg_terminate_backend(pg_backend_pid())"
    with pytest.raises(UnavailableError, match=r"interrupted: .*[^.]\. Run `ebb migrate` again"):
        migrate(memory.context.database_url, end_itself)


def test_a_statement_that_fails_leaves_nothing_of_its_migration(memory: Memory) -> None:
    said = r"of_a_test_0 failed .*no_such\(\) does not exist.*[^.]\. Remove the cause and run `ebb migrate` again"
    with pytest.raises(SchemaError, match=said):
        migrate(memory.context.database_url, "create table halfway (); select no_such()")
    with connect(memory.context.database_url) as db:
        schema.verify(db)
    assert memory.rows("select to_regclass('halfway')") == [(None,)]


def test_what_no_transaction_allows_runs_outside_one_statement_by_statement(memory: Memory) -> None:
    build = "drop index concurrently if exists own_index;\ncreate index concurrently own_index on facts (created_at);\n"
    migrate(memory.context.database_url, build, mode="outside a transaction")
    assert memory.value("select indisvalid from pg_index where indexrelid = 'own_index'::regclass")


def test_the_first_line_of_a_file_says_how_it_runs() -> None:
    parsed = migrations._parsed("0007_more_words.sql", "-- in parts\nupdate facts set text = text;\n")
    assert (parsed.number, parsed.name, parsed.mode) == (7, "more_words", "in parts")
    modes = {"transaction", "outside a transaction", "in parts"}
    assert {one.mode for one in migrations.known()} <= modes


def test_workers_of_the_previous_version_store_and_recall_on_the_new_schema(memory: Memory) -> None:
    migrate(
        memory.context.database_url,
        "alter table facts add column mood text not null default 'calm'",
        "create index concurrently facts_mood on facts (mood);",
        mode="outside a transaction",
    )
    with connect(memory.context.database_url) as db:
        schema.verify(db)
    tea = memory.add("Tea at four.")
    memory.decay(20)
    assert memory.ids("tea", at=20) == [tea]
    assert day(0) == DAY_0
