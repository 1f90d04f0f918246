"""Links: how a fact derives from, is part of, depends on or resembles another; set by callers, found, and listed."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import ranking, signature
from workers.core.arrays import Vectors
from workers.errors import InvalidInputError, NotFoundError
from workers.memory.recall import scoring
from workers.storage import candidates, events, facts, links, namespaces, signatures, vectors
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, reading, transaction


@dataclass(frozen=True, slots=True)
class Linked:
    """A link as it is now."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    strength: float


def link(
    context: Context, namespace: str, source: UUID, target: UUID, kind: str, strength: float, now: datetime
) -> Linked:
    """Link two facts, or change the strength of their link; a repeat changes nothing.

    A link of type SUPERSEDES only records the relation; storing with `supersedes` also ends the older fact.

    Raises:
        InvalidInputError: a fact is not there or is forgotten, or both are the same; nothing was linked.
    """
    if source == target:
        raise InvalidInputError(f"target: {target} is the source itself; give two different facts.")
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        there = set() if tenant is None else links.linkable(db, tenant.id, [source, target])
        for name, id_ in (("source", source), ("target", target)):
            if tenant is None or id_ not in there:
                raise NotFoundError(f"{name}: no live fact {id_} is in namespace {namespace!r}; see `recall`.")
        assert tenant is not None  # noqa: S101 - or else both facts would be missing
        (id_,) = links.add(db, tenant.id, [(source, target)], kind, [strength], now)
    return Linked(id_, source, target, kind, strength)


def unlink(context: Context, namespace: str, source: UUID, target: UUID, kind: str | None) -> int:
    """Remove the link of a type between two facts, or all of them; return how many there were."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return 0 if tenant is None else links.remove(db, tenant.id, source, target, kind)


AROUND = 10
"""How many of the nearest signatures are looked at closely."""

MOST = 3
"""How many links a fact gets so."""


def autolink(context: Context, namespace: str, fact: UUID, now: datetime) -> int:
    """Link a fact with up to three remembered ones that are more similar than `EBB_AUTO_LINK_MIN_SCORE`.

    The score is the source's, 1 / (1 + d), and becomes the link's strength. A fact that has such links already gets no
    more than three in all, so a repeat adds nothing; a fact without vector gets none. Return how many are new.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        own = None if tenant is None else _vector(db, tenant.id, fact)
        if tenant is None or own is None:
            return 0
        alike = _alike(context, db, tenant.id, fact, own, now)
        return links.add_related(db, tenant.id, fact, alike, MOST, now) if alike else 0


def _vector(db: Connection, tenant: int, fact: UUID) -> Vectors | None:
    for _, stored in vectors.read(db, [tenant], [fact]).values():
        length = float(np.linalg.norm(stored[0]))
        return stored[0] / length if length else None
    return None


def _alike(context: Context, db: Connection, tenant: int, fact: UUID, own: Vectors, now: datetime) -> dict[UUID, float]:
    """Return the remembered facts nearest to a (dims,) vector with their scores, best first, if these are enough."""
    near = signatures.nearest(db, tenant, signature.encode(own[None, :])[0], AROUND + 1)
    others = [id_ for id_ in near if id_ != fact]
    rows = candidates.weigh(db, tenant, others, scoring.pooled_queries(context, own), Scope(now))
    rows = rows[np.array([rule is None for rule in rows["left_out"]], dtype=np.bool_)]
    scores = ranking.vector_score(scoring.similarities(rows, own))
    enough = context.settings.auto_link_min_score
    best = [place for place in np.argsort(-scores, kind="stable")[:MOST] if scores[place] > enough]
    return {rows[place]["id"]: min(float(scores[place]), 1.0) for place in best}


LENGTH = 120
"""Characters of a neighbour's text."""


def neighbours(context: Context, namespace: str, id_: UUID, most: int, now: datetime) -> dict[str, Any]:
    """Return up to `most` facts that one is linked with, by the strongest links, and all links among them.

    What it took the place of, and what took its place, counts as linked with it. Forgotten facts are not there.
    """
    with reading(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        account = None if tenant is None else events.account(db, tenant.id, id_, now)
        if tenant is None or account is None:
            return {"facts": [], "links": [], "total": 0}
        own = links.strongest(db, tenant.id, id_, most)
        total = links.count(db, tenant.id, id_)
        others = {one.source if one.target == id_ else one.target for one in own}
        joined = {one for one in (account.supersedes_id, account.superseded_by) if one is not None}
        texts = facts.beginnings(db, tenant.id, [*others, *joined], LENGTH)
        among = links.among(db, tenant.id, [*others])
    succession = [
        {"source": str(newer), "target": str(older), "type": "SUPERSEDES", "strength": 1.0}
        for newer, older in ((id_, account.supersedes_id), (account.superseded_by, id_))
        if newer in {id_, *texts} and older in {id_, *texts}
    ]
    told = [
        {name: str(value) if isinstance(value, UUID) else value for name, value in asdict(one).items()}
        for one in [*own, *among]
    ]
    for one in told:
        del one["created_at"]
    known = {(one["source"], one["target"], one["type"]) for one in told}
    told += [one for one in succession if (one["source"], one["target"], one["type"]) not in known]
    return {"facts": [{"id": str(one), "text": text} for one, text in texts.items()], "links": told, "total": total}
