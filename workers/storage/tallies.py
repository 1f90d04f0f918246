"""Tallies: counts of facts, maintained by triggers; their time series, and those of measures of the system."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from workers.storage.connection import Connection, fetch_all, number

# One query, so that each change is read exactly once, as such or in the totals.
COUNTED = """(
        select * from tallies where namespace = %(namespace)s
        union all
        select * from tally_changes where namespace = %(namespace)s
    ) as counted
"""

OF_EACH = "namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, forgotten_reason"
"""The columns that identify a tally."""

READ = f"""
    select decay_class, decay_class_source, tier, fidelity, branch, held, stale, forgotten_reason,
        sum(facts)::bigint as facts
    from {COUNTED}
    group by {OF_EACH}
    having sum(facts) <> 0
"""

LIVE = f"select coalesce(sum(facts), 0)::bigint from {COUNTED} where forgotten_reason is null"

FORGOTTEN = LIVE.replace("is null", "is not null")

# A fact is due a moment after its end. PostgreSQL skip-scans the index on segment and due time, or intersects it with
# the primary key. An index by namespace would be a little faster here, but cost each pass 8 to 23 % more log and each
# fact 60 bytes.
DUE = """
    select count(*) filter (where due_at <= %(now)s),
        count(*) filter (
            where has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        )
    from activity
    where namespace = %(namespace)s and due_at <= %(now)s::timestamptz + interval '1 second'
"""

PINNED = """
    select count(*) from activity where namespace = %(namespace)s and pinned_until > %(now)s and not retired
"""

TRY_LOCK = "select pg_try_advisory_xact_lock(%(key)s)"
LOCK = "select pg_advisory_xact_lock(%(key)s)"
SETTLING_LOCK = 0x0EBB + 2
AUDITING_LOCK = 0x0EBB + 6

SETTLE = f"""
    with taken as (
        delete from tally_changes where ctid = any(array(select ctid from tally_changes limit %(limit)s))
        returning *
    ),
    added as (
        insert into tallies
        select {OF_EACH}, sum(facts)
        from taken
        group by {OF_EACH}
        having sum(facts) <> 0
        on conflict ({OF_EACH}) do update set facts = tallies.facts + excluded.facts
    )
    select count(*), array_agg(distinct namespace) from taken
"""

# One statement, so that facts and counts are of one snapshot. Corrections are inserted as changes, which blocks no
# writer.
AUDIT = f"""
    with wrong as (
        select {OF_EACH}, sum(facts)::bigint as facts
        from (
            select * from tallies
            union all
            select * from tally_changes
            union all
            select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, null, -count(*)
            from activity where not retired group by 1, 2, 3, 4, 5, 6, 7, 8
            union all
            select namespace, null, null, null, null, null, null, null, forgotten_reason, -count(*)
            from facts where forgotten_reason is not null and superseded_at is null group by 1, 9
            union all
            select namespace, null, null, null, null, null, null, null, deep_reason(body), -count(*)
            from deep group by 1, 9
        ) as counted
        where %(own)s::int is null or namespace = %(own)s
        group by {OF_EACH}
        having sum(facts) <> 0
    ),
    mended as (
        insert into tally_changes ({OF_EACH}, facts) select {OF_EACH}, -facts from wrong where %(mend)s
    )
    select coalesce(sum(facts) filter (where facts > 0), 0)::bigint,
        coalesce(-sum(facts) filter (where facts < 0), 0)::bigint
    from wrong
"""

DEEP = "deep "
"""Prefix of the reasons of facts in deep memory."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of live facts with these values, or of facts forgotten for a reason."""

    decay_class: str | None
    decay_class_source: str | None
    tier: int | None
    fidelity: int | None
    branch: int | None
    held: bool | None
    stale: bool | None
    forgotten_reason: str | None
    facts: int

    @property
    def deep(self) -> bool:
        """Return whether the facts are in deep memory."""
        return (self.forgotten_reason or "").startswith(DEEP)

    @property
    def reason(self) -> str:
        """Return why the facts were forgotten."""
        return (self.forgotten_reason or "").removeprefix(DEEP)


def read(db: Connection, namespace: int) -> list[Tally]:
    """Return the counts of a namespace."""
    return fetch_all(db, Tally, READ, {"namespace": namespace})


def live(db: Connection, namespace: int) -> int:
    """Return the number of facts that are neither forgotten nor superseded."""
    return number(db, LIVE, {"namespace": namespace})


def forgotten(db: Connection, namespace: int) -> int:
    """Return the number of facts that are forgotten and not erased, in deep memory or not."""
    return number(db, FORGOTTEN, {"namespace": namespace})


def due(db: Connection, namespace: int, now: datetime) -> tuple[int, int]:
    """Return the number of facts due at `now`, and the number of those that have ended."""
    row = db.execute(DUE, {"namespace": namespace, "now": now}).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def pinned(db: Connection, namespace: int, now: datetime) -> int:
    """Return the number of live facts that are pinned at `now`."""
    return number(db, PINNED, {"namespace": namespace, "now": now})


def settle(db: Connection, limit: int) -> tuple[int, list[int] | None]:
    """Add changes to the totals; return their number and namespaces, or 0 and None if another transaction does it."""
    if not number(db, TRY_LOCK, {"key": SETTLING_LOCK}):
        return 0, None
    row = db.execute(SETTLE, {"limit": limit}).fetchone()
    return (int(row[0]), row[1] or []) if row else (0, [])


def wait_for_settling(db: Connection) -> None:
    """Block `settle` until the commit, after waiting for a running one."""
    db.execute(LOCK, {"key": SETTLING_LOCK})


def audit(db: Connection, own: int | None, *, mend: bool) -> int:
    """Return by how many facts the counts of one namespace, or all, are wrong; `mend` corrects them."""
    if mend:
        db.execute(LOCK, {"key": AUDITING_LOCK})
    row = db.execute(AUDIT, {"own": own, "mend": mend}).fetchone()
    return max(row) if row else 0


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
            from (select * from tallies union all select * from tally_changes) as every
            where namespace = any(%(namespaces)s)
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
DUE_CHANGED = """
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
    due = dict.fromkeys(namespaces, 0) | dict(
        db.execute(DUE_CHANGED, {"namespaces": list(namespaces), "now": now}).fetchall()
    )
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
    return _thin(db, THIN_TALLIES, DROP_OLD_TALLIES, now)


def _thin(db: Connection, thin: str, drop_old: str, now: datetime) -> int:
    gone = sum(db.execute(thin, {"before": now - age, "step": step}).rowcount for age, step in LEVELS)
    return gone + db.execute(drop_old, {"before": now - KEPT}).rowcount


# Of waiting tasks the maximum within five minutes, of writes the last value, as it is cumulative.
NOTED = "select waiting from system_history where at = date_bin(%(step)s, %(now)s, timestamptz 'epoch') for update"
RECORD_SYSTEM = """
    insert into system_history (at, waiting, writes)
    values (date_bin(%(step)s, %(now)s, timestamptz 'epoch'), %(waiting)s, %(writes)s)
    on conflict (at) do update set writes = excluded.writes, waiting = excluded.waiting
"""

SYSTEM_SINCE = "select at, waiting, writes from system_history where at > %(since)s and at <= %(now)s order by at"

THIN_SYSTEM = THIN_TALLIES.replace("tally_history", "system_history").replace(
    "newer.namespace = old.namespace and ", ""
)

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
    return _thin(db, THIN_SYSTEM, DROP_OLD_SYSTEM, now)
