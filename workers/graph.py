"""The two graphs: links between facts, and relations between entities."""

from datetime import datetime
from math import inf
from time import monotonic
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.faults import show
from ebb.contract.graph import (
    DecayRelations,
    Edge,
    Link,
    Linked,
    ListRelations,
    Relate,
    Relations,
    RelationsDecayed,
    Removed,
    Unlink,
    Unrelate,
)
from ebb.contract.reports import ShowNeighbours

from workers.context import Context
from workers.core import ranking, signature
from workers.core.arrays import Vectors
from workers.core.names import folded
from workers.errors import InvalidInputError, NotFoundError, no_fact
from workers.memory.recall import scoring
from workers.memory.recall.deep import promote
from workers.memory.unpack import unpack
from workers.storage import activity, candidates, deep, events, facts, links, namespaces, runs, signatures, vectors
from workers.storage import relations as table
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, reading, transaction
from workers.storage.relations import START, Cursor, Fading, Listed, Place, Relation
from workers.storage.runs import Counters
from workers.validation import cursors

NEAREST = 10
"""Number of nearest signatures whose vectors are compared."""

MOST_FOUND = 3
"""Links of a fact that are found by similarity."""

SHOWN = 120
"""Characters of a neighbour's text."""

BATCH = 5_000
"""Relations per transaction of a pass."""

MOST_PREVIEWED = 1_000
"""Relations listed by a dry run."""

COUNTED = ("processed", "decayed", "below_minimum", "newly_below", "pinned")
NOTHING = RelationsDecayed(**dict.fromkeys(COUNTED, 0), edges=[])


def link(context: Context, asked: Link, now: datetime) -> Linked:
    """Link two facts, or change the strength of their link; a repeat changes nothing.

    A link of type SUPERSEDES only records the relation; storing with `supersedes` also ends the older fact.

    Raises:
        InvalidInputError: a fact is missing or forgotten; nothing was linked.
    """
    ends = {"source": asked.source, "target": asked.target}
    with context.namespace(asked.namespace) as (db, tenant):
        activity.lock(db, tenant, list(ends.values()))  # before the facts, as an erasure does
        there = links.linkable(db, tenant, list(ends.values()))
        for name, id_ in ends.items():
            if id_ not in there:
                raise NotFoundError(f"{name}: no live fact {id_} is in namespace {asked.namespace!r}; see `recall`.")
        (id_,) = links.add(db, tenant, [(asked.source, asked.target)], asked.type, [asked.strength], now)
        activity.update_worth(db, tenant, list(ends.values()))
    return Linked(id=id_, **ends, type=asked.type, strength=asked.strength)


def unlink(context: Context, asked: Unlink) -> Removed:
    """Remove the link of a type between two facts, or all of them; return their number."""
    with context.namespace(asked.namespace) as (db, tenant):
        unpack(context, db, tenant, [asked.source, asked.target])
        activity.lock(db, tenant, [asked.source, asked.target])
        removed = links.remove(db, tenant, asked.source, asked.target, asked.type)
        activity.update_worth(db, tenant, [asked.source, asked.target])
    return Removed(removed=removed)


def autolink(context: Context, namespace: str, fact: UUID, now: datetime) -> int:
    """Link a fact with up to three live ones that are more similar than `EBB_AUTO_LINK_MIN_SCORE`.

    The score is 1 / (1 + d), as in OpenMemory, and becomes the link's strength. A fact never gets more than three such
    links, so a repeat adds nothing; a fact without vector gets none. Return the number of new links.
    """
    with context.namespace(namespace) as (db, tenant):
        own = _vector(db, tenant, fact)
        if own is None:
            return 0
        similar = _similar(context, db, tenant, fact, own, now)
        activity.lock(db, tenant, [fact, *similar])
        there = links.linkable(db, tenant, [fact, *similar])
        similar = {id_: score for id_, score in similar.items() if id_ in there}
        if fact not in there or not similar:
            return 0
        added = links.add_related(db, tenant, fact, similar, MOST_FOUND, now)
        if added:
            activity.update_worth(db, tenant, [fact, *similar])
        return added


def _vector(db: Connection, tenant: int, fact: UUID) -> Vectors | None:
    for _, stored in vectors.read(db, [tenant], [fact]).values():
        length = float(np.linalg.norm(stored[0]))
        return stored[0] / length if length else None
    return None


def _similar(
    context: Context, db: Connection, tenant: int, fact: UUID, own: Vectors, now: datetime
) -> dict[UUID, float]:
    """Return the live facts nearest to a (dims,) vector with their scores, best first, above the minimum score."""
    near = signatures.nearest(db, tenant, signature.encode(own[None, :])[0], NEAREST + 1)
    others = [id_.bytes for id_ in near if id_ != fact]
    rows = candidates.read(db, tenant, others, scoring.pooled_queries(context, own), Scope(now))
    rows = rows[scoring.visible(rows)]
    scores = ranking.vector_score(scoring.similarities(rows, own))
    enough = context.settings.auto_link_min_score
    best = [place for place in np.argsort(-scores, kind="stable")[:MOST_FOUND] if scores[place] > enough]
    return {UUID(bytes=rows[place]["id"]): min(float(scores[place]), 1.0) for place in best}


def neighbours(context: Context, asked: ShowNeighbours, now: datetime) -> dict[str, Any]:
    """Return up to `asked.most` facts that one is linked with, by strongest links, and all links among them.

    The fact that it superseded and the one that superseded it count as linked. Forgotten facts are left out; `total`
    counts links to them too.

    Raises:
        NotFoundError: the namespace has no such fact, or it was purged.
    """
    id_ = asked.id
    with reading(context.read_url) as db:
        packed = deep.said(db, namespaces.id_of(db, asked.namespace), [id_])
    if packed:
        promote(context, asked.namespace, [id_], waits=False)
    with reading(context.read_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        account = events.account(db, tenant, id_, now)
        if account is None:
            raise no_fact(id_, asked.namespace)
        own = links.strongest(db, tenant, id_, asked.most)
        total = links.count(db, tenant, id_)
        others = {end for one in own for end in (one.source, one.target)} - {id_}
        older, newer = account.supersedes_id, account.superseded_by
        texts = facts.excerpts(db, tenant, [*others, *filter(None, (older, newer))], SHOWN, ever=False)
        among = links.among(db, tenant, [*others])
    shown = {(one.source, one.target, one.type): _plain(one) for one in [*own, *among]}
    for edge in ((id_, older), (newer, id_)):
        if {id_, *texts}.issuperset(edge):
            source, target = map(str, edge)
            new = {"source": source, "target": target, "type": "SUPERSEDES", "strength": 1.0}
            total += (*edge, "SUPERSEDES") not in shown
            shown.setdefault((*edge, "SUPERSEDES"), new)
    shown_facts = [{"id": str(one), "text": text} for one, text in texts.items()]
    return {"facts": shown_facts, "links": list(shown.values()), "total": total}


def _plain(link: links.Link) -> dict[str, Any]:
    """Return a link as JSON, without its creation time."""
    return {"source": str(link.source), "target": str(link.target), "type": link.type, "strength": link.strength}


def relate(context: Context, asked: Relate, now: datetime) -> Edge:
    """Observe a relation: set its weight, to 1 unless given; return its current state.

    A pinned relation stays pinned unless `pinned` is false, and keeps its weight unless one is given. An observation
    older than the last one changes nothing.

    Raises:
        InvalidInputError: the observation is in the future, or both names are spellings of one.
    """
    if folded(asked.source) == folded(asked.target):
        raise InvalidInputError(f"target: a relation needs two different entities; {show(asked.target)} is the source.")
    names, observed = (asked.source, asked.target, asked.type), asked.last_observed or now
    if observed > now:
        given = show(observed.isoformat())
        raise InvalidInputError(f"The observation at {given} lies ahead of now, {now.isoformat()}; leave it out.")
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, asked.namespace).id
        table.observe(db, tenant, *names, observed, weight=asked.weight, pinned=asked.pinned)
        found = table.find(db, tenant, *names, now, context.fading_of_relations)
    assert found is not None  # noqa: S101 - it was just observed
    return _edge(found, pinned=found.pinned)


def unrelate(context: Context, asked: Unrelate) -> Removed:
    """Remove a relation on request; return the number removed."""
    with context.namespace(asked.namespace) as (db, tenant):
        removed = table.remove(db, tenant, asked.source, asked.target, asked.type)
    return Removed(removed=removed)


def relations(context: Context, asked: ListRelations, now: datetime) -> Relations:
    """Return relations with their weights at `now`, strongest first; later pages use the instant of the first.

    If `decayed` is null, all are returned, each with whether it is below the minimum.

    Raises:
        InvalidInputError: the cursor is not one of this listing.
    """
    after, by = cursors.place(asked.cursor, Cursor), context.fading_of_relations
    at = now if after is None else after.at
    with reading(context.read_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        found = table.among(
            db, tenant, at, by, decayed=asked.decayed, entity=asked.entity, limit=asked.limit + 1, behind=after
        )
    page, following = cursors.page(
        found, asked.limit, lambda one: Cursor(at, one.weight, one.source, one.target, one.type)
    )
    edges = [_listed(one, by, says=asked.decayed is None) for one in page]
    return Relations(edges=edges, total=page[0].total if page else 0, next=following)


def decay(
    context: Context,
    asked: DecayRelations,
    now: datetime,
    *,
    after: Place = START,
    so_far: RelationsDecayed | None = None,
    until: float = inf,
) -> tuple[Place | None, RelationsDecayed]:
    """Update stored weights, batch by batch, until the monotonic clock reaches `until`.

    Return where to continue, if anywhere, and the totals. A dry run changes nothing and lists the first relations that
    a pass would change. Weights follow from the last observation, so a repeat changes nothing.
    """
    rest: Place | None = after
    done = so_far or NOTHING
    while rest is not None and monotonic() < until:
        rest, step = _step(context, asked, rest, now, MOST_PREVIEWED - len(done.edges))
        counts = {name: getattr(done, name) + getattr(step, name) for name in COUNTED}
        done = RelationsDecayed(**counts, edges=[*done.edges, *step.edges])
    return rest, done if asked.dry_run else RelationsDecayed(**done.model_dump(exclude={"edges"}))


def note(
    context: Context, asked: DecayRelations, done: RelationsDecayed, run: UUID, now: datetime, spent_ms: float,
    *, scheduled: bool,
) -> None:  # fmt: skip
    """Record a finished pass among the runs, once; scheduled passes of the same minute count as one."""
    slot = now.replace(second=0, microsecond=0) if scheduled else None
    counters = Counters(processed=done.processed, changed=done.decayed, duration_ms=spent_ms)
    with transaction(context.database_url) as db:
        tenant, dry_run = namespaces.id_within(db, asked.scope), asked.dry_run
        if tenant == namespaces.UNKNOWN:
            return
        if runs.begin(db, run, now, slot, "", work="relations", dry_run=dry_run, force=False, namespace=tenant):
            runs.add_parts(db, run, [runs.NewPart(0, 0, done.processed)])
            runs.count(db, run, 0, 0, counters)
            runs.finish_part(db, run, 0, 0)
            runs.finish(db, run)


def _step(
    context: Context, asked: DecayRelations, after: Place, now: datetime, room: int
) -> tuple[Place | None, RelationsDecayed]:
    with transaction(context.database_url) as db:
        tenant, by = namespaces.id_within(db, asked.scope), context.fading_of_relations
        step, changed = table.examine(db, tenant, after, now, by, BATCH), []
        decayed = step.decayed
        if step.last is not None and asked.dry_run:
            changed = list(table.preview(db, tenant, after, step.last, now, by, max(room, 0)))
        elif step.last is not None:
            decayed = table.materialise(db, tenant, after, step.last, now, by)
    edges = [_edge(one) for one in changed]
    rest = step.last if step.processed == BATCH else None
    counts = {name: getattr(step, name) for name in COUNTED} | {"decayed": decayed}
    return rest, RelationsDecayed(**counts, edges=edges)


def _listed(found: Listed, by: Fading, *, says: bool) -> Edge:
    more = {"pinned": True} if found.pinned else {}
    return _edge(found, **more, **({"decayed": found.weight < by.minimum} if says else {}))


def _edge(found: Relation, **more: bool) -> Edge:
    return Edge(
        source=found.source,
        target=found.target,
        type=found.type,
        weight=round(found.weight, 4),
        last_observed=found.last_observed.date(),
        **more,
    )
