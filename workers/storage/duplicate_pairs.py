"""Near-duplicates: pairs of similar facts, found when the newer one is compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workers.storage.connection import Connection, fetch_all
from workers.storage.supersession import values_differ

Pair = tuple[UUID, UUID]

# Facts without a signature are compared later.
UNCOMPARED = """
    select fact, xmin::text from activity
    where namespace = %(namespace)s and not compared and fidelity <> 0
    limit %(limit)s
"""

# Locked in order, to avoid deadlocks. A row that was written since it was read has another `xmin`: an edit or a restore
# may have changed what is to be compared.
MARK_COMPARED = """
    with mine as (
        select namespace, fact from activity
        where namespace = %(namespace)s and fact = any(%(ids)s) and not compared
            and xmin::text = (%(versions)s::text[])[array_position(%(ids)s::uuid[], fact)]
        order by fact
        for no key update
    )
    update activity set compared = true
    from mine
    where activity.namespace = mine.namespace and activity.fact = mine.fact
"""

COMPARE_AGAIN = "update activity set compared = false where namespace = %(namespace)s and fact = any(%(ids)s)"

# Facts with different entities, keys or values are no duplicates: another value of a key is a contradiction. Nor are
# those that are true until different times, as the kept one may be over before the other.
SAME = f"""folded(one.entity) is not distinct from folded(two.entity)
        and folded(one.key) is not distinct from folded(two.key)
        and (one.value is null) = (two.value is null) and {values_differ("one", "two")} is not true
        and one.valid_until is not distinct from two.valid_until"""

# As to `offset 0`, see `server.OUTDATED`.
ABOUT_THE_SAME = f"""
    select one.id, two.id
    from unnest(%(ones)s::uuid[], %(others)s::uuid[]) as pair (one, two)
    cross join lateral (select * from facts where namespace = %(namespace)s and id = pair.one offset 0) as one
    cross join lateral (select * from facts where namespace = %(namespace)s and id = pair.two offset 0) as two
    where one.kind = %(kind)s and two.kind = %(kind)s
        and one.forgotten_at is null and one.superseded_at is null
        and two.forgotten_at is null and two.superseded_at is null
        and {SAME}
        and not exists (
            select from likenesses
            where namespace = %(namespace)s and fact = least(one.id, two.id) and other = greatest(one.id, two.id)
                and apart_at is not null
        )
"""

# Locks both facts, so that they are not purged meanwhile.
ADD = """
    insert into likenesses (namespace, fact, other, similarity, found_at)
    select %(namespace)s, pair.fact, pair.other, similarity, %(now)s
    from unnest(%(facts)s::uuid[], %(others)s::uuid[], %(similarities)s::float8[]) as pair (fact, other, similarity)
    join facts as one on one.namespace = %(namespace)s and one.id = pair.fact
    join facts as two on two.namespace = %(namespace)s and two.id = pair.other
    order by pair.fact, pair.other
    for key share of one, two
    on conflict do nothing
"""

REMEMBERED = """
    select remembered.*, more.valid_until, more.hash
    from remembered
    cross join lateral (
        select valid_until, hash from facts where facts.namespace = remembered.namespace and facts.id = remembered.id
        offset 0
    ) as more
    where remembered.namespace = %(namespace)s
"""

# Edits may have changed what facts are about since they were compared. As to `offset 0`, see `server.OUTDATED`.
OPEN = f"""
    select fact, other, similarity
    from likenesses
    cross join lateral ({REMEMBERED} and id = fact offset 0) as one
    cross join lateral ({REMEMBERED} and id = other offset 0) as two
    where likenesses.namespace = %(namespace)s and apart_at is null and {SAME}
        and not has_ended(one.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and not has_ended(two.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
    order by similarity desc, fact, other
    limit %(limit)s
"""

MARK_DIFFERENT = """
    update likenesses set apart_at = %(now)s
    where namespace = %(namespace)s and (fact = any(%(ids)s) or other = any(%(ids)s)) and apart_at is null
"""

# Without ended facts, like every read. As to `+ 0` and `coalesce`, see `server.OUTDATED`.
MEMBERS = """
    select id, left(text, 80) as text, created_at, coalesce(decay_class, '') as decay_class, confirmations,
        tags, importance, coalesce(pinned_until > %(now)s, false) as pinned
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)s)
        and coalesce(forgotten_at, superseded_at) is null
        and not has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
"""

# Tags are joined, as PostgreSQL's nested arrays must be rectangular.
TAKE_OVER = """
    update facts set tags = string_to_array(new.tags, ','), importance = new.importance
    from unnest(%(ids)s::uuid[], %(tags)s::text[], %(importances)s::float8[]) as new (id, tags, importance)
    where facts.namespace = %(namespace)s and facts.id = new.id
        and (facts.tags <> string_to_array(new.tags, ',') or facts.importance <> new.importance)
"""

# A loose index scan: namespaces without new facts cost nothing.
UNCOMPARED_NAMESPACES = """
    with recursive waiting as (
        select min(namespace) as namespace from activity where not compared and fidelity <> 0
        union all
        select (
            select min(namespace) from activity
            where not compared and fidelity <> 0 and activity.namespace > waiting.namespace
        )
        from waiting where waiting.namespace is not null
    )
    select name from waiting join namespaces on namespaces.id = waiting.namespace
    where position(' ' in name) = 0
    order by name
"""


@dataclass(frozen=True, slots=True)
class Member:
    """A fact of a near-duplicate pair, with the beginning of its text and the fields that decide which one is kept."""

    id: UUID
    text: str
    created_at: datetime
    decay_class: str
    confirmations: int
    tags: list[str]
    importance: float
    pinned: bool


def uncompared(db: Connection, namespace: int, limit: int) -> dict[UUID, str]:
    """Return facts of a namespace that were not compared yet, including forgotten ones, with their versions."""
    return dict(db.execute(UNCOMPARED, {"namespace": namespace, "limit": limit}).fetchall())


def uncompared_namespaces(db: Connection) -> list[str]:
    """Return the names of the namespaces that have uncompared facts."""
    return [name for (name,) in db.execute(UNCOMPARED_NAMESPACES)]


def mark_compared(db: Connection, namespace: int, versions: Mapping[UUID, str]) -> int:
    """Mark facts as compared, given with their versions, without those that were written since; return how many."""
    given = {"namespace": namespace, "ids": list(versions), "versions": list(versions.values())}
    return db.execute(MARK_COMPARED, given).rowcount


def compare_again(db: Connection, namespace: int, ids: Sequence[UUID]) -> None:
    """Mark restored or edited facts as uncompared, as others may have become like them; they must be locked."""
    db.execute(COMPARE_AGAIN, {"namespace": namespace, "ids": list(ids)})


def about_the_same(db: Connection, namespace: int, pairs: Sequence[Pair], kind: str) -> list[Pair]:
    """Return the pairs of live facts of a kind whose entity, key and value, in any case, and end of validity agree.

    Without those that were set apart.
    """
    given = {"namespace": namespace, "ones": [one for one, _ in pairs], "others": [two for _, two in pairs]}
    return db.execute(ABOUT_THE_SAME, given | {"kind": kind}).fetchall()


def add(db: Connection, namespace: int, pairs: Sequence[Pair], similarities: Sequence[float], now: datetime) -> int:
    """Add pairs of near-duplicates; return how many are new."""
    ordered = [tuple(sorted(pair)) for pair in pairs]
    given = {
        "namespace": namespace,
        "facts": [one for one, _ in ordered],
        "others": [two for _, two in ordered],
        "similarities": list(similarities),
        "now": now,
    }
    return db.execute(ADD, given).rowcount


def unsettled(db: Connection, namespace: int, now: datetime, limit: int) -> dict[Pair, float]:
    """Return pairs of live facts that were not set apart, with their similarity, most similar first."""
    rows = db.execute(OPEN, {"namespace": namespace, "now": now, "limit": limit})
    return {(fact, other): similarity for fact, other, similarity in rows}


def mark_different(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Mark all pairs of these facts as not the same."""
    db.execute(MARK_DIFFERENT, {"namespace": namespace, "ids": list(ids), "now": now})


def members(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> dict[UUID, Member]:
    """Return the facts that are live at `now`."""
    given = {"namespace": namespace, "ids": list(ids), "now": now}
    return {member.id: member for member in fetch_all(db, Member, MEMBERS, given)}


def take_over(
    db: Connection, namespace: int, ids: Sequence[UUID], tags: Sequence[Sequence[str]], importances: Sequence[float]
) -> None:
    """Write the tags and importance of facts that others were merged into."""
    joined = [",".join(own) for own in tags]
    db.execute(TAKE_OVER, {"namespace": namespace, "ids": list(ids), "tags": joined, "importances": list(importances)})
