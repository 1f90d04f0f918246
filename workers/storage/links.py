"""Links: typed edges between facts, deleted with either of them and hidden while one is forgotten."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from ebb.contract.values import REQUESTED

from workers.core.arrays import Key
from workers.storage import columns
from workers.storage.candidates import FILTERED, SEEN_THEN, Scope, quoted
from workers.storage.connection import Connection, ask_all, fetch_all, number


class Update(NamedTuple):
    """A link from a newer fact to an older one that it makes outdated, and when it was made, in epoch seconds."""

    newer: Key
    older: Key
    at: float


LAST = datetime.max.replace(tzinfo=UTC)

# In key order, to avoid deadlocks.
ADD = """
    insert into links (namespace, source, target, type, strength, created_at)
    select %(namespace)s, source, target, %(type)s, strength, %(now)s
    from unnest(%(sources)s::uuid[], %(targets)s::uuid[], %(strengths)s::float8[]) as new (source, target, strength)
    order by source, target
    on conflict (namespace, source, target, type) do update set strength = excluded.strength
    returning id
"""

# Serialises concurrent linking in a namespace, as otherwise neither transaction sees the other's links. Numbers below
# 64 are the locks of contradictions.
LOCK_RELATED = "select pg_advisory_xact_lock(%(namespace)s, 64)"

# A pair is linked in one direction only; the maximum counts the source's links.
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

# The merged facts keep their links too, as they may be restored.
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
"""Links read in each direction for each one returned, since some lead to forgotten facts."""

# Locked, as a concurrent purge would violate the foreign key.
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
        and forgotten_at is null and (%(since)s::timestamptz is null or links.created_at >= %(since)s)
    order by links.created_at, links.id
    limit %(most)s
"""

# Uses the two indexes on strength.
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
        where facts.namespace = own.namespace and forgotten_at is null
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

# What the same speaker said before a fact, among candidates.
SAID_BEFORE = """
    select uuid_send(facts.id), concat_ws(': ', facts.entity, facts.text)
    from facts
    join facts as own on own.namespace = facts.namespace and own.id = %(fact)s
    where facts.namespace = %(namespace)s and facts.id = any(%(among)b) and facts.kind <> 'chunk'
        and facts.role is not distinct from own.role
        and (
            coalesce(facts.source_date, facts.created_at) < coalesce(own.source_date, own.created_at)
            or coalesce(facts.source_date, facts.created_at) = coalesce(own.source_date, own.created_at)
                and facts.session = own.session and facts.turn < own.turn
        )
"""

# `+ 0` and `coalesce` as in `candidates.MATCHES`. The inner limit bounds the cost where most of the facts were said
# before, as in a chat that is stored in its order.
SAID_LATER = """
    select uuid_send(id), text
    from (
        select id, text, kind, role, coalesce(source_date, created_at) as stated_at
        from facts
        where namespace + 0 = %(namespace)s and search @@ %(words)s::tsquery
            and coalesce(forgotten_at, superseded_at) is null
        limit %(most)s
    ) as matching
    where kind <> 'chunk' and (role is null or role = any(%(roles)s)) and stated_at > %(since)s and id <> all(%(but)s)
    order by stated_at desc, id
    limit %(limit)s
"""

MOST_NEWER = 10
"""Maximum number of facts that are read for one that they make outdated, the newest."""

UPDATES_AMONG = f"""
    select uuid_send(newer.source), uuid_send(older.id), date_part('epoch', newer.created_at)
    from unnest(%(facts)b::uuid[]) as older (id)
    cross join lateral (
        select source, created_at from links
        where namespace = %(namespace)s and target = older.id and type = 'UPDATES'
            and (%(known_as_of)s::timestamptz is null or created_at <= %(known_as_of)s)
            and exists (
                select from facts where namespace = %(namespace)s and id = links.source and {SEEN_THEN} offset 0
            )
        order by created_at desc, source desc
        limit %(most)s
    ) as newer
"""

# Applied before the limit, so that links to forgotten facts do not take the places of others. Costs a look-up a link.
WALKABLE = """(%(ever)s or exists (
                    select from facts where namespace = %(namespace)s and id = {} and forgotten_at is null offset 0
                ))"""

# Walks of up to `depth` links from each seed, in both directions, but not to what a fact makes outdated, and never
# through a fact twice. Each step continues from the best facts of the last one along their strongest links, which
# bounds its cost. Superseded facts are walked through to their successors, as their links still hold; forgotten and
# ended facts are not. A tiny strength counts as zero, as the product would underflow, which is an error in PostgreSQL.
# Facts are looked up one by one: a join may read all facts of the namespace for each link if PostgreSQL expects few.
WALK_AMONG = f"""
    with recursive walked as (
        select id as fact, id as seed, score, 1.0::float8 as strength, 0 as hops, array[id] as path, true as shown
        from unnest(%(seeds)b::uuid[], %(scores)b::float8[]) as seeds (id, score)
        where %(ever)s or not coalesce((
            select has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
            from activity where namespace = %(namespace)s and fact = id
        ), true)
        union all
        select next.fact, last.seed, last.score,
            last.strength * case when next.strength > 1e-9 then next.strength else 0 end,
            last.hops + 1, last.path || next.fact,
            (superseded_at is null or %(ever)s) and fits
        from (
            select * from walked where hops < %(depth)s order by score * strength desc limit %(breadth)s
        ) as last
        cross join lateral (
            (
                select target as fact, strength from (
                    select target, strength from links
                    where namespace = %(namespace)s and source = last.fact and created_at <= %(known_as_of)s
                        and type <> 'UPDATES'
                    order by strength desc limit {EXAMINED} * %(fan)s
                ) as links
                where {WALKABLE.format("links.target")}
                order by strength desc limit %(fan)s
            )
            union all
            (
                select source, strength from (
                    select source, strength from links
                    where namespace = %(namespace)s and target = last.fact and created_at <= %(known_as_of)s
                    order by strength desc limit {EXAMINED} * %(fan)s
                ) as links
                where {WALKABLE.format("links.source")}
                order by strength desc limit %(fan)s
            )
            union all
            select other, 1.0
            from facts cross join lateral unnest(array[superseded_by, supersedes_id]) as other
            where namespace = %(namespace)s and id = last.fact and other is not null
        ) as next
        cross join lateral (
            select superseded_at, forgotten_at, forgotten_reason, {FILTERED} as fits from facts
            where namespace = %(namespace)s and id = next.fact
            offset 0
        ) as reached
        where next.fact <> all (last.path)
            and (case when %(ever)s then coalesce(forgotten_reason, '') <> all(%(asked_for)s)
                else forgotten_at is null and not coalesce((
                    select has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
                    from activity where namespace = %(namespace)s and fact = next.fact
                ), true) end)
    )
    select uuid_send(fact) as fact, uuid_send(seed) as seed, hops, strength from walked where hops > 0 and shown
"""
WALK = WALK_AMONG.replace(f"{FILTERED} as fits", "true as fits")  # whose plan is kept, as that of `entities.ABOUT`


@dataclass(frozen=True, slots=True)
class Walk:
    """A path along links from a seed to a fact: the number of hops, and the product of the strengths."""

    fact: Key
    seed: Key
    hops: int
    strength: float


@dataclass(frozen=True, slots=True)
class Link:
    """A link from one fact to another."""

    source: UUID
    target: UUID
    type: str
    strength: float
    created_at: datetime


def linkable(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return the facts that exist and are not forgotten, locked against a purge until the commit."""
    return {id_ for (id_,) in db.execute(LINKABLE, {"namespace": namespace, "ids": list(ids)})}


def add(
    db: Connection,
    namespace: int,
    pairs: Sequence[tuple[UUID, UUID]],
    kind: str,
    strengths: Sequence[float],
    now: datetime,
) -> list[UUID]:
    """Add links, or update the strength of existing ones; return the links' ids."""
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
    """Link a fact with similar ones, given with their strengths, up to `most` in all; return how many.

    Call it last in a transaction: it blocks other linking in the namespace until the commit.
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
    """Remove the links between two facts, of one type or all; return how many."""
    given = {"namespace": namespace, "source": source, "target": target, "type": kind}
    return db.execute(REMOVE, given).rowcount


def ask_walks(
    db: Connection, namespace: int, seeds: Mapping[Key, float], scope: Scope, *, depth: int, breadth: int, fan: int
) -> Callable[[], list[Walk]]:
    """Send the query for the paths along at most `depth` links from seeds, given with their scores; return its reader.

    They lead to facts in the scope. Each step continues from `breadth` facts, along `fan` links of each in either
    direction.
    """
    given = {
        "namespace": namespace,
        "seeds": columns.keys(list(seeds)),
        "scores": list(seeds.values()),
        "depth": depth,
        "breadth": breadth,
        "fan": fan,
        "asked_for": list(REQUESTED),
    }
    given |= scope.parameters | {"known_as_of": scope.known_as_of or LAST}
    statement, prepare = (WALK_AMONG, False) if scope.selects else (WALK, None)
    return ask_all(db, Walk, statement, given, binary=True, prepare=prepare)


def of(db: Connection, namespace: int, fact: UUID, since: datetime | None, most: int | None) -> list[Link]:
    """Return a fact's links in both directions, without those to forgotten facts, oldest first.

    They are the first ones since a time, or all.
    """
    return fetch_all(db, Link, OF, {"namespace": namespace, "fact": fact, "since": since, "most": most})


def strongest(db: Connection, namespace: int, fact: UUID, most: int) -> list[Link]:
    """Return a fact's strongest links in both directions, without those to forgotten facts."""
    given = {"namespace": namespace, "fact": fact, "most": most, "examined": EXAMINED * most}
    return fetch_all(db, Link, STRONGEST, given)


def count(db: Connection, namespace: int, fact: UUID) -> int:
    """Return the number of a fact's links, including those to forgotten facts."""
    return number(db, COUNT, {"namespace": namespace, "fact": fact})


def among(db: Connection, namespace: int, facts: Sequence[UUID]) -> list[Link]:
    """Return the links between these facts."""
    return fetch_all(db, Link, AMONG, {"namespace": namespace, "facts": list(facts)})


def said_before(db: Connection, namespace: int, fact: UUID, among: Sequence[Key]) -> dict[Key, str]:
    """Return which of these facts the speaker of a fact said before it, with entity and text."""
    given = {"namespace": namespace, "fact": fact, "among": columns.keys(among)}
    return dict(db.execute(SAID_BEFORE, given, binary=True).fetchall())


def said_later(
    db: Connection,
    namespace: int,
    words: Sequence[str],
    roles: Sequence[str],
    since: datetime,
    but: Sequence[UUID],
    limit: int,
    most: int,
) -> list[tuple[Key, str]]:
    """Return facts with one of these words that were said after an instant and their texts, the newest first.

    At most `limit`, of `most` with such a word, whenever these were said.
    """
    wanted = f"{quoted(f'namespace {namespace}')} & ({' | '.join(map(quoted, words))})"
    given = {"namespace": namespace, "words": wanted, "roles": list(roles), "since": since}
    return db.execute(SAID_LATER, given | {"but": list(but), "limit": limit, "most": most}, binary=True).fetchall()


def ask_updates(db: Connection, namespace: int, facts: Sequence[Key], scope: Scope) -> Callable[[], list[Update]]:
    """Send the query for the links of facts that update one of these, the newest ones, as known in the scope.

    Return its reader.
    """
    given = {"namespace": namespace, "facts": columns.keys(facts), "most": MOST_NEWER}
    rows = db.execute(UPDATES_AMONG, given | scope.parameters, binary=True)
    return lambda: [Update(*row) for row in rows]


def take_over(db: Connection, namespace: int, gone: Sequence[UUID], kept: Sequence[UUID]) -> None:
    """Copy the links of merged facts to the facts that they were merged into."""
    db.execute(TAKE_OVER, {"namespace": namespace, "gone": list(gone), "kept": list(kept)})
