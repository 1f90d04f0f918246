"""Autolink: a new fact is linked with the few that say the like, if that is wanted; nobody waits for it."""

from datetime import datetime
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import ranking, signature
from workers.core.arrays import Vectors
from workers.memory.recall import scoring
from workers.storage import candidates, links, namespaces, signatures, vectors
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, transaction

AROUND = 10
"""How many of the nearest signatures are looked at closely."""

MOST = 3
"""How many links a fact gets so (C-S19)."""


def autolink(context: Context, namespace: str, fact: UUID, now: datetime) -> int:
    """Link a fact with up to three remembered ones that are more similar than `EBB_AUTO_LINK_MIN_SCORE` (S98).

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
