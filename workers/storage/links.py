"""Links: typed edges from fact to fact. They go with their facts, and are unseen while one of these is forgotten."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.candidates import FILTERED, Scope
from workers.storage.connection import Connection, number
from workers.storage.facts import WISHED

# In the order of their keys, so that two that link the same wait for each other instead of deadlocking. A forgotten
# fact gets no new links.
ADD = """
    insert into links (namespace, source, target, type, strength, created_at)
    select %(namespace)s, source, target, %(type)s, strength, %(now)s
    from unnest(%(sources)s::uuid[], %(targets)s::uuid[], %(strengths)s::float8[]) as new (source, target, strength)
    order by source, target
    on conflict (namespace, source, target, type) do update set strength = excluded.strength
    returning id
"""

# Of two facts that are linked with each other at once neither sees the other's link, unless the second waits for the
# first's commit. The locks below this one are those of contradictions.
LOCK_RELATED = "select pg_advisory_xact_lock(%(namespace)s, 64)"

# A pair is linked once, whichever of the two came first; the number of links is counted by their source.
ADD_RELATED = """
    insert into links (namespace, source, target, type, strength, created_at)
    select %(namespace)s, %(source)s, target, 'RELATED_TO', strength, %(now)s
    from unnest(%(targets)s::uuid[], %(strengths)s::float8[]) as new (target, strength)
    where not exists (
        select from links
        where namespace = %(namespace)s and type = 'RELATED_TO'
            and (source = %(source)s and target = new.target or source = new.target and target = %(source)s)
    )
    order by strength desc
    limit greatest(%(most)s - (
        select count(*) from links
        where namespace = %(namespace)s and source = %(source)s and type = 'RELATED_TO'
    ), 0)
    on conflict do nothing
"""

# Of facts that are merged the links stay as well, for they may be restored.
TAKE_OVER = """
    insert into links (namespace, source, target, type, strength, created_at)
    select %(namespace)s, source, target, type, max(strength), min(created_at)
    from (
        select coalesce(one.kept, links.source) as source, coalesce(two.kept, links.target) as target, type, strength,
            created_at
        from links
        left join unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as one (gone, kept) on one.gone = links.source
        left join unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as two (gone, kept) on two.gone = links.target
        where links.namespace = %(namespace)s and (links.source = any(%(gone)s) or links.target = any(%(gone)s))
    ) as moved
    where source <> target
    group by source, target, type
    order by source, target, type
    on conflict (namespace, source, target, type) do update
    set strength = greatest(links.strength, excluded.strength)
"""

EXAMINED = 8
"""How many links are looked at in each direction for one that is shown, since some lead to forgotten facts."""

# Locked, or one of them could be purged before the link is written, which the foreign key would refuse.
LINKABLE = """
    select id from facts
    where namespace = %(namespace)s and id = any(%(ids)s) and forgotten_at is null
    order by id
    for key share
"""

REMOVE = """
    delete from links
    where namespace = %(namespace)s and source = %(source)s and target = %(target)s
        and (%(type)s::text is null or type = %(type)s)
"""

LINK = "select links.source, links.target, links.type, links.strength, links.created_at from links"

OF = f"""
    {LINK}
    join facts on facts.namespace = links.namespace
        and facts.id = case when links.source = %(fact)s then links.target else links.source end
    where links.namespace = %(namespace)s and (links.source = %(fact)s or links.target = %(fact)s)
        and forgotten_at is null
    order by links.created_at, links.id
"""

# The strongest first, by the two indexes that know them.
STRONGEST = """
    select source, target, type, strength, created_at
    from (
        (
            select * from links where namespace = %(namespace)s and source = %(fact)s
            order by strength desc limit %(examined)s
        )
        union all
        (
            select * from links where namespace = %(namespace)s and target = %(fact)s
            order by strength desc limit %(examined)s
        )
    ) as own
    where exists (
        select from facts
        where facts.namespace = %(namespace)s and forgotten_at is null
            and id = case when own.source = %(fact)s then own.target else own.source end
    )
    order by strength desc, created_at, own.id
    limit %(most)s
"""

COUNT = """
    select (select count(*) from links where namespace = %(namespace)s and source = %(fact)s)
        + (select count(*) from links where namespace = %(namespace)s and target = %(fact)s)
"""

AMONG = f"""
    {LINK}
    where namespace = %(namespace)s and source = any(%(facts)s) and target = any(%(facts)s)
    order by created_at, id
"""

# Walks of up to `depth` links from each seed, in both directions, never through a fact twice. Each step goes on from
# the best facts of the last one alone, and from each of those along the strongest links, so that it stays small
# whatever is linked with how many. What was superseded is walked through, for its links hold for what took its place,
# which two columns of the facts tell; what was forgotten or has ended is not there. A strength that is next to nothing
# is nothing, for a product that underflows is an error.
WALK = f"""
    with recursive walked as (
        select id as fact, id as seed, score, 1.0::float8 as strength, 0 as hops, array[id] as path, true as shown
        from unnest(%(seeds)b::uuid[], %(scores)b::float8[]) as seeds (id, score)
        join activity on activity.namespace = %(namespace)s and activity.fact = id
        where %(ever)s or not has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        union all
        select next.fact, last.seed, last.score,
            last.strength * case when next.strength > 1e-9 then next.strength else 0 end,
            last.hops + 1, last.path || next.fact,
            (superseded_at is null or %(ever)s)
            and {FILTERED}
        from (
            select * from walked where hops < %(depth)s order by score * strength desc limit %(breadth)s
        ) as last
        cross join lateral (
            (
                select target as fact, strength from links
                where namespace = %(namespace)s and source = last.fact and created_at <= %(known_as_of)s
                order by strength desc limit %(fan)s
            )
            union all
            (
                select source, strength from links
                where namespace = %(namespace)s and target = last.fact and created_at <= %(known_as_of)s
                order by strength desc limit %(fan)s
            )
            union all
            select other, 1.0
            from facts cross join lateral unnest(array[superseded_by, supersedes_id]) as other
            where namespace = %(namespace)s and id = last.fact and other is not null
        ) as next
        join facts on facts.namespace = %(namespace)s and facts.id = next.fact
        join activity on activity.namespace = %(namespace)s and activity.fact = next.fact
        where next.fact <> all (last.path)
            and (case when %(ever)s then coalesce(forgotten_reason, '') <> all(%(asked_for)s)
                else forgotten_at is null
                    and not has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s) end)
    )
    select fact, seed, hops, strength from walked where hops > 0 and shown
"""


@dataclass(frozen=True, slots=True)
class Walk:
    """A way along links from a seed to another fact: its hops, and the product of its links' strengths."""

    fact: UUID
    seed: UUID
    hops: int
    strength: float


@dataclass(frozen=True, slots=True)
class Link:
    """One fact's link to another."""

    source: UUID
    target: UUID
    type: str
    strength: float
    created_at: datetime


def linkable(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of these facts that are there and not forgotten; none is purged before the transaction ends."""
    return {id_ for (id_,) in db.execute(LINKABLE, {"namespace": namespace, "ids": list(ids)})}


def add(
    db: Connection,
    namespace: int,
    pairs: Sequence[tuple[UUID, UUID]],
    kind: str,
    strengths: Sequence[float],
    now: datetime,
) -> list[UUID]:
    """Link each source with its target, or change the strength of a link that is there; return the links' ids."""
    given = {
        "namespace": namespace,
        "sources": [source for source, _ in pairs],
        "targets": [target for _, target in pairs],
        "type": kind,
        "strengths": list(strengths),
        "now": now,
    }
    return [id_ for (id_,) in db.execute(ADD, given)]


def add_related(
    db: Connection, namespace: int, source: UUID, targets: Mapping[UUID, float], most: int, now: datetime
) -> int:
    """Link a fact with others that say the like, given with their strengths, up to `most` in all; return how many.

    It is to be the last thing in its transaction, for others who link in the namespace wait from now until the commit.
    """
    given = {
        "namespace": namespace,
        "source": source,
        "targets": list(targets),
        "strengths": list(targets.values()),
        "most": most,
        "now": now,
    }
    db.execute(LOCK_RELATED, given)
    return db.execute(ADD_RELATED, given).rowcount


def remove(db: Connection, namespace: int, source: UUID, target: UUID, kind: str | None) -> int:
    """Remove the link of a type between two facts, or all of them; return how many there were."""
    given = {"namespace": namespace, "source": source, "target": target, "type": kind}
    return db.execute(REMOVE, given).rowcount


def walk(
    db: Connection, namespace: int, seeds: Mapping[UUID, float], scope: Scope, *, depth: int, breadth: int, fan: int
) -> list[Walk]:
    """Return the ways along links from seeds, given with their scores, to facts that the scope lets see.

    Args:
        db: the connection.
        namespace: whose facts they are.
        seeds: where to begin, and how much each is worth going on from.
        scope: what may be seen.
        depth: links in a row.
        breadth: facts from which each step goes on.
        fan: links of one fact in one direction.
    """
    given = {
        "namespace": namespace,
        "seeds": list(seeds),
        "scores": list(seeds.values()),
        "depth": depth,
        "breadth": breadth,
        "fan": fan,
        "asked_for": list(WISHED),
    }
    given |= scope.parameters() | {"known_as_of": scope.known_as_of or datetime.max.replace(tzinfo=UTC)}
    with db.cursor(row_factory=class_row(Walk)) as cursor:
        return cursor.execute(WALK, given, binary=True).fetchall()


def of(db: Connection, namespace: int, fact: UUID) -> list[Link]:
    """Return a fact's links in both directions, oldest first, without those to forgotten facts."""
    with db.cursor(row_factory=class_row(Link)) as cursor:
        return cursor.execute(OF, {"namespace": namespace, "fact": fact}).fetchall()


def strongest(db: Connection, namespace: int, fact: UUID, most: int) -> list[Link]:
    """Return a fact's strongest links in both directions, without those to forgotten facts."""
    given = {"namespace": namespace, "fact": fact, "most": most, "examined": EXAMINED * most}
    with db.cursor(row_factory=class_row(Link)) as cursor:
        return cursor.execute(STRONGEST, given).fetchall()


def count(db: Connection, namespace: int, fact: UUID) -> int:
    """Return how many links a fact has, those to forgotten facts too."""
    return number(db, COUNT, {"namespace": namespace, "fact": fact})


def among(db: Connection, namespace: int, facts: Sequence[UUID]) -> list[Link]:
    """Return the links between these facts."""
    with db.cursor(row_factory=class_row(Link)) as cursor:
        return cursor.execute(AMONG, {"namespace": namespace, "facts": list(facts)}).fetchall()


def take_over(db: Connection, namespace: int, gone: Sequence[UUID], kept: Sequence[UUID]) -> None:
    """Link each kept fact with whatever the one is linked with that was merged into it."""
    db.execute(TAKE_OVER, {"namespace": namespace, "gone": list(gone), "kept": list(kept)})
