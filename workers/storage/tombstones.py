"""Tombstones: facts that are hidden and can be restored until they are erased; how facts stand."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from workers.errors import UnavailableError
from workers.storage import deep
from workers.storage.connection import Connection, number
from workers.storage.facts import WISHED

STANDINGS = """
    select id, hash, forgotten_at, forgotten_reason as reason, superseded_at, superseded_by, supersedes_id,
        coalesce(has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s), false) as over
    from facts
    left join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)s)
"""

# The event keeps what the tombstone said.
REVIVE = """
    with old as (
        select id, forgotten_reason, forgotten_by from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and forgotten_at is not null
    ),
    back as (
        update facts set forgotten_at = null, forgotten_reason = null, forgotten_by = null, tombstone_at = null
        from old
        where facts.namespace = %(namespace)s and facts.id = old.id
        returning facts.id, old.forgotten_reason as reason, old.forgotten_by as run
    )
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, id, %(now)s, %(what)s,
        jsonb_strip_nulls(jsonb_build_object('reason', reason, 'run', run, 'by', %(by)s::text))
    from back
"""

# A date is wrong where the clock of the machine that forgot was, so either date counts.
FOUND = """
    select id, text, kind, forgotten_reason as reason, forgotten_at, tombstone_at, forgotten_by as run
    from facts
    where namespace = %(namespace)s and forgotten_at is not null and forgotten_reason = any(%(reasons)s)
        and (%(run)s::uuid is null or forgotten_by = %(run)s)
        and (%(since)s::timestamptz is null or greatest(forgotten_at, tombstone_at) >= %(since)s)
        and (%(until)s::timestamptz is null or least(forgotten_at, tombstone_at) < %(until)s)
        and (%(at)s::timestamptz is null or (forgotten_at, id) < (%(at)s, %(fact)s::uuid))
    order by forgotten_at desc, id desc
    limit %(limit)s
"""

COUNT_FOUND = """
    select count(*)
    from facts
    where namespace = %(namespace)s and forgotten_at is not null and forgotten_reason = any(%(reasons)s)
        and (%(run)s::uuid is null or forgotten_by = %(run)s)
        and (%(since)s::timestamptz is null or greatest(forgotten_at, tombstone_at) >= %(since)s)
        and (%(until)s::timestamptz is null or least(forgotten_at, tombstone_at) < %(until)s)
"""

# Activity first, as in every transaction. What another transaction has locked is left for the next batch. What ended by
# itself sinks into deep memory instead, unless it was superseded before.
CLAIM_OLD = """
    select activity.namespace, activity.fact
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where forgotten_at < %(before)s and (%(simulated)s or coalesce(tombstone_at < %(before)s, true))
        and (forgotten_reason = any(%(wished)s) or superseded_at is not null)
        and (%(namespace)s::int is null or facts.namespace = %(namespace)s)
        and (%(in_gaps)s or not exists (
            select from namespaces where namespaces.id = facts.namespace and gap_until is not null
        ))
    order by forgotten_at
    limit %(limit)s
    for no key update of activity skip locked
"""

COUNT_OLD = """
    select count(*) from facts
    where forgotten_at < %(before)s and (%(simulated)s or coalesce(tombstone_at < %(before)s, true))
        and (forgotten_reason = any(%(wished)s) or superseded_at is not null)
        and (%(namespace)s::int is null or namespace = %(namespace)s)
"""

# Superseded or retracted, and not forgotten besides.
CLAIM_SUPERSEDED = """
    select activity.namespace, activity.fact
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where superseded_at < %(before)s and forgotten_at is null
        and (%(namespace)s::int is null or facts.namespace = %(namespace)s)
        and (%(in_gaps)s or not exists (
            select from namespaces where namespaces.id = facts.namespace and gap_until is not null
        ))
    order by superseded_at
    limit %(limit)s
    for no key update of activity skip locked
"""

COUNT_SUPERSEDED = """
    select count(*) from facts
    where superseded_at < %(before)s and forgotten_at is null
        and (%(namespace)s::int is null or namespace = %(namespace)s)
"""

# All other tables' rows of a fact go with it.
ERASE = """
    delete from facts
    using unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    where facts.namespace = gone.namespace and facts.id = gone.id and coalesce(forgotten_at, superseded_at) is not null
"""


ANY_ENDED = """
    select exists (
        select from facts
        where namespace = %(namespace)s and forgotten_at is not null and forgotten_reason <> all(%(wished)s)
    )
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a fact is forgotten, when and why, which one superseded it and which one it superseded.

    What is `over` has ended, whether or not a pass has come.
    """

    id: UUID
    hash: bytes
    forgotten_at: datetime | None
    reason: str | None
    superseded_at: datetime | None
    superseded_by: UUID | None
    supersedes_id: UUID | None
    over: bool

    @property
    def superseded(self) -> bool:
        """Return whether it holds no longer, because of another fact or because it was retracted."""
        return self.superseded_at is not None

    @property
    def live(self) -> bool:
        """Return whether readers see the fact, unless it is over."""
        return self.forgotten_at is None and not self.superseded

    @property
    def current(self) -> bool:
        """Return whether readers see the fact."""
        return self.live and not self.over

    @property
    def retracted(self) -> bool:
        """Return whether it holds no longer though no other took its place."""
        return self.superseded and self.superseded_by is None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A forgotten fact: why and when it was forgotten, when its tombstone was written, and by which run."""

    id: UUID
    text: str
    kind: str
    reason: str
    forgotten_at: datetime
    tombstone_at: datetime | None
    run: UUID | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tombstones are meant: for which reasons, from an instant on, before an instant, and by which run."""

    reasons: tuple[str, ...]
    since: datetime | None = None
    until: datetime | None = None
    run: UUID | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a walk over tombstones, newest first, continues: after a fact forgotten at an instant."""

    at: datetime
    fact: UUID


def standings(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> dict[UUID, Standing]:
    """Return how those of these facts stand that exist, as of `now`."""
    with db.cursor(row_factory=class_row(Standing)) as cursor:
        rows = cursor.execute(STANDINGS, {"namespace": namespace, "ids": list(ids), "now": now})
        return {standing.id: standing for standing in rows}


def revive(
    db: Connection,
    namespace: int,
    ids: Sequence[UUID],
    now: datetime,
    by: str | None = None,
    what: str = "restored",
) -> int:
    """Take the tombstones off facts, and record `what` was done and why they had them; return off how many.

    `by` names what restores them if that is not a request about these facts.

    Raises:
        UnavailableError: what one of them says was stored at this moment; the transaction is lost.
    """
    try:
        given = {"namespace": namespace, "ids": list(ids), "now": now, "by": by, "what": what}
        return db.execute(REVIVE, given).rowcount
    except psycopg.errors.UniqueViolation:
        raise UnavailableError("A fact that says the same was stored at this very moment: try again.") from None


def found(
    db: Connection, namespace: int, selection: Selection, limit: int, behind: Cursor | None = None
) -> list[Tombstone]:
    """Return the next of the selected tombstones, newest first, also those in deep memory."""
    place = {"at": None, "fact": None} if behind is None else asdict(behind)
    given = _given(namespace, selection) | place | {"limit": limit}
    with db.cursor(row_factory=class_row(Tombstone)) as cursor:
        recent = cursor.execute(FOUND, given).fetchall()
    both = recent + [_tombstone(one) for one in deep.found(db, given)]
    return sorted(both, key=lambda one: (one.forgotten_at, one.id), reverse=True)[:limit]


def _tombstone(one: deep.Deep) -> Tombstone:
    fact, _, _ = one.rows()
    run = UUID(fact["forgotten_by"]) if fact["forgotten_by"] else None
    return Tombstone(one.id, fact["text"], fact["kind"], fact["forgotten_reason"], one.forgotten_at, None, run)


def any_ended(db: Connection, namespace: int) -> bool:
    """Return whether a namespace has facts that ended by themselves and are not deep, or came up from there."""
    row = db.execute(ANY_ENDED, {"namespace": namespace, "wished": list(WISHED)}).fetchone()
    return bool(row and row[0])


def count_found(db: Connection, namespace: int, selection: Selection) -> int:
    """Return how many tombstones are selected."""
    given = _given(namespace, selection)
    row = db.execute(COUNT_FOUND, given).fetchone()
    return (int(row[0]) if row else 0) + deep.count_found(db, given)


def _given(namespace: int, selection: Selection) -> dict[str, Any]:
    return asdict(selection) | {"namespace": namespace, "reasons": list(selection.reasons)}


def claim_old(
    db: Connection, before: datetime, limit: int, namespace: int | None, *, in_gaps: bool, simulated: bool
) -> list[tuple[int, UUID]]:
    """Return (namespace, fact) of what was forgotten on request before an instant, oldest first, locked.

    It is that of one namespace, or of all; with `in_gaps` also of those with a gap to be confirmed. Its tombstone must
    have been written before that instant as well, unless `simulated` says that instants are not the clock's.
    """
    given = {"before": before, "limit": limit, "namespace": namespace, "in_gaps": in_gaps}
    given |= {"simulated": simulated, "wished": list(WISHED)}
    return db.execute(CLAIM_OLD, given).fetchall()


def count_old(db: Connection, before: datetime, namespace: int | None, *, simulated: bool) -> int:
    """Return how many facts of a namespace, or of all, were forgotten on request before an instant."""
    given = {"before": before, "namespace": namespace, "simulated": simulated, "wished": list(WISHED)}
    return number(db, COUNT_OLD, given)


def claim_superseded(
    db: Connection, before: datetime, limit: int, namespace: int | None, *, in_gaps: bool
) -> list[tuple[int, UUID]]:
    """Return (namespace, fact) of what was superseded or retracted before an instant, oldest first, locked."""
    given = {"before": before, "limit": limit, "namespace": namespace, "in_gaps": in_gaps}
    return db.execute(CLAIM_SUPERSEDED, given).fetchall()


def count_superseded(db: Connection, before: datetime, namespace: int | None) -> int:
    """Return how many facts of a namespace, or of all, were superseded or retracted before an instant."""
    row = db.execute(COUNT_SUPERSEDED, {"before": before, "namespace": namespace}).fetchone()
    return int(row[0]) if row else 0


def erase(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> int:
    """Remove forgotten and superseded facts for good, with all that belongs to them; return how many there were."""
    return db.execute(ERASE, {"namespaces": list(namespaces), "ids": list(ids)}).rowcount


ERASURES = """
    select array_agg(erasures.id), array_agg(distinct name) filter (where name is not null)
    from erasures left join namespaces on namespaces.id = namespace
"""

DROP_ERASURES = "delete from erasures where id = any(%(ids)s)"


@dataclass(frozen=True, slots=True)
class Erasures:
    """What is to be cleaned: the ids of erasures, and the names of the namespaces that they were in."""

    ids: Sequence[int]
    namespaces: Sequence[str]


def erasures(db: Connection) -> Erasures:
    """Return the erasures that were committed and not cleaned yet."""
    row = db.execute(ERASURES).fetchone()
    ids, names = row or (None, None)
    return Erasures(ids or [], names or [])


def drop_erasures(db: Connection, done: Erasures) -> None:
    """Forget erasures, all of which was cleaned; others stay, though they have smaller ids and were committed later."""
    db.execute(DROP_ERASURES, {"ids": done.ids})
