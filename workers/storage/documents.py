"""Documents: Markdown files of which the parts are kept as facts of kind `chunk`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

ANY_CHUNK = "select exists (select from facts where namespace = %(namespace)s and kind = 'chunk')"

# Chunks may be there without their document: when they were imported.
KNOWN = """
    select path, folder, digest from documents
    where namespace = %(namespace)s and starts_with(path, %(prefix)s)
    union all
    select distinct source, null::text, null::bytea from facts
    where namespace = %(namespace)s and kind = 'chunk' and starts_with(source, %(prefix)s)
        and not exists (
            select from documents where documents.namespace = %(namespace)s and documents.path = facts.source
        )
    order by path
"""

READ_AT = "select read_at from documents where namespace = %(namespace)s and path = %(path)s"

PUT = """
    insert into documents (namespace, path, folder, digest, read_at)
    values (%(namespace)s, %(path)s, %(folder)s, %(digest)s, %(read_at)s)
    on conflict (namespace, path) do update
    set folder = excluded.folder, digest = excluded.digest, read_at = excluded.read_at
"""

CHUNKS = """
    select id from facts
    where namespace = %(namespace)s and kind = 'chunk'
        and left(source, 200) = any(%(beginnings)s) and source = any(%(paths)s)
"""

DROP = """
    with gone as (
        delete from documents where namespace = %(namespace)s and path = any(%(paths)s)
    )
    delete from facts where namespace = %(namespace)s and id = any(%(chunks)s) and kind = 'chunk'
"""


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was last read; nothing is known of where and what it was if only its chunks are there."""

    path: str
    folder: str | None
    digest: bytes | None


def any_chunk(db: Connection, namespace: int) -> bool:
    """Return whether a namespace has chunks of documents."""
    row = db.execute(ANY_CHUNK, {"namespace": namespace}).fetchone()
    return bool(row and row[0])


def known(db: Connection, namespace: int, name: str) -> list[Known]:
    """Return the files of a folder by its name."""
    with db.cursor(row_factory=class_row(Known)) as cursor:
        return cursor.execute(KNOWN, {"namespace": namespace, "prefix": f"{name}/"}).fetchall()


def read_at(db: Connection, namespace: int, path: str) -> datetime | None:
    """Return when a file was last read."""
    row = db.execute(READ_AT, {"namespace": namespace, "path": path}).fetchone()
    return row[0] if row else None


def put(db: Connection, namespace: int, path: str, folder: str, digest: bytes, at: datetime) -> None:
    """Note what was read of a file, and when."""
    given = {"namespace": namespace, "path": path, "folder": folder, "digest": digest, "read_at": at}
    db.execute(PUT, given)


def chunks(db: Connection, namespace: int, paths: Sequence[str]) -> list[UUID]:
    """Return the chunks of files, forgotten ones included."""
    given = {"namespace": namespace, "paths": list(paths), "beginnings": [path[:200] for path in paths]}
    return [id_ for (id_,) in db.execute(CHUNKS, given)]


def drop(db: Connection, namespace: int, chunks: Sequence[UUID], paths: Sequence[str] = ()) -> int:
    """Erase chunks with all that belongs to them, and documents; return how many chunks there were."""
    return db.execute(DROP, {"namespace": namespace, "chunks": list(chunks), "paths": list(paths)}).rowcount
