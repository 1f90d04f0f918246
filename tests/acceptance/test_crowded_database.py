"""A database without free connections: callers get an error in time that says what to do."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from live_system import LiveSystem, eventually
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from workers.errors import NoConnectionError

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif("EBB_TEST_PGBOUNCER" in os.environ, reason="PgBouncer connects as its own role"),
]


def answered(read: Callable[[str], Any]) -> Any:
    """Return the answer of a read, or None while there is no free connection."""
    with suppress(NoConnectionError):
        return read("dentist")


def test_a_read_without_free_connection_is_refused_with_what_to_do(idle: LiveSystem) -> None:
    owner, role = idle.database_url, sql.Identifier(f"crowded_{conninfo_to_dict(idle.database_url)['dbname']}")
    with psycopg.connect(owner, autocommit=True) as db:
        db.execute(sql.SQL("create role {} superuser login").format(role))
        idle.database_url = make_conninfo(owner, user=role.as_string().strip('"'))
        idle.start("worker")
        with idle.client() as memory:
            assert memory.store("The dentist is in Mill Lane.")["action"] == "added"
            db.execute(sql.SQL("alter role {} nosuperuser connection limit 0").format(role))
            db.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where usename = %s",
                [role.as_string().strip('"')],
            )
            reads = (memory.recall, memory.context, memory.lookup)
            for read in reads:
                with pytest.raises(NoConnectionError, match="max_connections"):
                    read("dentist")
            db.execute(sql.SQL("alter role {} superuser connection limit -1").format(role))
            for read in reads:
                eventually(lambda read=read: answered(read), "it works again")  # type: ignore[misc]
        idle.stop()
        db.execute(sql.SQL("drop role {}").format(role))
