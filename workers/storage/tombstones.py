"""Tombstones: forgotten facts, which can be restored until they are erased; the standing of facts."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ebb.contract.values import REQUESTED

from workers.storage import deep
from workers.storage.connection import Connection, fetch_all, number

# As to `+ 0`, see `server.OUTDATED`.
STANDINGS = """
    select id, hash, forgotten_at, forgotten_reason as reason, superseded_at, superseded_by, supersedes_id,
        valid_from,
        coalesce(
            has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s), false
        ) as over
    from facts
    left join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)s)
"""

# The event keeps the values of the tombstone. As to `+ 0`, see `server.OUTDATED`.
REVIVE = """
    with old as (
        select namespace + 0 as namespace, id, forgotten_reason, forgotten_by from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and forgotten_at is not null
    ),
    back as (
        update facts set forgotten_at = null, forgotten_reason = null, forgotten_by = null, tombstone_at = null
        from old
        where facts.namespace = old.namespace and facts.id = old.id
        returning facts.id, old.forgotten_reason as reason, old.forgotten_by as run
    )
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, id, %(now)s, %(what)s,
        jsonb_strip_nulls(jsonb_build_object('reason', reason, 'run', run, 'by', %(by)s::text))
    from back
"""

# A request forgets at one instant and by one run.
WENT_WITH = """
    select taken.id from facts as one
    join facts as taken on taken.namespace = one.namespace and taken.id = any(%(taken)s)
        and taken.forgotten_reason = 'asked' and taken.forgotten_at = one.forgotten_at
        and taken.forgotten_by is not distinct from one.forgotten_by
    where one.namespace = %(namespace)s and one.id = any(%(ids)s) and one.forgotten_reason = 'asked'
"""

# Either date may match, as one of them is wrong if a clock was.
SELECTED = """
    from facts
    where namespace = %(namespace)s and forgotten_at is not null and forgotten_reason = any(%(reasons)s)
        and (%(run)s::uuid is null or forgotten_by = %(run)s)
        and (%(since)s::timestamptz is null or greatest(forgotten_at, tombstone_at) >= %(since)s)
        and (%(until)s::timestamptz is null or least(forgotten_at, tombstone_at) < %(until)s)
"""

FOUND = f"""
    select id, text, kind, forgotten_reason as reason, forgotten_at, tombstone_at, forgotten_by as run
    {SELECTED}
        and (%(at)s::timestamptz is null or (forgotten_at, id) < (%(at)s, %(fact)s::uuid))
    order by forgotten_at desc, id desc
    limit %(limit)s
"""

COUNT_FOUND = f"select count(*) {SELECTED}"

PAST = "forgotten_at < %(before)s and (%(simulated)s or coalesce(tombstone_at < %(before)s, true))"
"""Facts forgotten before an instant; unless instants are `simulated`, their tombstones were written before it, too."""

# Facts that ended by decay go to deep memory instead, unless they were superseded before.
OLD = f"{PAST} and (forgotten_reason = any(%(requested)s) or superseded_at is not null)"
DECAYED = f"{PAST} and forgotten_reason <> all(%(requested)s) and superseded_at is null"

# Superseded or retracted, and not forgotten.
SUPERSEDED = "superseded_at < %(before)s and forgotten_at is null"

# Of one namespace or all. Locked rows are skipped. Both rows of a fact are locked, so that they are read again if
# it was restored since the statement began.
CLAIMED = """
    select activity.namespace, activity.fact
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where (%(namespace)s::int is null or facts.namespace = %(namespace)s)
        and (%(in_gaps)s or not exists (
            select from namespaces where namespaces.id = facts.namespace and gap_until is not null
        ))
"""
NEXT = "limit %(limit)s for no key update skip locked"

CLAIM_OLD = f"{CLAIMED} and {OLD} order by forgotten_at {NEXT}"
CLAIM_DECAYED = f"""
    {CLAIMED} and {DECAYED} and (fidelity <> 0 or forgotten_at < %(unsigned_before)s)
    order by forgotten_at {NEXT}
"""
CLAIM_SUPERSEDED = f"{CLAIMED} and {SUPERSEDED} order by superseded_at {NEXT}"

COUNTED = "select count(*) from facts where (%(namespace)s::int is null or namespace = %(namespace)s)"
COUNT_OLD = f"{COUNTED} and {OLD}"
COUNT_SUPERSEDED = f"{COUNTED} and {SUPERSEDED}"

# Foreign keys delete the rows of other tables.
ERASE = """
    delete from facts
    using unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    where facts.namespace = gone.namespace and facts.id = gone.id and coalesce(forgotten_at, superseded_at) is not null
"""

# In the order of the indexes, or the planner may read a whole table for a namespace that has none.
ENDED = """
    select (select id from deep where namespace = %(namespace)s order by uuid_hash(id) limit 1) is not null,
        (
            select id from facts
            where namespace = %(namespace)s and forgotten_at is not null and forgotten_reason <> all(%(requested)s)
            order by forgotten_at desc limit 1
        ) is not null
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a fact is forgotten, superseded or `over`: ended, whether or not a pass has run."""

    id: UUID
    hash: bytes
    forgotten_at: datetime | None
    reason: str | None
    superseded_at: datetime | None
    superseded_by: UUID | None
    supersedes_id: UUID | None
    valid_from: datetime
    over: bool

    @property
    def superseded(self) -> bool:
        """Return whether the fact was superseded or retracted."""
        return self.superseded_at is not None

    @property
    def live(self) -> bool:
        """Return whether the fact is neither forgotten nor superseded."""
        return self.forgotten_at is None and not self.superseded

    @property
    def current(self) -> bool:
        """Return whether the fact is live and has not ended."""
        return self.live and not self.over

    @property
    def retracted(self) -> bool:
        """Return whether the fact was superseded without a successor."""
        return self.superseded and self.superseded_by is None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A forgotten fact: the reason, when it was forgotten, when that was written, and the run."""

    id: UUID
    text: str
    kind: str
    reason: str
    forgotten_at: datetime
    tombstone_at: datetime | None
    run: UUID | None


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter on tombstones by reason, time and run."""

    reasons: tuple[str, ...]
    since: datetime | None = None
    until: datetime | None = None
    run: UUID | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a listing: the last tombstone."""

    at: datetime
    fact: UUID


def standings(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> dict[UUID, Standing]:
    """Return the standing at `now` of the facts that exist, by id."""
    given = {"namespace": namespace, "ids": list(ids), "now": now}
    return {one.id: one for one in fetch_all(db, Standing, STANDINGS, given)}


def revive(
    db: Connection, namespace: int, ids: Sequence[UUID], now: datetime, by: str | None = None, what: str = "restored"
) -> int:
    """Make tombstones live again and add an event `what` with their reasons; return how many.

    `by` names the operation if it is not a request to restore these facts.
    """
    given = {"namespace": namespace, "ids": list(ids), "now": now, "by": by, "what": what}
    return db.execute(REVIVE, given).rowcount


def went_with(db: Connection, namespace: int, ids: Sequence[UUID], taken: Sequence[UUID]) -> list[UUID]:
    """Return the facts among `taken` that the request forgot which also forgot one of `ids`."""
    given = {"namespace": namespace, "ids": list(ids), "taken": list(taken)}
    return [id_ for (id_,) in db.execute(WENT_WITH, given)]


def found(
    db: Connection, namespace: int, selection: Selection, limit: int, behind: Cursor | None = None
) -> list[Tombstone]:
    """Return the next selected tombstones, including those in deep memory, newest first."""
    place = {"at": None, "fact": None} if behind is None else asdict(behind)
    given = _given(namespace, selection) | place | {"limit": limit}
    recent = fetch_all(db, Tombstone, FOUND, given)
    both = recent + [_tombstone(one) for one in deep.found(db, given)]
    return sorted(both, key=lambda one: (one.forgotten_at, one.id), reverse=True)[:limit]


def _tombstone(one: deep.Deep) -> Tombstone:
    fact, _, _ = one.rows()
    run = UUID(fact["forgotten_by"]) if fact["forgotten_by"] else None
    return Tombstone(one.id, fact["text"], fact["kind"], fact["forgotten_reason"], one.forgotten_at, None, run)


def ask_ended(db: Connection, namespace: int) -> Callable[[], tuple[bool, bool]]:
    """Send the query for whether decay ended any facts, in deep memory and outside it; return its reader."""
    rows = db.execute(ENDED, {"namespace": namespace, "requested": list(REQUESTED)})
    return lambda: rows.fetchone() or (False, False)


def count_found(db: Connection, namespace: int, selection: Selection) -> int:
    """Return the number of selected tombstones."""
    given = _given(namespace, selection)
    return number(db, COUNT_FOUND, given) + deep.count_found(db, given)


def _given(namespace: int, selection: Selection) -> dict[str, Any]:
    return asdict(selection) | {"namespace": namespace, "reasons": list(selection.reasons)}


def claim(
    db: Connection,
    statement: str,
    before: datetime,
    limit: int,
    namespace: int | None,
    *,
    in_gaps: bool,
    simulated: bool,
    unsigned_before: datetime | None = None,
) -> list[tuple[int, UUID]]:
    """Return (namespace, fact) of the oldest facts that `CLAIM_OLD` or one of the statements after it finds, locked.

    `in_gaps` includes namespaces with an unconfirmed gap. `CLAIM_DECAYED` finds facts that wait for their signature
    only if they were forgotten before `unsigned_before`.
    """
    given = {"before": before, "limit": limit, "namespace": namespace, "in_gaps": in_gaps}
    given |= {"unsigned_before": unsigned_before or before}
    return db.execute(statement, given | {"simulated": simulated, "requested": list(REQUESTED)}).fetchall()


def count(db: Connection, statement: str, before: datetime, namespace: int | None, *, simulated: bool) -> int:
    """Return the number of facts that `COUNT_OLD` or `COUNT_SUPERSEDED` finds."""
    given = {"before": before, "namespace": namespace, "simulated": simulated, "requested": list(REQUESTED)}
    return number(db, statement, given)


def erase(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> int:
    """Delete forgotten and superseded facts with their rows in other tables; return how many."""
    return db.execute(ERASE, {"namespaces": list(namespaces), "ids": list(ids)}).rowcount


ERASURES = """
    select array_agg(erasures.id), array_agg(distinct name) filter (where position(' ' in name) = 0)
    from erasures left join namespaces on namespaces.id = namespace
"""

# Of the session: the server releases it if the process is killed.
CLAIM_CLEANING = "select pg_try_advisory_lock(hashtextextended(current_schema(), %(key)s))"
CLEANING_LOCK = 0x0EBB + 8

DROP_ERASURES = "delete from erasures where id = any(%(ids)s)"


def claim_cleaning(db: Connection) -> bool:
    """Take the session lock for cleaning this shard; return false if another connection has it."""
    return bool(number(db, CLAIM_CLEANING, {"key": CLEANING_LOCK}))


def erasures(db: Connection) -> tuple[list[int], list[str]]:
    """Return the ids of the committed erasures that are not vacuumed yet, and the names of their namespaces."""
    ids, names = db.execute(ERASURES).fetchone() or (None, None)
    return ids or [], names or []


def drop_erasures(db: Connection, ids: Sequence[int]) -> None:
    """Delete the records of vacuumed erasures, by id: others may have smaller ids and be committed later."""
    db.execute(DROP_ERASURES, {"ids": ids})
