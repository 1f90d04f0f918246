"""The database server: its clock, whether it accepts writes, and totals over all namespaces."""

from datetime import UTC, datetime
from typing import Any

import psycopg

from workers.errors import UnavailableError
from workers.storage.connection import READ_WAIT_SECONDS, Connection, number, transaction

CLOCK = "select clock_timestamp()"


def read_clock(url: str) -> datetime:
    """Return the time by the database's clock.

    Raises:
        NoConnectionError: there is no connection free within `READ_WAIT_SECONDS`.
        UnavailableError: the database does not answer.
    """
    with transaction(url, wait=READ_WAIT_SECONDS) as db:
        return now(db)


def now(db: Connection) -> datetime:
    """Return the time by the database's clock."""
    row = db.execute(CLOCK).fetchone()
    assert row is not None  # noqa: S101 - the statement always returns a row
    shown: datetime = row[0]
    return shown.astimezone(UTC)


# The cheapest write: a record in the write-ahead log, flushed by the commit.
PROBE = "select pg_logical_emit_message(true, 'ebb', 'probe')"

READ_ONLY = "select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean"


def try_write(db: Connection) -> None:
    """Write something and commit it.

    Raises:
        UnavailableError: the database does not accept writes.
    """
    row = db.execute(READ_ONLY).fetchone()
    if row is not None and row[0]:
        raise UnavailableError("PostgreSQL takes no writes: it is read-only, or a replica that follows another.")
    try:
        db.execute(PROBE)
        db.commit()
    except psycopg.Error as error:
        raise UnavailableError(f"PostgreSQL takes no writes: {str(error).strip()}.") from None


FACT_TOTALS = """
    select tier, fidelity, forgotten_reason, coalesce(held, false), sum(facts)::bigint
    from (
        select tier, fidelity, forgotten_reason, held, facts from tallies
        union all
        select tier, fidelity, forgotten_reason, held, facts from tally_changes
    ) as counted
    group by 1, 2, 3, 4
    having sum(facts) <> 0
"""

BYTES = "select pg_database_size(current_database())"

# One index probe per segment.
OLDEST_DUE = """
    select min(first.due_at)
    from generate_series(0, (select coalesce(max(segment), -1) from activity)) as series (segment)
    cross join lateral (
        select due_at from activity where activity.segment = series.segment order by due_at limit 1
    ) as first
    where first.due_at <= %(now)s
"""

NEWEST_RUN = """
    select finished_at, date_part('epoch', finished_at - started_at),
        (select coalesce(sum(duration_ms), 0) from decay_parts where run = decay_runs.id)
    from decay_runs
    where work = 'decay' and not dry_run and finished_at is not null
    order by started_at desc
    limit 1
"""


def fact_totals(db: Connection) -> list[tuple[int | None, int | None, str | None, bool, int]]:
    """Return (tier, fidelity, forgotten reason, held, facts) over all namespaces."""
    return db.execute(FACT_TOTALS).fetchall()


def size(db: Connection) -> int:
    """Return the bytes of the database on its disk."""
    return number(db, BYTES)


def oldest_due(db: Connection, now: datetime) -> datetime | None:
    """Return the earliest due time before `now`, if any fact is due."""
    row = db.execute(OLDEST_DUE, {"now": now}).fetchone()
    return row[0] if row else None


def last_pass(db: Connection) -> tuple[Any, ...] | None:
    """Return the end of the last pass, its duration in seconds and its tasks' time in milliseconds."""
    return db.execute(NEWEST_RUN).fetchone()
