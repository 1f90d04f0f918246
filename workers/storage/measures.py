"""Measures: what all namespaces hold together, and how far behind decay is; read where it is counted or indexed."""

from datetime import datetime
from typing import Any

from workers.storage.connection import Connection

HELD = """
    select tier, fidelity, forgotten_reason, sum(facts)::bigint
    from (
        select tier, fidelity, forgotten_reason, facts from tallies
        union all
        select tier, fidelity, forgotten_reason, facts from tally_changes
    ) as counted
    group by 1, 2, 3
    having sum(facts) <> 0
"""

# One probe of the index a segment.
OLDEST_DUE = """
    select min(first.due_at)
    from generate_series(0, (select coalesce(max(segment), -1) from activity)) as series (segment)
    cross join lateral (
        select due_at from activity where activity.segment = series.segment order by due_at limit 1
    ) as first
    where first.due_at <= %(now)s
"""

LATEST = """
    select finished_at, date_part('epoch', finished_at - started_at),
        (select coalesce(sum(duration_ms), 0) from decay_parts where run = decay_runs.id)
    from decay_runs
    where work = 'decay' and not dry_run and finished_at is not null
    order by started_at desc
    limit 1
"""


def held(db: Connection) -> list[tuple[int | None, int | None, str | None, int]]:
    """Return (tier, fidelity, why forgotten, facts) of all namespaces together."""
    return db.execute(HELD).fetchall()


def oldest_due(db: Connection, now: datetime) -> datetime | None:
    """Return since when the fact is due that has been longest, if any is."""
    row = db.execute(OLDEST_DUE, {"now": now}).fetchone()
    return row[0] if row else None


def last_pass(db: Connection) -> tuple[Any, ...] | None:
    """Return when the last pass ended, and how many seconds it took and milliseconds its tasks worked."""
    return db.execute(LATEST).fetchone()
