"""Bloated indexes are rebuilt, and old runs are deleted."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from memory import ON_CITUS, Memory, day

from workers.admin import search_indexes
from workers.decay import passes
from workers.storage import runs, server, signatures
from workers.storage.connection import connect, limit_statements, transaction

WORDS = 60_000
FILL = """
    insert into lexemes (namespace, lexeme, facts)
    select id, 'word ' || lpad(number::text, 8, '0'), 1 from namespaces, generate_series(1, %s) as number
"""
THIN = "delete from lexemes where right(lexeme, 2) <> '00'"
SIZE = "select pg_relation_size('lexemes_pkey')"
INVALID = "select count(*) from pg_index where not indisvalid"
ON_THE_SERVER_ITSELF = pytest.mark.skipif(ON_CITUS, reason="indexes on nodes of Citus are neither found nor rebuilt")


def filled(memory: Memory, *, thinned: bool) -> None:
    """Fill a table and delete 99 of 100 rows, which leaves a few entries on each index page."""
    memory.add("Tea at four.")
    memory.rows(FILL, WORDS)
    if thinned:
        memory.rows(THIN)
    vacuum(memory)


def vacuum(memory: Memory) -> None:
    with connect(memory.context.database_url, autocommit=True) as db:
        db.execute("vacuum analyze lexemes")


def rebuilt(memory: Memory) -> list[str]:
    return search_indexes.rebuild_bloated_indexes(memory.context)


@pytest.mark.slow
@ON_THE_SERVER_ITSELF
def test_an_index_of_nearly_empty_pages_is_rebuilt(memory: Memory) -> None:
    filled(memory, thinned=True)
    before = memory.value(SIZE)
    assert rebuilt(memory) == ["lexemes_pkey"]
    assert memory.value(SIZE) < before / 20
    assert memory.value("select count(*) from lexemes") == WORDS // 100
    assert memory.value(INVALID) == 0
    assert rebuilt(memory) == []


@pytest.mark.slow
@ON_THE_SERVER_ITSELF
def test_an_index_of_full_pages_stays_as_it_is(memory: Memory) -> None:
    filled(memory, thinned=False)
    assert memory.value(SIZE) > search_indexes.LEAST_BLOATED_BYTES
    assert rebuilt(memory) == []


@ON_THE_SERVER_ITSELF
def test_how_large_an_index_must_be_is_known_without_building_it(memory: Memory) -> None:
    filled(memory, thinned=False)
    with connect(memory.context.database_url, autocommit=True) as db:
        (known,) = server.index_sizes(db, search_indexes.LEAST_BLOATED_BYTES)
        server.rebuild_index(db, known.name)
    assert 0.9 < known.needed / memory.value(SIZE) < 1.1


def test_small_indexes_stay_as_they_are(memory: Memory) -> None:
    memory.store(*[f"Guest number {number}." for number in range(50)])
    memory.rows("delete from facts where right(text, 2) <> '0.'")
    vacuum(memory)
    assert rebuilt(memory) == []


@pytest.mark.slow
@ON_THE_SERVER_ITSELF
def test_one_builder_at_a_time(memory: Memory) -> None:
    filled(memory, thinned=True)
    with connect(memory.context.database_url) as db:
        assert signatures.claim_building(db)
        assert rebuilt(memory) == []
    assert rebuilt(memory) == ["lexemes_pkey"]


def test_what_a_building_that_died_has_left_is_dropped(memory: Memory) -> None:
    memory.rows("create index lexemes_pkey_ccnew on lexemes (namespace, lexeme)")
    memory.rows("update pg_index set indisvalid = false where indexrelid = 'lexemes_pkey_ccnew'::regclass")
    rebuilt(memory)
    assert memory.value("select to_regclass('lexemes_pkey_ccnew') is null")


def test_an_index_that_cannot_be_rebuilt_stays(memory: Memory) -> None:
    filled(memory, thinned=True)
    with connect(memory.context.database_url, autocommit=True) as db:
        missing = server.IndexSize("no_such_index", 2, 1)
        assert not search_indexes._rebuilt(db, missing)


def age_by(memory: Memory, run: UUID, days: int) -> None:
    """Have a pass begin days earlier; Citus refuses to subtract them in the update itself."""
    began = memory.value("select started_at from decay_runs where id = %s", run)
    memory.rows("update decay_runs set started_at = %s where id = %s", began - timedelta(days=days), run)


def test_passes_of_the_last_thirty_days_are_known_and_no_others(memory: Memory) -> None:
    memory.add("A meadow.")
    old, recent, unfinished = uuid4(), uuid4(), uuid4()
    for run, age in ((old, 31), (recent, 29), (unfinished, 31)):
        memory.decay(100, run=run)
        age_by(memory, run, age)
    memory.rows("update decay_runs set finished_at = null where id = %s", unfinished)
    assert passes.drop_old_runs(memory.context) == 1
    assert {run for (run,) in memory.rows("select id from decay_runs")} == {recent, unfinished}
    assert memory.value("select count(*) from decay_parts where run = %s", old) == 0
    assert passes.drop_old_runs(memory.context) == 0


def test_the_last_pass_stays_though_other_work_was_done_since(memory: Memory) -> None:
    memory.add("A meadow.")
    first, last, consolidation = uuid4(), uuid4(), uuid4()
    for run, age in ((first, 50), (last, 40)):
        memory.decay(100, run=run)
        age_by(memory, run, age)
    tried, single = uuid4(), uuid4()
    with memory.context.namespace("default") as (db, tenant):
        runs.record(db, consolidation, day(100), "consolidation", None)
        runs.begin(db, tried, day(100), None, "", work="decay", dry_run=True, force=False, namespace=None)
        runs.finish(db, tried)
        runs.record(db, single, day(100), "decay", tenant)
    assert passes.drop_old_runs(memory.context) == 1
    assert {run for (run,) in memory.rows("select id from decay_runs")} == {last, consolidation, tried, single}


MANY_JANITORS = """
    with tenant as (insert into namespaces (name) select 'tenant-' || generate_series(1, 10000) returning id)
    insert into decay_runs (id, work, planned_for, started_at, finished_at, asked_by, namespace, dry_run)
    select gen_random_uuid(), 'janitor', now(), now() - days * interval '1 day', now(), '', id, days = 50
    from tenant cross join unnest(array[40, 50]) as days
"""


def test_passes_of_thousands_of_namespaces_are_dropped_in_seconds(memory: Memory) -> None:
    with transaction(memory.context.database_url) as db:
        db.execute(MANY_JANITORS)
        limit_statements(db, 5)
        assert runs.drop_old(db, passes.KEPT_RUNS, 20_000) == 10_000
        assert db.execute("select count(*), bool_or(dry_run) from decay_runs").fetchone() == (10_000, False)
        db.rollback()


def test_facts_keep_what_dropped_passes_did(memory: Memory) -> None:
    id_ = memory.add("A meadow.")
    run = uuid4()
    memory.decay(100, run=run)
    before = memory.row(id_)
    age_by(memory, run, 40)
    passes.drop_old_runs(memory.context)
    assert memory.row(id_) == before
    assert memory.decay(100).counters.changed == 0
