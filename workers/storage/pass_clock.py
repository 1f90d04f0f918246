"""The pass clock: when the last pass began by the database's clock, and what ended in a gap between two passes."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from psycopg.rows import class_row

from workers.storage.connection import Connection

READ = """
    select at as last, clock_timestamp() as now, pg_postmaster_start_time() as server_started from pass_clock for update
"""

NOTE = """
    insert into pass_clock (at) values (clock_timestamp())
    on conflict (only_row) do update set at = excluded.at
"""

# A branch is aged on purpose.
HOLD = """
    update namespaces set gap_from = coalesce(gap_from, %(last)s), gap_until = %(now)s where branch_of is null
"""

HELD = """
    select id, gap_from, gap_until from namespaces where id = any(%(ids)s) and gap_until is not null
"""

WAITING = "select name from namespaces where gap_until is not null order by name"

# What was held goes the way it would have gone without the gap.
TAKE_BACK = """
    with undone as (
        update namespaces set gap_from = null, gap_until = null, held_since = null where gap_until > %(now)s
        returning id
    )
    update activity set due_at = ends_at
    from undone
    where activity.namespace = undone.id and held
"""


class Reading(NamedTuple):
    """When the last pass began, the present instant, and when the server was started, all by the database's clock."""

    last: datetime
    now: datetime
    server_started: datetime


class Gap(NamedTuple):
    """Between which instants no pass came."""

    began: datetime
    ended: datetime


def read(db: Connection) -> Reading | None:
    """Return what the clocks show, locked until the commit; nothing before the first pass."""
    with db.cursor(row_factory=class_row(Reading)) as cursor:
        return cursor.execute(READ).fetchone()


def note(db: Connection) -> None:
    """Note that a pass over all namespaces begins now."""
    db.execute(NOTE)


def hold(db: Connection, reading: Reading) -> None:
    """Have what ended in a gap wait for confirmation in every namespace; a gap that waits already is widened."""
    db.execute(HOLD, {"last": reading.last, "now": reading.now})


def take_back(db: Connection, reading: Reading) -> int:
    """End the gaps that lie ahead of a clock that was set back; return how many facts were held for one."""
    return db.execute(TAKE_BACK, {"now": reading.now}).rowcount


def waiting(db: Connection) -> list[str]:
    """Return the names of the namespaces that have a gap to be confirmed."""
    return [name for (name,) in db.execute(WAITING)]


def gaps(db: Connection, namespaces: Sequence[int]) -> dict[int, Gap]:
    """Return the gaps of those of these namespaces that have one to be confirmed."""
    return {id_: Gap(began, ended) for id_, began, ended in db.execute(HELD, {"ids": list(namespaces)})}
