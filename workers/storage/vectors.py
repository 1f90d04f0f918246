"""Vectors: embeddings in half precision, the database's embedder, and facts that wait for an embedding."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from workers.core.arrays import Ints, Vectors
from workers.storage import columns
from workers.storage.connection import Connection, fetch_one, number

HALFVEC_HEADER = 4

WRITE = """
    insert into vectors (namespace, fact, full_dims, embedding)
    select %(namespace)s, fact, %(dims)s, embedding
    from unnest(%(ids)b::uuid[], %(vectors)b::halfvec[]) as new (fact, embedding)
    order by fact
    on conflict (namespace, fact) do update set full_dims = excluded.full_dims, embedding = excluded.embedding
"""

READ = """
    select wanted.place::int, halfvec_send(embedding)
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) with ordinality as wanted (namespace, fact, place)
    join vectors on vectors.namespace = wanted.namespace and vectors.fact = wanted.fact
"""

# Not `insert … on conflict`, which would lock each row in the log first.
SHRINK = """
    update vectors set embedding = new.embedding
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(vectors)b::halfvec[]) as new (namespace, fact, embedding)
    where vectors.namespace = new.namespace and vectors.fact = new.fact
"""

DROP = """
    delete from vectors
    using unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, fact)
    where vectors.namespace = gone.namespace and vectors.fact = gone.fact
"""


def write(db: Connection, namespace: int, ids: Sequence[UUID], embedded: Vectors) -> None:
    """Write the (n, dims) full vectors of n facts, replacing existing ones."""
    given = {"namespace": namespace, "ids": columns.uuids(ids), "dims": embedded.shape[1]}
    db.execute(WRITE, given | {"vectors": columns.halfvecs(db, [embedded])})


def shrink(db: Connection, namespaces: Ints | Sequence[int], ids: Sequence[UUID], groups: Sequence[Vectors]) -> None:
    """Replace n existing vectors by pooled ones, from (m, dims) arrays in the order of the facts."""
    given = {"namespaces": columns.ints(namespaces), "ids": columns.uuids(ids), "vectors": columns.halfvecs(db, groups)}
    db.execute(SHRINK, given)


def read(db: Connection, namespaces: Ints | Sequence[int], ids: Sequence[UUID]) -> dict[int, tuple[Ints, Vectors]]:
    """Return the vectors of n facts by dims, each with the indexes of its m facts and an (m, dims) array."""
    given = {"namespaces": columns.ints(namespaces), "ids": columns.uuids(ids)}
    rows = db.execute(READ, given, binary=True).fetchall()
    raw: list[bytes | None] = [None] * len(ids)
    for place, vector in rows:
        raw[place - 1] = vector
    return unpack(raw)


def unpack(raw: Sequence[bytes | None]) -> dict[int, tuple[Ints, Vectors]]:
    """Return vectors by dims, as `read` does, from results of `halfvec_send`; None where a fact has no vector."""
    groups: dict[int, list[int]] = defaultdict(list)
    for place, one in enumerate(raw):
        if one is not None:
            groups[(len(one) - HALFVEC_HEADER) // 2].append(place)
    return {dims: (np.array(places), _halves([raw[i] or b"" for i in places], dims)) for dims, places in groups.items()}


def _halves(raw: Sequence[bytes], dims: int) -> Vectors:
    packed = b"".join(one[HALFVEC_HEADER:] for one in raw)
    return np.frombuffer(packed, dtype=">f2").reshape(len(raw), dims).astype(np.float32)


def drop(db: Connection, namespaces: Ints | Sequence[int], ids: Sequence[UUID]) -> None:
    """Delete the vectors of facts that keep only their signature."""
    db.execute(DROP, {"namespaces": columns.ints(namespaces), "ids": columns.uuids(ids)})


# Those that have ended are found as of an instant, or by a deep recall, unless they were forgotten on request. As to
# `coalesce`, see `server.OUTDATED`. `offset 0` has each text looked up: where most facts wait, the planner would merge
# both tables, and read all facts before the key for every batch.
PENDING = """
    select activity.namespace, activity.fact, text
    from activity
    cross join lateral (
        select text from facts
        where facts.namespace = activity.namespace and facts.id = activity.fact
            and coalesce(forgotten_reason, '') not in ('asked', 'retracted')
        offset 0
    ) as found
    where fidelity = 0 and (activity.namespace, activity.fact) > (%(after)s, %(fact)s)
    order by activity.namespace, activity.fact
    limit %(limit)s
"""

# By the tallies, as `ebb reembed` asks several times a second.
COUNT_PENDING = """
    select coalesce(sum(facts), 0)::bigint from (select * from tallies union all select * from tally_changes) as counted
    where fidelity = 0 and forgotten_reason is null
"""

PENDING_AMONG = """
    select fact from activity where namespace = %(namespace)s and fact = any(%(ids)b) and fidelity = 0
"""

# Those of ended facts, locked until the commit.
MARK_SIGNED = """
    update activity set fidelity = 32767
    where namespace = %(namespace)s and fact = any(%(ids)b) and fidelity = 0 and retired
    returning fact
"""

MARK_ALL_PENDING = "update activity set fidelity = 0, compared = false where fidelity <> 0"


def pending(db: Connection, after: tuple[int, UUID], limit: int) -> list[tuple[int, UUID, str]]:
    """Return (namespace, fact, text) of the next facts after a key without a vector, or signature if ended."""
    return db.execute(PENDING, {"after": after[0], "fact": after[1], "limit": limit}).fetchall()


def count_pending(db: Connection) -> int:
    """Return the number of live facts without a vector, over all namespaces."""
    return number(db, COUNT_PENDING)


def pending_among(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return the facts that have no vector yet."""
    return {fact for (fact,) in db.execute(PENDING_AMONG, {"namespace": namespace, "ids": list(ids)})}


def mark_signed(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Mark the ended ones among locked facts as having a signature alone; return those that had none."""
    return {fact for (fact,) in db.execute(MARK_SIGNED, {"namespace": namespace, "ids": list(ids)})}


def mark_all_pending(db: Connection) -> int:
    """Mark every fact as having no vector; return how many had one."""
    return db.execute(MARK_ALL_PENDING).rowcount


EMBEDDER = "select name, dims, signature_seed from embedders"

ADD_EMBEDDER = """
    insert into embedders (name, dims, signature_seed) values (%(name)s, %(dims)s, %(seed)s)
    on conflict (only_row) do nothing
"""

REPLACE_EMBEDDER = ADD_EMBEDDER.replace(
    "do nothing", "do update set name = excluded.name, dims = excluded.dims, signature_seed = excluded.signature_seed"
)

IS_EMBEDDER = "select exists (select from embedders where name = %(name)s for share)"

HOLD_EMBEDDER = "select from embedders for share"

CLEAR = "truncate vectors, signatures"

CLEAR_DEEP = "update deep set signature = null where signature is not null"


@dataclass(frozen=True, slots=True)
class StoredEmbedder:
    """The embedder of all vectors of a database."""

    name: str
    dims: int
    signature_seed: int


def embedder(db: Connection) -> StoredEmbedder | None:
    """Return the database's embedder; none before the first start."""
    return fetch_one(db, StoredEmbedder, EMBEDDER)


def add_embedder(db: Connection, embedder: StoredEmbedder) -> None:
    """Set the database's embedder if it has none; a concurrent second call waits and changes nothing."""
    db.execute(ADD_EMBEDDER, {"name": embedder.name, "dims": embedder.dims, "seed": embedder.signature_seed})


def replace_embedder(db: Connection, embedder: StoredEmbedder) -> None:
    """Replace the database's embedder; vectors of another one must be cleared in the same transaction."""
    db.execute(REPLACE_EMBEDDER, {"name": embedder.name, "dims": embedder.dims, "seed": embedder.signature_seed})


def is_embedder(db: Connection, name: str) -> bool:
    """Return whether `name` is the database's embedder, locked until the commit."""
    return ask_whether_embedder(db, name)()


def ask_whether_embedder(db: Connection, name: str) -> Callable[[], bool]:
    """Send the query of `is_embedder`; return its reader."""
    rows = db.execute(IS_EMBEDDER, {"name": name})
    return lambda: rows.fetchone() == (True,)


def hold_embedder(db: Connection) -> None:
    """Lock the embedder until the commit, so that the vectors that a transaction copies are not cleared meanwhile.

    Raises:
        SerializationFailure: it was replaced since the snapshot of a `repeatable read` transaction.
    """
    db.execute(HOLD_EMBEDDER)


def clear(db: Connection) -> None:
    """Delete all vectors and signatures of all namespaces but those of deep memory, to be computed again."""
    db.execute(CLEAR)


def clear_deep(db: Connection) -> None:
    """Delete the signatures of deep memory.

    It is not embedded again, so its facts are found by words alone until they are restored.
    """
    db.execute(CLEAR_DEEP)
