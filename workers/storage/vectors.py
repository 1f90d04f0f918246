"""Vectors: the embeddings as far as they are kept, in half precision."""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from pgvector import HalfVector

from workers.core.arrays import Ints, Vectors
from workers.storage.connection import Connection

HALFVEC_HEADER = 4

WRITE = """
    insert into vectors (namespace, fact, full_dims, embedding)
    select namespace, fact, full_dims, embedding
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[], %(full_dims)s::int[], %(vectors)s::halfvec[])
        as new (namespace, fact, full_dims, embedding)
    order by namespace, fact
    on conflict (namespace, fact) do update set full_dims = excluded.full_dims, embedding = excluded.embedding
"""

READ = """
    select wanted.place::int, halfvec_send(embedding)
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[]) with ordinality as wanted (namespace, fact, place)
    join vectors on vectors.namespace = wanted.namespace and vectors.fact = wanted.fact
"""

DROP = """
    delete from vectors
    using unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, fact)
    where vectors.namespace = gone.namespace and vectors.fact = gone.fact
"""


def write(
    db: Connection,
    namespaces: Sequence[int],
    ids: Sequence[UUID],
    full_dims: Sequence[int],
    vectors: Sequence[Vectors],
) -> None:
    """Write n vectors, each of its own number of dimensions, over what was there."""
    given = {
        "namespaces": list(namespaces),
        "ids": list(ids),
        "full_dims": list(full_dims),
        "vectors": [HalfVector(vector) for vector in vectors],
    }
    db.execute(WRITE, given)


def read(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> dict[int, tuple[Ints, Vectors]]:
    """Return the vectors of n facts by dims: which of the n places have that many, and the (m, dims) array of them."""
    rows = db.execute(READ, {"namespaces": list(namespaces), "ids": list(ids)}, binary=True).fetchall()
    groups: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for place, raw in rows:
        groups[(len(raw) - HALFVEC_HEADER) // 2].append((place - 1, raw[HALFVEC_HEADER:]))
    return {dims: _unpack(dims, group) for dims, group in groups.items()}


def _unpack(dims: int, group: list[tuple[int, bytes]]) -> tuple[Ints, Vectors]:
    places = np.array([place for place, _ in group], dtype=np.int64)
    halves = np.frombuffer(b"".join(raw for _, raw in group), dtype=">f2")
    return places, halves.reshape(len(group), dims).astype(np.float32)


def drop(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Delete the vectors of facts of which only the signature stays."""
    db.execute(DROP, {"namespaces": list(namespaces), "ids": list(ids)})
