"""A database without free connections: callers get an error in time that says what to do."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from live_system import LiveSystem, eventually
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from workers.errors import NoConnectionError

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.skipif("EBB_TEST_PGBOUNCER" in os.environ, reason="PgBouncer connects as its own role"),
]


def answered(read: Callable[[str], Any]) -> Any:
    """Return the answer of a read, or None while there is no free connection."""
    with suppress(NoConnectionError):
        return read("dentist")


@dataclass
class Crowded:
    """A system whose role may connect or not."""

    system: LiveSystem
    owner: str
    role: sql.Identifier

    def shut(self) -> None:
        """End its connections, and let it have no others."""
        name = self.role.as_string().strip('"')
        with psycopg.connect(self.owner, autocommit=True) as db:
            db.execute(sql.SQL("alter role {} nosuperuser connection limit 0").format(self.role))
            db.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", [name])

    def open(self) -> None:
        """Let it connect again."""
        with psycopg.connect(self.owner, autocommit=True) as db:
            db.execute(sql.SQL("alter role {} superuser connection limit -1").format(self.role))


@pytest.fixture
def crowded(idle: LiveSystem) -> Iterator[Crowded]:
    owner, role = idle.database_url, sql.Identifier(f"crowded_{conninfo_to_dict(idle.database_url)['dbname']}")
    with psycopg.connect(owner, autocommit=True) as db:
        db.execute(sql.SQL("create role {} superuser login").format(role))
        idle.database_url = make_conninfo(owner, user=role.as_string().strip('"'))
        yield Crowded(idle, owner, role)
        idle.stop()
        idle.database_url = owner
        db.execute(sql.SQL("drop role {}").format(role))


def test_a_read_without_free_connection_is_refused_with_what_to_do(crowded: Crowded) -> None:
    crowded.system.start("worker")
    with crowded.system.client() as memory:
        assert memory.store("The dentist is in Mill Lane.")["action"] == "added"
        crowded.shut()
        reads = (memory.recall, memory.context, memory.lookup)
        for read in reads:
            with pytest.raises(NoConnectionError, match="max_connections"):
                read("dentist")
        crowded.open()
        for read in reads:
            eventually(lambda read=read: answered(read), "it works again")  # type: ignore[misc]


def fate_of_links(system: LiveSystem) -> str:
    """Return whether the linking of facts failed, or is tried again later; nothing before that."""
    if "Task memory.autolink" in system.logs(characters=100_000):
        return "failed"
    waiting = [one["request"]["name"] for answer in system.ask("scheduled").values() for one in answer]
    return "waits" if "memory.autolink" in waiting else ""


def test_what_follows_a_store_is_done_after_an_outage_however_long_that_was(crowded: Crowded) -> None:
    system = crowded.system
    system.start("all")
    with system.client() as memory:
        ids = [memory.store(f"Mira feeds her three cats at {hour} every day.")["id"] for hour in ("six", "seven")]
    crowded.shut()
    long_ago = {"retries": 6}  # other tasks have failed by then
    system.control.send_task("memory.autolink", kwargs={"namespace": "default", "ids": ids}, **long_ago)
    assert eventually(lambda: fate_of_links(system), "it meets the outage") == "waits"
    crowded.open()
    with psycopg.connect(crowded.owner, autocommit=True) as db:
        eventually(lambda: db.execute("select from links").fetchone() is not None, "the facts are linked")
