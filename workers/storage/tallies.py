"""Tallies: counts of a namespace's facts, maintained by triggers."""

from dataclasses import dataclass
from datetime import datetime

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
