"""Limits: how much of a namespace may end by itself within a day and a week, and how much did."""

from datetime import datetime
from uuid import UUID

from workers.core.forget_limit import Ending
from workers.storage.connection import Connection

# Each transaction that lets facts of a namespace end waits here for the others, after it has locked the facts.
LOCK = "select pg_advisory_xact_lock(%(key)s)"
LOCK_FAMILY = (0x0EBB + 4) << 32

ROOM = "select forget_room(%(namespace)s, %(now)s)"

SPEND = """
    insert into endings (namespace, at, facts, asked)
    values (%(namespace)s, date_trunc('minute', %(now)s), %(facts)s, %(asked)s)
    on conflict (namespace, at) do update
    set facts = endings.facts + excluded.facts, asked = endings.asked + excluded.asked
"""

CURRENT = "select a_day, a_week from forget_limits"
SET = "update forget_limits set a_day = %(a_day)s, a_week = %(a_week)s"

# No more are counted than it takes to answer; the index on segment and due time serves without a segment as well.
DUE = """
    select count(*) from (
        select from activity where namespace = %(namespace)s and due_at <= %(now)s and not held limit %(limit)s
    ) as few
"""

SPENT = """
    select date_part('epoch', at), facts, asked from endings
    where namespace = %(namespace)s and at > %(now)s::timestamptz - interval '7 days'
"""

PASSED = "select last_pass(%(namespace)s)"

CUTOFF = """
    select last_ends_at, last_fact from decay_allowances
    where run = %(run)s and namespace = %(namespace)s
"""

SET_CUTOFF = """
    insert into decay_allowances (run, namespace, allowed, last_ends_at, last_fact)
    values (%(run)s, %(namespace)s, %(allowed)s, %(ends_at)s, %(fact)s)
    on conflict do nothing
"""

DROP_OLD = "delete from endings where at < clock_timestamp() - interval '30 days'"

Cutoff = tuple[float, UUID | None]
"""The last fact in order that may go: when it ends in epoch seconds, and its id; infinite where all may."""


def lock(db: Connection, namespace: int) -> None:
    """Let no other transaction end facts of a namespace before the commit; lock namespaces in order of their ids."""
    db.execute(LOCK, {"key": LOCK_FAMILY + namespace})


def room(db: Connection, namespace: int, now: datetime) -> int | None:
    """Return how many more facts of a namespace may end by themselves at `now`; nothing where there is no limit."""
    row = db.execute(ROOM, {"namespace": namespace, "now": now}).fetchone()
    return None if row is None or row[0] is None else int(row[0])


def spend(db: Connection, namespace: int, facts: int, now: datetime, *, asked: int = 0) -> None:
    """Count facts that ended by themselves, and those that a pass ended because it was asked for."""
    if facts or asked:
        db.execute(SPEND, {"namespace": namespace, "facts": facts, "asked": asked, "now": now})


def current(db: Connection) -> tuple[float, float]:
    """Return the share of a namespace that may end by itself within a day, and within a week."""
    row = db.execute(CURRENT).fetchone()
    return (float(row[0]), float(row[1])) if row else (0.0, 0.0)


def replace(db: Connection, a_day: float, a_week: float) -> None:
    """Set these shares, which readers go by as well."""
    db.execute(SET, {"a_day": a_day, "a_week": a_week})


def due(db: Connection, namespace: int, now: datetime, limit: int) -> int:
    """Return how many facts of a namespace a pass at `now` would look at, as far as `limit`."""
    row = db.execute(DUE, {"namespace": namespace, "now": now, "limit": limit}).fetchone()
    return int(row[0]) if row else 0


def spent(db: Connection, namespace: int, now: datetime) -> list[Ending]:
    """Return when facts ended within the last week, and how many by themselves and asked for each time."""
    return db.execute(SPENT, {"namespace": namespace, "now": now}).fetchall()


def last_pass(db: Connection, namespace: int) -> datetime | None:
    """Return the instant of the last finished pass over a namespace, if there was one."""
    row = db.execute(PASSED, {"namespace": namespace}).fetchone()
    return row[0] if row else None


def cutoff(db: Connection, run: UUID, namespace: int) -> Cutoff | None:
    """Return up to which fact a run lets a namespace's facts end, if that is settled."""
    return db.execute(CUTOFF, {"run": run, "namespace": namespace}).fetchone()


def set_cutoff(db: Connection, run: UUID, namespace: int, allowed: int, last: Cutoff) -> None:
    """Settle up to which fact a run lets a namespace's facts end."""
    given = {"run": run, "namespace": namespace, "allowed": allowed, "ends_at": last[0], "fact": last[1]}
    db.execute(SET_CUTOFF, given)


def drop_old(db: Connection) -> None:
    """Drop what ended too long ago to count, in every namespace."""
    db.execute(DROP_OLD)
