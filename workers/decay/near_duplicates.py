"""Compare: find near-duplicates in a namespace; each fact is compared once with all existing ones."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from workers.context import Context
from workers.core import near_duplicates
from workers.core.arrays import Vectors
from workers.storage import duplicate_pairs, facts, namespaces, signatures, vectors
from workers.storage.connection import Connection, transaction
from workers.storage.duplicate_pairs import Pair

KIND = "semantic"
"""Only semantic facts: two equal episodes happened twice, and chunks mirror files."""

BATCH = 20
"""Facts per transaction; without an HNSW index each takes a third of a second in a namespace of a million."""

NEAREST = 200
"""Number of nearest facts that are compared in detail; facts of one pattern with other figures have near signatures."""

Number = TypeVar("Number", np.float32, np.uint8)


def compare(context: Context, namespace: str, now: datetime) -> int:
    """Find the near-duplicates of the next uncompared facts; return how many were compared. Idempotent."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        waiting = [] if tenant is None else duplicate_pairs.uncompared(db, tenant.id, BATCH)
        if tenant is None or not waiting:
            return 0
        near = signatures.nearest_of_each(db, tenant.id, waiting, NEAREST, near_duplicates.MOST_BITS)
        candidates = sorted({(min(pair), max(pair)) for pair in near})
        found = _alike(db, tenant.id, candidates)
        duplicate_pairs.add(db, tenant.id, list(found), list(found.values()), now)
        duplicate_pairs.mark_compared(db, tenant.id, waiting)
        return len(waiting)


def _alike(db: Connection, tenant: int, candidates: Sequence[Pair]) -> dict[Pair, float]:
    """Return the near-duplicates among pairs, with their cosines."""
    if not candidates:
        return {}
    related = duplicate_pairs.about_the_same(db, tenant, candidates, KIND)
    texts = facts.texts(db, tenant, list({id_ for pair in related for id_ in pair}))
    said = {id_: near_duplicates.wording(text) for id_, text in texts.items()}
    there = [pair for pair in related if pair[0] in said and pair[1] in said]  # others were forgotten just now
    same = [(one, two) for one, two in there if not near_duplicates.differ(said[one], said[two])]
    found = _similarities(db, tenant, same)
    return {pair: cosine for pair, cosine in found.items() if cosine >= near_duplicates.ALIKE}


def _similarities(db: Connection, tenant: int, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return the cosine of each pair, by vectors pooled to the same size if both have one, else by signatures."""
    ids = sorted({id_ for pair in pairs for id_ in pair})
    kept, signs = _vectors(db, tenant, ids), signatures.read(db, tenant, ids)
    by_shape: dict[tuple[int, int], list[Pair]] = defaultdict(list)
    for one, two in (pair for pair in pairs if pair[0] in signs and pair[1] in signs):
        first, second = (one, two) if _dims(kept, one) >= _dims(kept, two) else (two, one)
        by_shape[_dims(kept, first), _dims(kept, second)].append((first, second))
    found: dict[Pair, float] = {}
    for (_, fewer), some in by_shape.items():
        # For near-duplicates two signatures are more precise than a signature and a vector.
        cosines = (
            near_duplicates.cosines(*_sides(kept, some))
            if fewer
            else near_duplicates.estimated_cosines(*_sides(signs, some))
        )
        found |= {(min(pair), max(pair)): cosine for pair, cosine in zip(some, cosines.tolist(), strict=True)}
    return found


def _sides(own: Mapping[UUID, NDArray[Number]], pairs: Sequence[Pair]) -> tuple[NDArray[Number], NDArray[Number]]:
    """Return the arrays of the first and of the second facts of pairs, one row a pair."""
    return np.stack([own[one] for one, _ in pairs]), np.stack([own[two] for _, two in pairs])


def _vectors(db: Connection, tenant: int, ids: Sequence[UUID]) -> dict[UUID, Vectors]:
    by_dims = vectors.read(db, [tenant] * len(ids), ids)
    return {ids[place]: row for places, rows in by_dims.values() for place, row in zip(places, rows, strict=True)}


def _dims(kept: Mapping[UUID, Vectors], id_: UUID) -> int:
    return len(kept[id_]) if id_ in kept else 0
