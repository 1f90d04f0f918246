"""Maintenance of indexes: words are counted, and large namespaces get a vector index."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from ebb.contract.recall import Filters
from memory import ON_CITUS, Memory, day, wait_for
from pgvector import Bit

from workers.admin import search_indexes
from workers.coordination import signals
from workers.core.signature import encode
from workers.memory import embed
from workers.memory.recall import arms
from workers.storage import namespaces, signatures
from workers.storage.candidates import Scope
from workers.storage.connection import connect

GUESTS = [f"Guest number {number} prefers room {number * 7}." for number in range(40)]
INDEXES = "select indexrelid::regclass::text from pg_index where indrelid = 'signatures'::regclass and indisvalid"


@pytest.fixture
def small(memory: Memory) -> Memory:
    """Return a memory where a namespace of 40 facts is large."""
    return memory.having(ann_threshold=40)


def hnsw(memory: Memory) -> list[str]:
    return sorted(name for (name,) in memory.rows(INDEXES) if name.startswith("signatures_near_"))


@pytest.mark.parametrize("limit", [30, 500])
def test_the_vector_index_is_searched_until_a_filter_leaves_enough_facts(small: Memory, limit: int) -> None:
    small.store(*({"text": f"Guest number {number} prefers room {number * 7}."} for number in range(600)))
    query = encode(small.context.embedder.embed(["A desk."]))[0]
    with connect(small.context.database_url) as db:
        near = signatures.nearest(db, 1, query, 600)
    farthest = sorted(near, key=near.__getitem__)[-limit:]
    search_indexes.index_large_namespaces(small.context)
    with connect(small.context.database_url) as db:
        db.execute("update facts set tags = '{late}' where id = any(%s)", (farthest,))
        for other in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"):
            db.execute(f"set local enable_{other} = off")
        found = signatures.nearest(db, 1, query, limit, Scope(day(1), Filters(tag="late")))
        db.rollback()
    assert set(found) == set(farthest)
    assert list(found.values()) == sorted(found.values())


@pytest.mark.parametrize("visible", [False, True])
def test_all_facts_are_read_where_a_filter_leaves_too_few_of_those_that_an_index_gives(
    small: Memory, monkeypatch: pytest.MonkeyPatch, visible: bool
) -> None:
    small.store(*({"text": f"Guest number {number} prefers room {number * 7}."} for number in range(600)))
    query = small.context.embedder.embed(["A desk."])[0]
    with connect(small.context.database_url) as db:
        near = signatures.nearest(db, 1, encode(query[None, :])[0], 600)
    farthest = sorted(near, key=near.__getitem__)[-30:]
    search_indexes.index_large_namespaces(small.context)
    with connect(small.context.database_url) as db:
        db.execute("update facts set source = 'diary' where id = any(%s)", (farthest,))
        db.execute("set local hnsw.max_scan_tuples = 1; set local hnsw.ef_search = 100")
        for other in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"):
            db.execute(f"set local enable_{other} = off")
        tenant = namespaces.find(db, "default")
        assert tenant is not None
        scope = Scope(day(1), Filters(source="diary"))
        with monkeypatch.context() as by_index_alone:
            by_index_alone.setattr(signatures, "SCANS", {})
            assert len(signatures.nearest(db, 1, encode(query[None, :])[0], 200, scope)) < len(farthest)
        found = arms.vector_arm(db, tenant, query, scope, visible=visible)()
        similar = signatures.nearest(db, 1, encode(query[None, :])[0], 200, scope)
        db.rollback()
    assert {UUID(bytes=id_) for id_ in found} == set(similar) == set(farthest)


def signatures_read(plan: dict[str, Any]) -> int:
    """Return how many signatures a plan has read."""
    own = plan["Actual Rows"] * plan["Actual Loops"] if plan.get("Relation Name") == "signatures" else 0
    return int(own) + sum(map(signatures_read, plan.get("Plans", [])))


def test_a_scan_reads_the_signatures_of_facts_that_pass_filters_alone_though_all_are_expected_to(
    memory: Memory,
) -> None:
    memory.store(*({"text": f"Guest {number} prefers room {number * 7}.", "source": "diary"} for number in range(600)))
    query = memory.context.embedder.embed(["A desk."])
    given = {"namespace": 1, "query": Bit(encode(query)[0].tobytes()), "limit": 200}
    with connect(memory.context.database_url) as db:
        db.execute("analyze facts; analyze signatures")
        db.execute("update facts set source = 'mail' where id <> all(array(select id from facts order by id limit 30))")
        values = given | Scope(day(1), Filters(source="diary")).parameters
        row = db.execute(f"explain (analyze, format json) {signatures.SCAN_AMONG}", values).fetchone()
        db.rollback()
    assert row is not None
    assert signatures_read(row[0][0]["Plan"]) <= 30


def test_words_are_counted_by_the_facts_that_hold_them(memory: Memory) -> None:
    memory.store("Tea, tea and more tea.", "Tea at four.", "Cake.", namespace="ours")
    memory.store("Tea elsewhere.", namespace="theirs")
    assert search_indexes.count_lexemes(memory.context, "ours", day(1)) == 3
    assert dict(memory.rows("select lexeme, facts from lexemes")) == {"tea": 2, "four": 1, "cake": 1}
    assert memory.rows("select counted_facts, counted_words from namespaces where name = 'ours'") == [(3, 6)]


def test_neither_namespace_nor_tags_are_counted_as_words(memory: Memory) -> None:
    memory.store({"text": "Tea at four.", "tags": ["noon", "two words"]})
    search_indexes.count_lexemes(memory.context, "default", day(1))
    assert memory.rows("select lexeme from lexemes order by 1") == [("four",), ("tea",)]


def test_counting_again_changes_nothing_and_counts_what_is_new(memory: Memory) -> None:
    memory.add("Tea at four.")
    search_indexes.count_lexemes(memory.context, "default", day(1))
    before = memory.rows("select xmin, lexeme from lexemes order by 2")
    search_indexes.count_lexemes(memory.context, "default", day(1))
    assert memory.rows("select xmin, lexeme from lexemes order by 2") == before
    memory.add("Tea at five.")
    assert search_indexes.count_lexemes(memory.context, "default", day(2)) == 2
    assert dict(memory.rows("select lexeme, facts from lexemes"))["tea"] == 2


def test_forgotten_facts_are_not_counted(memory: Memory) -> None:
    memory.store("Tea at four.", {"text": "Tea in the car.", "decay_class": "checkpoint"})
    memory.decay(1)
    assert search_indexes.count_lexemes(memory.context, "default", day(1)) == 1
    assert search_indexes.count_lexemes(memory.context, "unknown", day(1)) == 0


@pytest.mark.slow
def test_a_namespace_whose_words_take_long_to_count_keeps_no_other_from_being_counted(memory: Memory) -> None:
    counted = "select counted_facts from namespaces where name = %s"
    for name in ("first", "second"):
        memory.store("Tea at four.", namespace=name)
        search_indexes.count_lexemes(memory.context, name, day(0))
        memory.store("Tea at five.", namespace=name)
        signals.mark_grown(memory.context.redis, name)
    first = memory.value("select id from namespaces where name = 'first'")
    with ThreadPoolExecutor() as pool, connect(memory.context.database_url) as other:
        other.execute("select from lexemes where namespace = %s for update", [first])
        done = pool.submit(search_indexes.count_grown, memory.context, day(1))
        wait_for(lambda: memory.value(counted, "second") == 2)
        other.rollback()
        assert done.result() == ["first", "second"]
    assert memory.value(counted, "first") == 2
    assert signals.take_grown(memory.context.redis) == []


def test_one_call_at_a_time_counts_words_that_take_long(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_indexes, "QUICK_SECONDS", 0.05)
    memory.store("Tea at four.", namespace="first")
    search_indexes.count_lexemes(memory.context, "first", day(0))
    memory.store("Tea at five.", namespace="first")
    signals.mark_grown(memory.context.redis, "first")
    with signals.try_lock(memory.context.redis, "lexemes", 60), connect(memory.context.database_url) as other:
        other.execute("select from lexemes for update")
        assert search_indexes.count_grown(memory.context, day(1)) == []
    assert search_indexes.count_grown(memory.context, day(2)) == ["first"]


def test_words_for_which_there_is_no_time_are_counted_by_a_later_call(memory: Memory) -> None:
    for name in ("first", "second"):
        memory.store("Tea at four.", namespace=name)
        signals.mark_grown(memory.context.redis, name)
    assert search_indexes.count_grown(memory.context, day(0), ["second"], until=-math.inf) == ["second"]
    assert search_indexes.count_grown(memory.context, day(0)) == ["first"]
    assert search_indexes.count_grown(memory.context, day(0)) == []


def test_a_count_that_took_long_is_not_repeated_at_once_unless_facts_were_erased(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_indexes, "MOST_COUNTING", 1e-6)
    monkeypatch.setattr(search_indexes, "_counted_quickly", lambda *_: False)
    memory.store("Tea at four.", namespace="first")
    signals.mark_grown(memory.context.redis, "first")
    assert search_indexes.count_grown(memory.context, day(1)) == ["first"]
    signals.mark_grown(memory.context.redis, "first")
    assert search_indexes.count_grown(memory.context, day(2)) == []
    assert signals.take_grown(memory.context.redis) == ["first"]
    assert search_indexes.count_grown(memory.context, day(3), ["first"]) == ["first"]


def test_words_that_were_to_be_counted_when_redis_lost_its_data_are_counted_without_another_change(
    memory: Memory,
) -> None:
    def count() -> list[str]:
        search_indexes.find_grown(memory.context)
        return search_indexes.count_grown(memory.context, day(1))

    assert count() == []
    memory.store("Tea at four.", namespace="first")
    memory.store("Tea at five.", namespace="second")
    signals.mark_grown(memory.context.redis, "second")
    memory.context.redis.flushdb()
    assert (count(), count()) == (["first", "second"], [])
    assert memory.value("select sum(facts) from lexemes where lexeme = 'tea'") == 2


def test_rare_words_count_for_more_whether_or_not_they_were_counted(memory: Memory) -> None:
    memory.store(*[f"Tea with guest {number}." for number in range(20)], "Tea with the ambassador.")
    uncounted = [one.text for one in memory.ask("tea ambassador", tag=None).results]
    search_indexes.count_lexemes(memory.context, "default", day(1))
    assert uncounted[0] == "Tea with the ambassador."
    assert [one.text for one in memory.ask("tea ambassador").results] == uncounted


def test_only_namespaces_at_the_threshold_get_an_index(small: Memory) -> None:
    small.store(*GUESTS, namespace="large")
    small.store(*GUESTS[1:], namespace="small")
    number = small.value("select id from namespaces where name = 'large'")
    assert search_indexes.index_large_namespaces(small.context) == [number]
    assert hnsw(small) == [f"signatures_near_{number}"]
    assert search_indexes.index_large_namespaces(small.context) == []


def test_forgotten_facts_do_not_make_a_namespace_large(small: Memory) -> None:
    small.store(*GUESTS[1:], {"text": "Tea in the car.", "decay_class": "checkpoint"})
    small.decay(1)
    assert search_indexes.index_large_namespaces(small.context) == []


def test_one_builder_at_a_time(small: Memory) -> None:
    small.store(*GUESTS)
    with connect(small.context.database_url, autocommit=True) as db:
        assert signatures.claim_building(db)
        assert search_indexes.index_large_namespaces(small.context) == []
    wait_for(lambda: len(search_indexes.index_large_namespaces(small.context)) == 1)  # once the session has ended


ENOUGH = """
    select pg_size_bytes(current_setting('maintenance_work_mem'))
        = greatest(pg_size_bytes('1GB'), pg_size_bytes(current_setting('shared_buffers')))
"""


@pytest.mark.skipif(ON_CITUS, reason="the memory is that of a session on a node")
def test_an_index_is_built_in_as_much_memory_as_it_takes_and_the_server_can_spare(small: Memory) -> None:
    small.store(*GUESTS)
    number = small.value("select id from namespaces")
    with connect(small.context.database_url, autocommit=True) as db:
        many = signatures.GIVE_MEMORY.replace("* 900", "* 10000000000")
        db.execute(many, {"namespace": number})
        assert db.execute(ENOUGH).fetchone() == (True,)
        signatures.build_index(db, number)
        assert db.execute("show maintenance_work_mem").fetchone() == ("1GB",)


def test_an_index_whose_building_died_is_built_again(small: Memory) -> None:
    small.store(*GUESTS)
    search_indexes.index_large_namespaces(small.context)
    (name,) = hnsw(small)
    small.rows("update pg_index set indisvalid = false where indexrelid = %s::regclass", name)
    assert hnsw(small) == []
    assert len(search_indexes.index_large_namespaces(small.context)) == 1
    assert hnsw(small) == [name]


PARALLEL_FAILS = """
    create function no_room() returns event_trigger language plpgsql as $$
    begin
        if current_setting('max_parallel_maintenance_workers') <> '0' then
            raise 'could not resize shared memory segment' using errcode = 'disk_full';
        end if;
    end $$;
    create event trigger no_room on ddl_command_start when tag in ('CREATE INDEX') execute function no_room();
"""


FAILS_ONCE = """
    create sequence failures;
    create function fails_once() returns event_trigger language plpgsql as $$
    begin
        if nextval('failures') = 1 then
            raise 'the row is damaged' using errcode = 'data_corrupted';
        end if;
    end $$;
    create event trigger fails_once on ddl_command_start when tag in ('CREATE INDEX') execute function fails_once();
"""


@pytest.mark.skipif(ON_CITUS, reason="the trigger would have to be on its nodes")
def test_an_index_that_cannot_be_built_keeps_no_other_from_being_built(small: Memory) -> None:
    for name in ("first", "second", "third"):
        small.store(*GUESTS, namespace=name)
    ids = {id_ for (id_,) in small.rows("select id from namespaces")}
    with connect(small.context.database_url, autocommit=True) as db:
        db.execute(FAILS_ONCE.encode())
    built = search_indexes.index_large_namespaces(small.context)
    assert len(built) == 2
    assert search_indexes.index_large_namespaces(small.context) == [*ids.difference(built)]
    assert len(hnsw(small)) == 3


def test_the_index_of_a_namespace_that_no_longer_exists_is_dropped(small: Memory) -> None:
    small.store(*GUESTS)
    (number,) = search_indexes.index_large_namespaces(small.context)
    with connect(small.context.database_url, autocommit=True) as db:
        signatures.build_index(db, number + 1)  # as of a branch that was dropped while another index was built
    assert len(hnsw(small)) == 2
    assert search_indexes.index_large_namespaces(small.context) == []
    assert hnsw(small) == [signatures.index_name(number)]


def test_what_an_interrupted_rebuild_of_an_index_left_keeps_none_from_being_built(small: Memory) -> None:
    small.store(*GUESTS)
    (number,) = search_indexes.index_large_namespaces(small.context)
    small.rows(f"alter index {signatures.index_name(number)} rename to {signatures.index_name(number)}_ccnew")
    assert search_indexes.index_large_namespaces(small.context) == [number]


@pytest.mark.skipif(ON_CITUS, reason="the trigger would have to be on its nodes")
def test_an_index_is_built_by_one_process_where_shared_memory_is_small(small: Memory) -> None:
    small.store(*GUESTS)
    with connect(small.context.database_url, autocommit=True) as db:
        db.execute(PARALLEL_FAILS.encode())
    assert len(search_indexes.index_large_namespaces(small.context)) == 1
    assert len(hnsw(small)) == 1


def test_new_vectors_of_all_facts_are_not_added_one_by_one_to_the_index_of_the_old_ones(small: Memory) -> None:
    small.store(*GUESTS)
    assert search_indexes.index_large_namespaces(small.context)
    embed.reset(small.having(embedder="hashing").context)
    assert hnsw(small) == []
    embed.embed_pending(small.having(embedder="hashing").context, embed.START, day(1))
    assert len(search_indexes.index_large_namespaces(small.context)) == 1


def test_facts_stored_after_the_index_was_built_are_found(small: Memory) -> None:
    small.store(*GUESTS)
    search_indexes.index_large_namespaces(small.context)
    id_ = small.add("Grandmother keeps the violoncello upstairs.")
    assert small.ids("grandmas cellos", min_relevance=0)[0] == id_


def test_the_index_gives_as_many_facts_as_are_asked_for(small: Memory) -> None:
    small.store(*[f"Guest number {number} prefers room {number * 7}." for number in range(450)])
    (number,) = search_indexes.index_large_namespaces(small.context)
    query = encode(small.context.embedder.embed_queries(["rooms of guests"]))[0]
    with connect(small.context.database_url) as db:
        db.execute("set enable_sort = off")  # the index alone gives them in order
        assert len(signatures.nearest(db, number, query, 420)) == 420
