"""Compare: which facts of a namespace say nearly the same; each is compared once, with all that are there by then."""

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
"""Two episodes in the same words happened twice, and chunks mirror files: neither is said needlessly."""

BATCH = 20
"""Facts compared in one transaction, each with all signatures of the namespace, or by its graph where it has one.

So few, for until a namespace of a million has its graph each takes a third of a second.
"""

NEAREST = 200
"""How many of its like a fact is compared with closely, as many as a recall weighs.

Where all facts follow one pattern, there are many whose signatures hardly differ though their figures do.
"""

Number = TypeVar("Number", np.float32, np.uint8)


def compare(context: Context, namespace: str, now: datetime) -> int:
    """Look for the near-duplicates of the next facts that were not compared yet; return how many, 0 at the end.

    It costs what is new. Repeating it, or doing it twice at once, changes nothing.
    """
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
    """Return those pairs that say nearly the same of the same, and how alike they are."""
    if not candidates:
        return {}
    related = duplicate_pairs.about_the_same(db, tenant, candidates, KIND)
    texts = facts.texts(db, tenant, list({id_ for pair in related for id_ in pair}))
    said = {id_: near_duplicates.wording(text) for id_, text in texts.items()}
    there = [pair for pair in related if pair[0] in said and pair[1] in said]  # and was not forgotten just now
    same = [(one, two) for one, two in there if not near_duplicates.differ(said[one], said[two])]
    found = _similarities(db, tenant, same)
    return {pair: cosine for pair, cosine in found.items() if cosine >= near_duplicates.ALIKE}


def _similarities(db: Connection, tenant: int, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return the cosine of each pair by what is kept of both: vectors pooled alike, or else signatures."""
    ids = sorted({id_ for pair in pairs for id_ in pair})
    kept, signs = _vectors(db, tenant, ids), signatures.read(db, tenant, ids)
    by_shape: dict[tuple[int, int], list[Pair]] = defaultdict(list)
    for one, two in (pair for pair in pairs if pair[0] in signs and pair[1] in signs):
        first, second = (one, two) if _dims(kept, one) >= _dims(kept, two) else (two, one)
        by_shape[_dims(kept, first), _dims(kept, second)].append((first, second))
    found: dict[Pair, float] = {}
    for (_, fewer), some in by_shape.items():
        # For what is nearly the same, two signatures are more precise than one with the other's vector.
        cosines = (
            near_duplicates.cosines(*_sides(kept, some))
            if fewer
            else near_duplicates.estimated_cosines(*_sides(signs, some))
        )
        found |= {(min(pair), max(pair)): cosine for pair, cosine in zip(some, cosines.tolist(), strict=True)}
    return found


def _sides(own: Mapping[UUID, NDArray[Number]], pairs: Sequence[Pair]) -> tuple[NDArray[Number], NDArray[Number]]:
    """Return what each first and each second fact of some pairs has, one row a pair."""
    return np.stack([own[one] for one, _ in pairs]), np.stack([own[two] for _, two in pairs])


def _vectors(db: Connection, tenant: int, ids: Sequence[UUID]) -> dict[UUID, Vectors]:
    by_dims = vectors.read(db, [tenant] * len(ids), ids)
    return {ids[place]: row for places, rows in by_dims.values() for place, row in zip(places, rows, strict=True)}


def _dims(kept: Mapping[UUID, Vectors], id_: UUID) -> int:
    return len(kept[id_]) if id_ in kept else 0
