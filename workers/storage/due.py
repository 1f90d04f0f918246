"""Due facts: claimed by passes segment by segment, and the decay rules by which their due times were computed."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from workers.core.arrays import Bools, Floats
from workers.core.fading import Faded
from workers.storage import columns
from workers.storage.activity import ANCHORS, Activity, by_column, of_faded, of_keys, rows_of
from workers.storage.connection import Connection, lift_limits

Work: TypeAlias = Literal[
    "decay", "prune", "hard prune", "soft prune", "startup prune", "review", "consolidation", "janitor", "relations"
]
"""The kind of a pass: a prune takes only facts that have expired (hard), are in their last quarter (soft), or both.

A janitor takes the same facts as decay, of one namespace.
"""

TAKEN = """
    (%(namespace)s::int is null or namespace + 0 = %(namespace)s)
        and pass_takes(%(work)s, greatest(confirmed_at, pinned_until), expires_at, %(instant)s)
"""
"""Facts that a pass takes. `+ 0` keeps the planner from reading the whole namespace to find its due facts."""

NEXT_DUE = f"where segment = any(%(segments)s::smallint[]) and due_at <= %(now)s and {TAKEN} order by segment, due_at"

# Locked rows are skipped, so that the tasks of a pass share a segment without waiting for each other.
CLAIM = f"{ANCHORS} {NEXT_DUE} limit %(limit)s for no key update skip locked"

# A locked row may still be due when its lock is released: a redelivered store changes nothing, and a touch may be dated
# before the pass. One row only, as two waiters for several rows in different orders could deadlock.
DUE_LOCKED = f"select fact from anchors {NEXT_DUE} limit 1 for no key update"

WAIT = "set local lock_timeout = '5s'"

# `retired` rather than a column of `facts`: after waiting for a lock, PostgreSQL rechecks only the updated row. Held
# facts may live on by other rules; but those whose explicit lifetime is over would end without their owner's decision.
COMPUTED_AGAIN = """
    not retired and not (held and decay_class_source is not distinct from 'explicit' and expires_at <= {now})
"""

DUE_OR_AGAIN = f"(due_at <= %(now)s or namespace = any(%(again)s) and {COMPUTED_AGAIN.format(now='%(instant)s')})"

PREVIEW = f"""
    {ANCHORS}
    where segment = any(%(segments)s::smallint[])
        and (due_at <= %(now)s or (%(with_held)s and held and ends_at <= %(now)s)) and {TAKEN}
    order by segment, due_at, namespace, fact
    offset %(offset)s
    limit %(limit)s
"""

PREVIEW_AGAIN = PREVIEW.replace("due_at <= %(now)s", DUE_OR_AGAIN)

# The index on segment and due time serves without a segment as well: PostgreSQL skips from one to the next.
DUE_BY = f"""
    {ANCHORS}
    where namespace = %(namespace)s and (due_at <= %(until)s or (%(all)s and not retired))
"""

WRITE_FADED = """
    update activity
    set tier = new.tier, fidelity = new.fidelity, halvings = new.halvings, ends_at = to_timestamp(new.ends_at),
        due_at = to_timestamp(new.due_at), held = new.held, stale = new.stale
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(tier)b::int[], %(fidelity)b::int[], %(halvings)b::int[],
        %(ends_at)b::float8[], %(due_at)b::float8[], %(held)b::bool[], %(stale)b::bool[])
        as new (namespace, fact, tier, fidelity, halvings, ends_at, due_at, held, stale)
    where activity.namespace = new.namespace and activity.fact = new.fact
"""

# A fact that was restored meanwhile has other anchors.
WRITE_ENDS = """
    update activity set ends_at = to_timestamp(new.ends_at)
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(ends_at)b::float8[]) as new (namespace, fact, ends_at)
    where activity.namespace = new.namespace and activity.fact = new.fact and retired
"""

# One index probe per segment; its cost depends on the number of due facts.
SEGMENTS = f"""
    select series.segment, due.facts
    from generate_series(0, (select coalesce(max(segment), -1) from activity)) as series (segment)
    cross join lateral (
        select count(*) as facts from anchors
        where anchors.segment = series.segment
            and (due_at <= %(now)s or (%(with_held)s and held and ends_at <= %(now)s)) and {TAKEN}
    ) as due
    where due.facts > 0
"""

SEGMENTS_AGAIN = SEGMENTS.replace("due_at <= %(now)s", DUE_OR_AGAIN)

MAKE_HELD_DUE = """
    update activity set due_at = ends_at
    where held and (%(namespace)s::int is null or namespace = %(namespace)s)
"""

MAKE_DUE = """
    update activity set due_at = least(due_at, %(now)s)
    where namespace = %(namespace)s and fact = any(%(ids)s) and not retired
"""


def make_due(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Make facts of a namespace due at an instant, unless they are due earlier."""
    db.execute(MAKE_DUE, {"namespace": namespace, "ids": list(ids), "now": now})


def claim(
    db: Connection,
    segments: Sequence[int],
    now: datetime,
    limit: int,
    *,
    work: Work = "decay",
    namespace: int | None = None,
) -> Activity:
    """Return the next due facts of some segments, of each oldest first, locked until the commit.

    Rows locked by other transactions come last; those that stay locked for five seconds are left for the next pass.
    """
    given = _as_of(now, work) | {"segments": [*segments], "limit": limit, "namespace": namespace}
    rows = rows_of(db.execute(CLAIM, given, binary=True))
    while not len(rows) and _came_free(db, given):
        rows = rows_of(db.execute(CLAIM, given, binary=True))
    return rows


def _came_free(db: Connection, given: dict[str, Any]) -> bool:
    """Wait for a due row that another transaction has locked; return whether it is free now and still due."""
    with suppress(psycopg.errors.LockNotAvailable), db.transaction(force_rollback=True):
        db.execute(WAIT)
        return db.execute(DUE_LOCKED, given).fetchone() is not None
    return False


def preview(
    db: Connection,
    segments: Sequence[int],
    now: datetime,
    limit: int,
    offset: int,
    *,
    with_held: bool,
    work: Work = "decay",
    namespace: int | None = None,
    again: Sequence[int] = (),
) -> Activity:
    """Return a page of the due facts of some segments without locking them; `with_held` includes held facts.

    Those of the namespaces `again` are all due.
    """
    page = {"segments": [*segments], "limit": limit, "offset": offset, "again": [*again]}
    given = _as_of(now, work) | page | {"with_held": with_held, "namespace": namespace}
    return rows_of(db.execute(PREVIEW_AGAIN if again else PREVIEW, given))


BATCH = 10_000
"""Facts that are read at once."""


def due_by(db: Connection, namespace: int, until: datetime, *, every: bool = False) -> Iterator[Activity]:
    """Yield batches of a namespace's facts that are due by an instant.

    `every` yields all live facts, for when the due times were computed by other rules.
    """
    with db.cursor("due") as cursor:
        cursor.execute(DUE_BY, {"namespace": namespace, "until": until, "all": every}, binary=True)
        while rows := cursor.fetchmany(BATCH):
            yield by_column(rows)


def write_faded(db: Connection, rows: Activity, faded: Faded, held: Bools) -> None:
    """Write the decay state of facts after a pass: tier, fidelity, halvings, staleness, end and next due time."""
    db.execute(WRITE_FADED, of_keys(rows) | of_faded(faded) | {"held": columns.bools(held)})


def write_ends(db: Connection, rows: Activity, ends_at: Floats) -> None:
    """Write when those of n facts that are not live ended by themselves, in epoch seconds; infinite if never."""
    db.execute(WRITE_ENDS, of_keys(rows) | {"ends_at": columns.floats(ends_at)})


def segments(
    db: Connection,
    now: datetime,
    *,
    work: Work = "decay",
    with_held: bool = False,
    namespace: int | None = None,
    again: Sequence[int] = (),
) -> dict[int, int]:
    """Return the number of due facts by segment; `with_held` includes held facts.

    Those of the namespaces `again` are all due.
    """
    given = _as_of(now, work) | {"with_held": with_held, "namespace": namespace, "again": [*again]}
    return dict(db.execute(SEGMENTS_AGAIN if again else SEGMENTS, given).fetchall())


def make_held_due(db: Connection, namespace: int | None = None) -> int:
    """Make held facts due again; return how many."""
    return db.execute(MAKE_HELD_DUE, {"namespace": namespace}).rowcount


def _as_of(now: datetime, work: Work) -> dict[str, Any]:
    return {"now": now, "instant": now.timestamp(), "work": work}


RULES = "select rules from fading_rules"

REPLACE_RULES = """
    insert into fading_rules (rules) values (%(rules)s)
    on conflict (only_row) do update set rules = excluded.rules
"""

FACTS_DUE = f"""
    update activity set due_at = least(due_at, %(now)s)
    where (%(ids)s::int[] is null or namespace = any(%(ids)s)) and {COMPUTED_AGAIN.format(now="%(now)s")}
"""


def rules(db: Connection) -> dict[str, Any] | None:
    """Return the decay rules of the last pass; none before the first."""
    row = db.execute(RULES).fetchone()
    return None if row is None else dict(row[0])


def replace_rules(db: Connection, rules: dict[str, Any]) -> None:
    """Store the decay rules of the next pass."""
    db.execute(REPLACE_RULES, {"rules": Jsonb(rules)})


def make_facts_due(db: Connection, namespaces: Sequence[int] | None, now: datetime) -> int:
    """Make every live fact of some namespaces, or of all, due; return how many."""
    lift_limits(db)
    return db.execute(FACTS_DUE, {"ids": namespaces, "now": now}).rowcount
