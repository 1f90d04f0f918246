"""The one embedder whose vectors the database holds."""

from dataclasses import dataclass

from psycopg.rows import class_row

from workers.storage.connection import Connection

CURRENT = "select name, dims, signature_seed from embedders"

ADD_FIRST = """
    insert into embedders (name, dims, signature_seed) values (%(name)s, %(dims)s, %(seed)s)
    on conflict (only_row) do nothing
"""

SET = """
    insert into embedders (name, dims, signature_seed) values (%(name)s, %(dims)s, %(seed)s)
    on conflict (only_row) do update set name = excluded.name, dims = excluded.dims,
        signature_seed = excluded.signature_seed
"""

HOLDS = "select exists (select from embedders where name = %(name)s for share)"

CLEAR_VECTORS = "truncate vectors, signatures"


@dataclass(frozen=True, slots=True)
class StoredEmbedder:
    """What all vectors of a database have in common."""

    name: str
    dims: int
    signature_seed: int


def current(db: Connection) -> StoredEmbedder | None:
    """Return the database's embedder, or nothing before the first start."""
    with db.cursor(row_factory=class_row(StoredEmbedder)) as cursor:
        return cursor.execute(CURRENT).fetchone()


def add_first(db: Connection, embedder: StoredEmbedder) -> None:
    """Make `embedder` the database's own if it has none; of two starting at once, the second waits and adds nothing."""
    db.execute(ADD_FIRST, {"name": embedder.name, "dims": embedder.dims, "seed": embedder.signature_seed})


def replace(db: Connection, embedder: StoredEmbedder) -> None:
    """Make `embedder` the database's own; vectors of another one must be cleared in the same transaction."""
    db.execute(SET, {"name": embedder.name, "dims": embedder.dims, "seed": embedder.signature_seed})


def holds(db: Connection, name: str) -> bool:
    """Return whether vectors of embedder `name` may be written now; it is not replaced before the commit."""
    row = db.execute(HOLDS, {"name": name}).fetchone()
    return bool(row and row[0])


def clear_vectors(db: Connection) -> None:
    """Drop every vector and signature of every namespace at once: all of them come from texts and can again."""
    db.execute(CLEAR_VECTORS)
