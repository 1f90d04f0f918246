"""Documents: Markdown files of which the chunks are kept as facts."""

from workers.storage.connection import Connection

ANY_CHUNK = "select exists (select from facts where namespace = %(namespace)s and kind = 'chunk')"


def any_chunk(db: Connection, namespace: int) -> bool:
    """Return whether a namespace has chunks of documents."""
    row = db.execute(ANY_CHUNK, {"namespace": namespace}).fetchone()
    return bool(row and row[0])
