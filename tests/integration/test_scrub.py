"""Scrub and cleaning: what they may not or cannot do now is told, or done later."""

from uuid import uuid4

import psycopg
import pytest
from memory import Memory
from psycopg import sql

from workers.errors import UnavailableError
from workers.forgetting import scrub
from workers.storage import connection, signals
from workers.storage.connection import connect


def test_a_role_that_owns_nothing_is_told_what_it_cannot_reach(memory: Memory) -> None:
    role = f"plain_{uuid4().hex}"
    with psycopg.connect(memory.context.database_url, autocommit=True) as db:
        db.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
        try:
            stranger = memory.having(database_url=memory.context.database_url.replace("postgres@", f"{role}@"))
            told = scrub.scrub(stranger.context).left
        finally:
            db.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
    assert told == [scrub.TABLES_ARE_KEPT, scrub.LOG_IS_KEPT, scrub.OUT_OF_REACH]


def test_cleaning_is_done_once_for_all_that_was_erased(memory: Memory) -> None:
    assert not scrub.clean(memory.context)
    signals.mark_erased(memory.context.redis)
    signals.mark_erased(memory.context.redis)
    assert scrub.clean(memory.context)
    assert not scrub.clean(memory.context)


def test_cleaning_drops_the_statistics_of_what_was_erased_even_if_nothing_is_left(memory: Memory) -> None:
    ids = [memory.add(f"Zebulon {n}", entity=f"Zebulon {n % 5}", key="quokka", value="Zebulon") for n in range(20)]
    memory.rows("analyze facts")
    assert "zebulon" in statistics(memory)
    memory.forget(*ids, at=1, purge=True)
    signals.mark_erased(memory.context.redis)
    assert scrub.clean(memory.context)
    assert "zebulon" not in statistics(memory)


def statistics(memory: Memory) -> str:
    return str(memory.value("select coalesce(string_agg(one::text, ' '), '') from pg_stats as one")).lower()


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for locks no longer than a moment."""
    monkeypatch.setattr(connection, "CONFIGURE", connection.CONFIGURE.replace("'20s'", "'50ms'"))


@pytest.mark.usefixtures("_hasty")
def test_cleaning_that_finds_a_table_in_use_is_left_for_the_next(memory: Memory) -> None:
    signals.mark_erased(memory.context.redis)
    with connect(memory.context.database_url) as db:
        db.execute("lock table vectors in share update exclusive mode")
        assert not scrub.clean(memory.context)
    assert scrub.clean(memory.context)


@pytest.mark.usefixtures("_hasty")
def test_a_scrub_that_finds_a_table_in_use_says_so(memory: Memory) -> None:
    with connect(memory.context.database_url) as db:
        db.execute("select from vectors")
        with pytest.raises(UnavailableError, match="in use"):
            scrub.scrub(memory.context)
