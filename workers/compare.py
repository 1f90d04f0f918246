"""Compare: which facts of a namespace say nearly the same; each is compared once, with all that are there by then."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import likeness, signature
from workers.core.arrays import Bytes, Vectors
from workers.storage import embedders, facts, likenesses, namespaces, signatures, vectors
from workers.storage.connection import Connection, transaction
from workers.storage.likenesses import Pair

KIND = "semantic"
"""Two episodes in the same words happened twice, and chunks mirror files: neither is said needlessly."""

BATCH = 50
"""Facts compared in one transaction, each with all signatures of the namespace, or by its graph if it is large."""

NEAREST = 20
"""How many of its like a fact is compared with closely; it may have more, which are found when those are merged."""


def compare(context: Context, namespace: str, now: datetime) -> int:
    """Look for the near-duplicates of the next facts that were not compared yet; return how many, 0 at the end.

    It costs what is new. Repeating it, or doing it twice at once, changes nothing.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        waiting = [] if tenant is None else likenesses.uncompared(db, tenant.id, BATCH)
        if tenant is None or not waiting:
            return 0
        near = signatures.nearest_of_each(db, tenant.id, waiting, NEAREST, likeness.MOST_BITS)
        candidates = sorted({(min(pair), max(pair)) for pair in near})
        found = _alike(db, tenant.id, candidates)
        likenesses.add(db, tenant.id, list(found), list(found.values()), now)
        likenesses.mark_compared(db, tenant.id, waiting)
        return len(waiting)


def _alike(db: Connection, tenant: int, candidates: Sequence[Pair]) -> dict[Pair, float]:
    """Return those pairs that say nearly the same of the same, and how alike they are."""
    if not candidates:
        return {}
    related = likenesses.about_the_same(db, tenant, candidates, KIND)
    texts = facts.texts(db, tenant, list({id_ for pair in related for id_ in pair}))
    same = [pair for pair in related if not likeness.differ(texts[pair[0]], texts[pair[1]])]
    found = _similarities(db, tenant, same)
    return {pair: cosine for pair, cosine in found.items() if cosine >= likeness.ALIKE}


def _similarities(db: Connection, tenant: int, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return the cosine of each pair by what is kept of both: vectors pooled alike, or else signatures (C-X12)."""
    ids = sorted({id_ for pair in pairs for id_ in pair})
    kept, signs = _vectors(db, tenant, ids), signatures.read(db, tenant, ids)
    by_shape: dict[tuple[int, int], list[Pair]] = defaultdict(list)
    for one, two in pairs:
        first, second = (one, two) if _dims(kept, one) >= _dims(kept, two) else (two, one)
        by_shape[_dims(kept, first), _dims(kept, second)].append((first, second))
    stored = embedders.current(db)
    full = stored.dims if stored else 0
    found: dict[Pair, float] = {}
    for (dims, fewer), some in by_shape.items():
        if fewer:
            ones, twos = (np.stack([kept[pair[side]] for pair in some]) for side in (0, 1))
            cosines = likeness.cosines(ones, twos).tolist()
        elif dims == full and full:
            cosines = [float(signature.estimate(kept[one], signs[two][None, :])[0]) for one, two in some]
        else:
            cosines = _by_signatures(signs, some)
        found |= {(min(pair), max(pair)): cosine for pair, cosine in zip(some, cosines, strict=True)}
    return found


def _vectors(db: Connection, tenant: int, ids: Sequence[UUID]) -> dict[UUID, Vectors]:
    by_dims = vectors.read(db, [tenant] * len(ids), ids)
    return {ids[place]: row for places, rows in by_dims.values() for place, row in zip(places, rows, strict=True)}


def _dims(kept: Mapping[UUID, Vectors], id_: UUID) -> int:
    return len(kept[id_]) if id_ in kept else 0


def _by_signatures(signs: Mapping[UUID, Bytes], pairs: Sequence[Pair]) -> list[float]:
    ones, twos = (np.stack([signs[pair[side]] for pair in pairs]) for side in (0, 1))
    estimated: list[float] = likeness.estimated_cosines(ones, twos).tolist()
    return estimated
