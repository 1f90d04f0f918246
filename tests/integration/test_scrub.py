"""Scrub and clean-up: what they may not do is reported, and what they cannot do now is done later."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from databases import role_without_tables
from ebb.broker import database_after
from ebb.contract.graph import Unrelate
from memory import ON_CITUS, Memory, day

from workers import graph
from workers.admin import purge, search_indexes
from workers.context import Context
from workers.coordination import idempotency, signals
from workers.coordination.redis import own_keys
from workers.errors import UnavailableError
from workers.storage import connection, server, tombstones
from workers.storage.connection import Connection, close_pools, connect


@pytest.mark.skipif(ON_CITUS, reason="on Citus, workers connect as the role that migrates")
def test_a_role_that_owns_nothing_learns_what_it_cannot_reach(memory: Memory) -> None:
    with role_without_tables(memory.context.database_url) as url:
        left = purge.scrub(memory.having(database_url=url).context, day(1))
    assert left == [purge.TABLES_ARE_KEPT, purge.LOG_IS_KEPT, purge.OUT_OF_REACH]


def test_cleaning_is_done_once_for_all_that_was_erased(memory: Memory) -> None:
    memory.forget(memory.add("Zebulon feeds a quokka."), at=1)
    assert not purge.clean(memory.context, day(1))
    erase_facts(memory, 2)
    assert purge.clean(memory.context, day(1))
    assert not purge.clean(memory.context, day(1))


@pytest.mark.parametrize("clean", [purge.clean, purge.scrub])
def test_what_is_erased_while_others_are_cleaned_is_left_for_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, clean: Callable[..., object]
) -> None:
    erase_facts(memory, 1)
    name = "vacuum" if clean == purge.clean else "rewrite"
    how = getattr(server, name)

    def erase_meanwhile(db: Connection) -> Any:
        done = how(db)
        erase_facts(memory, 1)
        return done

    monkeypatch.setattr(server, name, erase_meanwhile)
    assert clean(memory.context, day(1))
    monkeypatch.undo()
    assert purge.clean(memory.context, day(1))
    assert not purge.clean(memory.context, day(1))


def test_what_a_killed_task_left_uncleaned_is_cleaned_by_the_next(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase_facts(memory, 1)
    monkeypatch.setattr(purge, "compact", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        purge.clean(memory.context, day(1))
    monkeypatch.undo()
    await_end_of_cleaning(memory.context)
    assert purge.clean(memory.context, day(1))


def await_end_of_cleaning(context: Context) -> None:
    """Wait until the server has ended the sessions of earlier cleanings, which it does after their connections end."""
    for _ in context.each_shard():
        with connect(context.direct_database_url, autocommit=True) as db:
            db.execute(tombstones.CLAIM_CLEANING.replace("try_", ""), {"key": tombstones.CLEANING_LOCK})
            db.execute("select pg_advisory_unlock_all()")


def test_of_two_that_clean_at_once_one_cleans_and_if_it_is_killed_the_next_does(memory: Memory) -> None:
    erase_facts(memory, 1)
    with connect(memory.context.direct_database_url, autocommit=True) as other:
        assert tombstones.claim_cleaning(other)
        assert not purge.clean(memory.context, day(1))
        memory.rows("select pg_terminate_backend(%s::integer, 60000)", other.info.backend_pid)
    assert purge.clean(memory.context, day(1))


@pytest.mark.skipif(ON_CITUS, reason="statistics are those of each node")
def test_cleaning_drops_the_statistics_of_what_was_erased_even_if_nothing_is_left(memory: Memory) -> None:
    ids = [memory.add(f"Zebulon {n}", entity=f"Zebulon {n % 5}", key="quokka", value="Zebulon") for n in range(20)]
    memory.rows("analyze facts")
    assert "zebulon" in statistics(memory)
    memory.forget(*ids, at=1, purge=True)
    assert purge.clean(memory.context, day(1))
    assert "zebulon" not in statistics(memory)


@pytest.mark.skipif(ON_CITUS, reason="statistics are those of each node")
def test_the_names_of_a_relation_that_was_removed_are_cleaned_away(memory: Memory) -> None:
    for kind in ("feeds", "keeps"):
        memory.relate("Zebulon", "quokka", kind)
    memory.rows("analyze relations")
    assert statistics(memory).count("zebulon") > 1
    for kind in ("feeds", "keeps"):
        graph.unrelate(memory.context, Unrelate(source="zebulon", target="quokka", type=kind))
    assert purge.clean(memory.context, day(1))
    assert "zebulon" not in statistics(memory)


@pytest.mark.parametrize("erase", [purge.clean, purge.scrub])
def test_words_that_erased_facts_alone_had_are_gone_at_once_though_redis_lost_its_data(
    memory: Memory, erase: Callable[..., object]
) -> None:
    id_ = memory.add("Zebulon feeds a quokka.")
    search_indexes.count_lexemes(memory.context, "default", day(0))
    memory.forget(id_, at=1, purge=True)
    assert memory.value("select count(*) from lexemes where lexeme = 'zebulon'") == 1
    erase(memory.context, day(1))
    assert memory.value("select count(*) from lexemes") == 0


def test_what_a_killed_task_left_uncounted_is_counted_by_the_next(memory: Memory) -> None:
    memory.add("Zebulon feeds a quokka.")
    signals.mark_grown(memory.context.redis, "default")
    assert signals.take_grown(memory.context.redis) == ["default"]
    search_indexes.count_grown(memory.context, day(0))
    assert memory.value("select count(*) from lexemes where lexeme = 'zebulon'") == 1
    assert signals.take_grown(memory.context.redis) == []


@pytest.mark.usefixtures("sharded")
def test_erasures_reach_the_redis_of_every_group_and_are_kept_until_all_answered(memory: Memory) -> None:
    own = memory.context.settings.redis_url
    second = database_after(own, 4)
    groups = memory.having(brokers=f"{own} {second}", shards=2)
    partly = memory.having(brokers=f"{own} redis://127.0.0.1:1/0", shards=2)
    with own_keys(second) as redis:
        for erase in (purge.clean, purge.scrub):
            erase_facts(memory, 1)
            for id_, answer in (("one", {"text": "Zebulon"}), ("two", {"from": "Zebulon", "to": "Ulm"})):
                idempotency.keep_answer(redis, id_, answer, "mira")
            assert purge.GROUP_IS_AWAY.format(1) in purge.scrub(partly.context, day(1))
            assert not purge.clean(partly.context, day(1))
            assert idempotency.kept_answer(redis, "one")
            await_end_of_cleaning(groups.context)
            assert erase(groups.context, day(1))
            assert idempotency.kept_answer(redis, "one") is idempotency.kept_answer(redis, "two") is None
            await_end_of_cleaning(groups.context)
            assert not purge.clean(groups.context, day(1))


def erase_facts(memory: Memory, count: int) -> None:
    for _ in range(count):
        memory.forget(memory.add(f"Zebulon feeds {uuid4()}."), at=1, purge=True)


def statistics(memory: Memory) -> str:
    return str(memory.value("select coalesce(string_agg(one::text, ' '), '') from pg_stats as one")).lower()


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reduce the lock timeout of all connections, which get it when they are opened."""
    close_pools()
    monkeypatch.setitem(connection.CONFIGURATION, "lock_timeout", "50ms")
    yield
    close_pools()


@pytest.mark.usefixtures("_hasty")
def test_cleaning_that_finds_a_table_in_use_is_left_for_the_next(memory: Memory) -> None:
    erase_facts(memory, 1)
    with connect(memory.context.database_url) as db:
        db.execute("lock table vectors in share update exclusive mode")
        assert not purge.clean(memory.context, day(1))
    assert purge.clean(memory.context, day(1))


@pytest.mark.usefixtures("_hasty")
def test_a_scrub_that_finds_a_table_in_use_says_so(memory: Memory) -> None:
    with connect(memory.context.database_url) as db:
        db.execute("select from vectors")
        with pytest.raises(UnavailableError, match="in use"):
            purge.scrub(memory.context, day(1))


@pytest.mark.skipif(ON_CITUS, reason="rows are removed on each node")
def test_what_an_older_transaction_may_read_is_not_taken_for_cleaned(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "READERS_SECONDS", 0.1)
    with connect(memory.context.database_url) as db:
        db.execute("set transaction isolation level repeatable read")
        db.execute("select from namespaces")
        erase_facts(memory, 1)
        assert not purge.clean(memory.context, day(1))
        with pytest.raises(UnavailableError, match="in use"):
            purge.scrub(memory.context, day(1))
    assert purge.clean(memory.context, day(1))
