"""Past runs: what passes did, as whoever looks back sees it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

# What a pass over all namespaces did is not told to one of them.
LATEST = """
    select decay_runs.id, work, namespaces.name as namespace, planned_for, started_at, finished_at,
        slot is not null as scheduled, dry_run, force, done.*
    from decay_runs
    left join namespaces on namespaces.id = decay_runs.namespace
    left join lateral (
        select coalesce(sum(processed), 0)::bigint as processed, coalesce(sum(changed), 0)::bigint as changed,
            coalesce(sum(compressed), 0)::bigint as compressed,
            coalesce(sum(fingerprinted), 0)::bigint as fingerprinted,
            coalesce(sum(expired + faded + culled + aged), 0)::bigint as forgotten,
            coalesce(sum(held), 0)::bigint as held,
            coalesce(sum(duration_ms), 0)::float8 as duration_ms
        from decay_parts where run = decay_runs.id
    ) as done on %(everything)s or namespaces.name = %(namespace)s
    where (%(everything)s or decay_runs.namespace is null or namespaces.name = %(namespace)s)
        and (%(before)s::timestamptz is null or started_at < %(before)s)
    order by started_at desc
    limit %(limit)s
"""

# With their parts and allowances, but never the last, by which a pause is noticed. They began by this clock, whatever
# instant they were for.
DROP_OLD = """
    delete from decay_runs
    where id = any (array(
        select id from decay_runs
        where finished_at is not null and started_at < clock_timestamp() - %(older_than)s
            and started_at < (select max(started_at) from decay_runs where finished_at is not null)
        order by started_at limit %(limit)s
    ))
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One pass: when, what for, whose facts it took (none: all), and what it did, as far as that may be told."""

    id: UUID
    work: str
    namespace: str | None
    planned_for: datetime
    started_at: datetime
    finished_at: datetime | None
    scheduled: bool
    dry_run: bool
    force: bool
    processed: int | None
    changed: int | None
    compressed: int | None
    fingerprinted: int | None
    forgotten: int | None
    held: int | None
    duration_ms: float | None


def latest(db: Connection, namespace: str, limit: int, before: datetime | None, *, everything: bool) -> list[Run]:
    """Return the latest runs that took a namespace's facts, or with `everything` any, the newest first."""
    given = {"namespace": namespace, "limit": limit, "before": before, "everything": everything}
    with db.cursor(row_factory=class_row(Run)) as cursor:
        return cursor.execute(LATEST, given).fetchall()


def drop_old(db: Connection, older_than: timedelta, limit: int) -> int:
    """Drop up to `limit` finished runs that began so long ago, the oldest first; return how many."""
    return db.execute(DROP_OLD, {"older_than": older_than, "limit": limit}).rowcount
