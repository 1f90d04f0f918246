"""Time series: the tallies of each namespace and measures of the system, in steps of five minutes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from workers.storage.connection import Connection

STEP = timedelta(minutes=5)
"""The finest resolution."""

LEVELS = ((timedelta(days=1), timedelta(hours=1)), (timedelta(days=14), timedelta(days=1)))
"""Resolution by age: rows older than the first are thinned to one in each of the second."""

KEPT = timedelta(days=366)
"""Retention; the last older row stays, as the state at that time."""

# Counts by each of four columns of `tallies`.
COUNTS = """
    select namespace, jsonb_object_agg(name, facts)
    from (
        select namespace, sum(facts)::bigint as facts,
            case
                when grouping(tier) = 0 then 'tier ' || tier
                when grouping(fidelity) = 0 then 'fidelity ' || fidelity
                when grouping(decay_class) = 0 then 'class ' || decay_class
                else 'forgotten ' || forgotten_reason
            end as name
        from (
            select namespace, tier, fidelity, forgotten_reason, facts,
                case when forgotten_reason is null then coalesce(decay_class, 'none') end as decay_class
            from tallies where namespace = any(%(namespaces)s)
            union all
            select namespace, tier, fidelity, forgotten_reason, facts,
                case when forgotten_reason is null then coalesce(decay_class, 'none') end
            from tally_changes where namespace = any(%(namespaces)s)
        ) as counted
        group by grouping sets (
            (namespace, tier), (namespace, fidelity), (namespace, decay_class), (namespace, forgotten_reason)
        )
        union all
        select namespace, due, 'due' from unnest(%(namespaces)s::int[], %(due)s::bigint[]) as new (namespace, due)
    ) as sums
    where name is not null
    group by namespace
"""

# Separate from `COUNTS`, as Citus crashes at an `insert … select` with a function that is not immutable.
RECORD_TALLIES = """
    insert into tally_history (namespace, at, counts)
    select namespace, date_bin(%(step)s, %(now)s, timestamptz 'epoch'), counts
    from unnest(%(namespaces)s::int[], %(counts)s::jsonb[]) as new (namespace, counts)
    on conflict (namespace, at) do update set counts = excluded.counts
"""

# One index probe per segment. Includes namespaces whose due facts were recorded before and are none now.
DUE = """
    with due as (
        select namespace, sum(facts)::bigint as facts
        from generate_series(0, (select coalesce(max(segment), -1) from activity)) as series (segment)
        cross join lateral (
            select namespace, count(*) as facts from activity
            where activity.segment = series.segment and due_at <= %(now)s
            group by namespace
        ) as counted
        group by namespace
    )
    select coalesce(due.namespace, namespaces.id), coalesce(due.facts, 0)
    from due full join (select id, due_noted from namespaces where due_noted <> 0) as namespaces
        on namespaces.id = due.namespace
    where coalesce(due.facts, 0) <> coalesce(namespaces.due_noted, 0) or due.namespace = any(%(namespaces)s)
"""

RECORD_DUE = """
    update namespaces set due_noted = new.due
    from unnest(%(namespaces)s::int[], %(due)s::bigint[]) as new (namespace, due)
    where id = new.namespace and due_noted <> new.due
"""

# The last row before the start gives the state at the start.
TALLIES_SINCE = """
    (
        select greatest(at, %(since)s), counts from tally_history
        where namespace = %(namespace)s and at <= %(since)s
        order by at desc limit 1
    )
    union all
    (
        select at, counts from tally_history
        where namespace = %(namespace)s and at > %(since)s and at <= %(now)s
        order by at
    )
"""

THIN_TALLIES = """
    delete from tally_history as old
    where at < %(before)s
        and exists (
            select from tally_history as newer
            where newer.namespace = old.namespace and newer.at > old.at and newer.at < %(before)s
                and date_bin(%(step)s, newer.at, timestamptz 'epoch') = date_bin(%(step)s, old.at, timestamptz 'epoch')
        )
"""

DROP_OLD_TALLIES = """
    delete from tally_history as old
    where at < %(before)s
        and exists (
            select from tally_history as newer
            where newer.namespace = old.namespace and newer.at > old.at and newer.at <= %(before)s
        )
"""


def record_tallies(db: Connection, namespaces: Sequence[int], now: datetime) -> None:
    """Record the tallies of these namespaces, and of all whose number of due facts has changed.

    Within five minutes, the last record replaces earlier ones.
    """
    due = dict.fromkeys(namespaces, 0) | dict(db.execute(DUE, {"namespaces": list(namespaces), "now": now}).fetchall())
    if due:
        given = {"namespaces": list(due), "due": list(due.values())}
        counts = {namespace: Jsonb(counted) for namespace, counted in db.execute(COUNTS, given)}
        recorded = {"namespaces": list(counts), "counts": list(counts.values()), "now": now, "step": STEP}
        db.execute(RECORD_TALLIES, recorded)
        db.execute(RECORD_DUE, given)


def tallies_since(
    db: Connection, namespace: int, start: datetime, now: datetime
) -> list[tuple[datetime, dict[str, int]]]:
    """Return (time, counts by name) since an instant, oldest first; the first row is the state at that instant."""
    return db.execute(TALLIES_SINCE, {"namespace": namespace, "since": start, "now": now}).fetchall()


def thin_tallies(db: Connection, now: datetime) -> int:
    """Reduce the resolution of old rows; return how many were deleted."""
    gone = sum(db.execute(THIN_TALLIES, {"before": now - age, "step": step}).rowcount for age, step in LEVELS)
    return gone + db.execute(DROP_OLD_TALLIES, {"before": now - KEPT}).rowcount


# Of waiting tasks the maximum within five minutes, of writes the last value, as it is cumulative.
NOTED = "select waiting from system_history where at = date_bin(%(step)s, %(now)s, timestamptz 'epoch') for update"
RECORD_SYSTEM = """
    insert into system_history (at, waiting, writes)
    values (date_bin(%(step)s, %(now)s, timestamptz 'epoch'), %(waiting)s, %(writes)s)
    on conflict (at) do update set writes = excluded.writes, waiting = excluded.waiting
"""

SYSTEM_SINCE = "select at, waiting, writes from system_history where at > %(since)s and at <= %(now)s order by at"

THIN_SYSTEM = """
    delete from system_history as old
    where at < %(before)s
        and exists (
            select from system_history as newer
            where newer.at > old.at and newer.at < %(before)s
                and date_bin(%(step)s, newer.at, timestamptz 'epoch') = date_bin(%(step)s, old.at, timestamptz 'epoch')
        )
"""

DROP_OLD_SYSTEM = "delete from system_history where at < %(before)s"


def record_system(db: Connection, waiting: dict[str, int], writes: list[int], now: datetime) -> None:
    """Record the waiting tasks by queue, and the cumulative histogram of writes with the bounds of `timings`."""
    at = {"now": now, "step": STEP}
    (noted,) = db.execute(NOTED, at).fetchone() or ({},)
    most = {queue: max(tasks, noted.get(queue, 0)) for queue, tasks in waiting.items()}
    db.execute(RECORD_SYSTEM, at | {"waiting": Jsonb(most), "writes": writes})


def system_since(db: Connection, start: datetime, now: datetime) -> list[tuple[datetime, dict[str, Any], list[int]]]:
    """Return (time, waiting tasks, cumulative writes) since an instant, oldest first."""
    return db.execute(SYSTEM_SINCE, {"since": start, "now": now}).fetchall()


def thin_system(db: Connection, now: datetime) -> int:
    """Reduce the resolution of old rows, as of tallies; return how many were deleted."""
    gone = sum(db.execute(THIN_SYSTEM, {"before": now - age, "step": step}).rowcount for age, step in LEVELS)
    return gone + db.execute(DROP_OLD_SYSTEM, {"before": now - KEPT}).rowcount
