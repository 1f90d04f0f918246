"""Vectors: the embeddings as far as they are kept, in half precision, their embedder, and facts that have none."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from pgvector import HalfVector
from psycopg.rows import class_row

from workers.core.arrays import Ints, Vectors
from workers.storage.connection import Connection, number

HALFVEC_HEADER = 4

WRITE = """
    insert into vectors (namespace, fact, full_dims, embedding)
    select namespace, fact, full_dims, embedding
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(full_dims)b::int[], %(vectors)b::halfvec[])
        as new (namespace, fact, full_dims, embedding)
    order by namespace, fact
    on conflict (namespace, fact) do update set full_dims = excluded.full_dims, embedding = excluded.embedding
"""

READ = """
    select wanted.place::int, halfvec_send(embedding)
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) with ordinality as wanted (namespace, fact, place)
    join vectors on vectors.namespace = wanted.namespace and vectors.fact = wanted.fact
"""

DROP = """
    delete from vectors
    using unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, fact)
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
    raw: list[bytes | None] = [None] * len(ids)
    for place, vector in rows:
        raw[place - 1] = vector
    return unpack(raw)


def unpack(raw: Sequence[bytes | None]) -> dict[int, tuple[Ints, Vectors]]:
    """Return vectors by dims, as `read` does, from what `halfvec_send` gives; None where a fact has none."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, one in enumerate(raw):
        if one is not None:
            groups[(len(one) - HALFVEC_HEADER) // 2].append(place)
    return {dims: (np.array(places), _halves([raw[i] or b"" for i in places], dims)) for dims, places in groups.items()}


def _halves(raw: Sequence[bytes], dims: int) -> Vectors:
    packed = b"".join(one[HALFVEC_HEADER:] for one in raw)
    return np.frombuffer(packed, dtype=">f2").reshape(len(raw), dims).astype(np.float32)


def drop(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Delete the vectors of facts of which only the signature stays."""
    db.execute(DROP, {"namespaces": list(namespaces), "ids": list(ids)})


PENDING = """
    select activity.namespace, activity.fact, text
    from activity
    join facts on facts.namespace = activity.namespace and facts.id = activity.fact
    where fidelity = 0 and forgotten_at is null and superseded_at is null
        and (activity.namespace, activity.fact) > (%(after)s, %(fact)s)
    order by activity.namespace, activity.fact
    limit %(limit)s
"""

COUNT_PENDING = """
    select count(*) from activity
    join facts on facts.namespace = activity.namespace and facts.id = activity.fact
    where fidelity = 0 and forgotten_at is null and superseded_at is null
"""

PENDING_AMONG = """
    select fact from activity where namespace = %(namespace)s and fact = any(%(ids)b) and fidelity = 0
"""

MARK_ALL_PENDING = "update activity set fidelity = 0, compared = false where fidelity <> 0"


def pending(db: Connection, after: tuple[int, UUID], limit: int) -> list[tuple[int, UUID, str]]:
    """Return (namespace, fact, text) of facts that still have no vector, behind the place `after`."""
    return db.execute(PENDING, {"after": after[0], "fact": after[1], "limit": limit}).fetchall()


def count_pending(db: Connection) -> int:
    """Return how many live facts of all namespaces have no vector yet."""
    return number(db, COUNT_PENDING)


def pending_among(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of these facts that still have no vector."""
    return {fact for (fact,) in db.execute(PENDING_AMONG, {"namespace": namespace, "ids": list(ids)})}


def mark_all_pending(db: Connection) -> int:
    """Mark every fact as without vector; return how many had one."""
    return db.execute(MARK_ALL_PENDING).rowcount


EMBEDDER = "select name, dims, signature_seed from embedders"

ADD_EMBEDDER = """
    insert into embedders (name, dims, signature_seed) values (%(name)s, %(dims)s, %(seed)s)
    on conflict (only_row) do nothing
"""

REPLACE_EMBEDDER = """
    insert into embedders (name, dims, signature_seed) values (%(name)s, %(dims)s, %(seed)s)
    on conflict (only_row) do update set name = excluded.name, dims = excluded.dims,
        signature_seed = excluded.signature_seed
"""

IS_EMBEDDER = "select exists (select from embedders where name = %(name)s for share)"

CLEAR = "truncate vectors, signatures"

CLEAR_DEEP = "update deep set signature = null"


@dataclass(frozen=True, slots=True)
class StoredEmbedder:
    """What all vectors of a database have in common."""

    name: str
    dims: int
    signature_seed: int


def embedder(db: Connection) -> StoredEmbedder | None:
    """Return the database's embedder, or nothing before the first start."""
    with db.cursor(row_factory=class_row(StoredEmbedder)) as cursor:
        return cursor.execute(EMBEDDER).fetchone()


def add_embedder(db: Connection, embedder: StoredEmbedder) -> None:
    """Make `embedder` the database's own if it has none; of two starting at once, the second waits and adds nothing."""
    db.execute(ADD_EMBEDDER, {"name": embedder.name, "dims": embedder.dims, "seed": embedder.signature_seed})


def replace_embedder(db: Connection, embedder: StoredEmbedder) -> None:
    """Make `embedder` the database's own; vectors of another one must be cleared in the same transaction."""
    db.execute(REPLACE_EMBEDDER, {"name": embedder.name, "dims": embedder.dims, "seed": embedder.signature_seed})


def is_embedder(db: Connection, name: str) -> bool:
    """Return whether vectors of embedder `name` may be written now; it is not replaced before the commit."""
    return bool(number(db, IS_EMBEDDER, {"name": name}))


def clear(db: Connection) -> None:
    """Drop every vector and signature of every namespace at once: all of them come from texts and can again.

    What is in deep memory is found by its words alone until it is live again.
    """
    db.execute(CLEAR)
    db.execute(CLEAR_DEEP)
