"""Documents: Markdown files with their chunks (facts of kind `chunk`), registered folders of them, and items."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ebb.contract.documents import Document, RegisteredFolder
from psycopg.rows import class_row

from workers.core.text import item_digest
from workers.storage.candidates import HAS_PLACE, ITEM_ENDS
from workers.storage.connection import Connection, fetch_all, number, scalar

ANY_CHUNK = "select exists (select from facts where namespace = %(namespace)s and kind = 'chunk')"

# Imported chunks may have no document.
KNOWN = """
    select path, folder, encode(digest, 'hex') as digest from documents
    where namespace = %(namespace)s and starts_with(path, %(prefix)s)
    union all
    select distinct source, null, null from facts
    where namespace = %(namespace)s and kind = 'chunk' and starts_with(source, %(prefix)s)
        and not exists (
            select from documents where documents.namespace = %(namespace)s and documents.path = facts.source
        )
    order by path
"""

INDEXED = "select path from documents where namespace = %(namespace)s and path = any(%(paths)s)"

READ_AT = "select read_at from documents where namespace = %(namespace)s and path = %(path)s"

PUT = """
    insert into documents (namespace, path, folder, digest, read_at)
    values (%(namespace)s, %(path)s, %(folder)s, %(digest)s, %(read_at)s)
    on conflict (namespace, path) do update
    set folder = excluded.folder, digest = excluded.digest, read_at = excluded.read_at
"""

LINES = """
    update facts set turn = line
    from unnest(%(ids)s::uuid[], %(lines)s::int[]) as new (id, line)
    where namespace = %(namespace)s and facts.id = new.id and kind = 'chunk' and turn is distinct from line
"""

# As to `offset 0`, see `server.OUTDATED`.
CHUNKS = """
    select id
    from (
        select id from facts
        where namespace = %(namespace)s and kind = 'chunk'
            and left(source, 200) = any(%(beginnings)s) and source = any(%(paths)s)
        offset 0
    ) as found
    order by id
    limit %(limit)s
"""

DROP = """
    with gone as (
        delete from documents where namespace = %(namespace)s and path = any(%(paths)s)
    )
    delete from facts where namespace = %(namespace)s and id = any(%(chunks)s) and kind = 'chunk'
"""


def any_chunk(db: Connection, namespace: int) -> bool:
    """Return whether a namespace has chunks of documents."""
    return bool(number(db, ANY_CHUNK, {"namespace": namespace}))


def known(db: Connection, namespace: int, name: str) -> list[Document]:
    """Return the files below a folder as they were last read; folder and digest are unknown if only chunks exist."""
    return fetch_all(db, Document, KNOWN, {"namespace": namespace, "prefix": f"{name}/"})


def indexed(db: Connection, namespace: int, paths: Iterable[str]) -> set[str]:
    """Return the files among these paths that were read."""
    return {path for (path,) in db.execute(INDEXED, {"namespace": namespace, "paths": [*paths]})}


def read_at(db: Connection, namespace: int, path: str) -> datetime | None:
    """Return the time when a file was last read, if ever."""
    return scalar(db, READ_AT, {"namespace": namespace, "path": path})


def put(db: Connection, namespace: int, path: str, folder: str, digest: bytes, at: datetime) -> None:
    """Record the digest of a file and when it was read."""
    given = {"namespace": namespace, "path": path, "folder": folder, "digest": digest, "read_at": at}
    db.execute(PUT, given)


def put_lines(db: Connection, namespace: int, lines: Mapping[UUID, int]) -> None:
    """Record at which line of its file each chunk begins, in the column of turns."""
    db.execute(LINES, {"namespace": namespace, "ids": list(lines), "lines": list(lines.values())})


def chunks(db: Connection, namespace: int, paths: Sequence[str], limit: int | None = None) -> list[UUID]:
    """Return the chunks of files, including forgotten ones; with `limit`, the first so many."""
    beginnings = [path[:200] for path in paths]
    given = {"namespace": namespace, "paths": list(paths), "beginnings": beginnings, "limit": limit}
    return [id_ for (id_,) in db.execute(CHUNKS, given)]


def drop(db: Connection, namespace: int, chunks: Sequence[UUID], paths: Sequence[str] = ()) -> int:
    """Erase chunks with their rows in other tables, and documents; return the number of chunks."""
    return db.execute(DROP, {"namespace": namespace, "chunks": list(chunks), "paths": list(paths)}).rowcount


BATCH = 200

LIVE = """kind = 'item' and forgotten_at is null and superseded_at is null"""

CURRENT = f"""
    not has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and coalesce({ITEM_ENDS} > %(now)s, true)
"""

# An index entry must fit a third of a page, so only the first 200 characters of a path are indexed. Items are in order
# before they are read, one by one, so that only those of the page are read. As to `offset 0`, see `server.OUTDATED`.
ITEMS_BELOW = f"""
    select item.*
    from (
        select id, created_at from facts
        where namespace = %(namespace)s and {LIVE}
            and starts_with(left(entity, 200) collate "C", left(%(prefix)s, 200)) and starts_with(entity, %(prefix)s)
            and (%(key)s::text is null or key = %(key)s and entity = %(prefix)s)
        order by created_at desc, id desc
        offset 0
    ) as below
    cross join lateral (
        select id, entity as path, key, created_at,
            case when %(whole)s then metadata else json_build_object('indexed', metadata -> 'indexed') end as metadata
        from facts
        join activity on activity.namespace = facts.namespace and activity.fact = facts.id
        where facts.namespace = %(namespace)s and id = below.id and {HAS_PLACE} and {CURRENT}
        offset 0
    ) as item
    order by below.created_at desc, below.id desc
    limit %(limit)s
"""

# As to `+ 0`, see `server.OUTDATED`.
ITEM_PATHS = f"""
    select distinct entity
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and {LIVE} and {HAS_PLACE} and {CURRENT}
    order by entity
"""

ITEM = """
    select id, entity as path, key, metadata, created_at from facts
    where namespace = %(namespace)s and kind = 'item'
"""
ITEMS_AMONG = f"{ITEM} and id = any(%(ids)s)"

# As to `+ 0`, see `server.OUTDATED`.
ITEMS_AT = f"""
    select id, entity as path, key, metadata, facts.created_at, {CURRENT} as current
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and {LIVE} and hash = any(%(hashes)s)
"""


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item, and whether its lifetime is not over."""

    id: UUID
    path: str
    key: str
    metadata: dict[str, Any]
    created_at: datetime
    current: bool = True


def items_below(
    db: Connection,
    namespace: int,
    prefix: str,
    now: datetime,
    limit: int,
    *,
    key: str | None = None,
    whole: bool = True,
) -> Iterator[Item]:
    """Yield the items whose paths begin with a prefix, newest first; with `key`, the one at exactly that path.

    Unless `whole`, their metadata only say whether they are indexed. Uses a server-side cursor.
    """
    given = {"namespace": namespace, "prefix": prefix, "key": key, "now": now, "limit": limit, "whole": whole}
    with db.cursor("items", row_factory=class_row(Item)) as cursor:
        cursor.itersize = BATCH
        yield from cursor.execute(ITEMS_BELOW, given)


def items_among(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Item]:
    """Return the facts that are items, by id."""
    return {item.id: item for item in fetch_all(db, Item, ITEMS_AMONG, {"namespace": namespace, "ids": list(ids)})}


def items_at(db: Connection, namespace: int, hashes: Sequence[bytes], now: datetime) -> dict[bytes, Item]:
    """Return the items with these hashes, by hash, even those that have ended, so that they can be replaced."""
    found = fetch_all(db, Item, ITEMS_AT, {"namespace": namespace, "hashes": list(hashes), "now": now})
    return {item_digest(item.path, item.key): item for item in found}


def item_paths(db: Connection, namespace: int, now: datetime) -> Sequence[str]:
    """Return every path that has items."""
    return [path for (path,) in db.execute(ITEM_PATHS, {"namespace": namespace, "now": now})]


REGISTER = """
    insert into folders (namespace, name, path) values (%(namespace)s, %(name)s, %(path)s)
    on conflict (namespace, name) do update set path = excluded.path, read_at = null, error = null
    where folders.path <> excluded.path
"""

REGISTERED = """
    select name, path, read_at, error from folders
    where namespace = %(namespace)s and (%(name)s::text is null or name = %(name)s)
    order by name
"""

NOTE_READING = """
    update folders set read_at = case when %(whole)s then %(now)s else read_at end, error = %(error)s
    where namespace = %(namespace)s and name = %(name)s
"""

UNREGISTER = "delete from folders where namespace = %(namespace)s and name = %(name)s"

ALL_REGISTERED = """
    select namespaces.name, folders.name
    from folders join namespaces on namespaces.id = folders.namespace
    order by namespaces.id, folders.name
"""


def register(db: Connection, namespace: int, name: str, path: str) -> None:
    """Register a folder, in place of another one of that name."""
    db.execute(REGISTER, {"namespace": namespace, "name": name, "path": path})


def registered(db: Connection, namespace: int, name: str | None = None) -> list[RegisteredFolder]:
    """Return the registered folders of a namespace, or the one with a name."""
    return fetch_all(db, RegisteredFolder, REGISTERED, {"namespace": namespace, "name": name})


def note_reading(db: Connection, namespace: int, name: str, now: datetime, error: str | None, *, whole: bool) -> None:
    """Record an attempt to read a folder: its error, and whether the whole folder was read."""
    db.execute(NOTE_READING, {"namespace": namespace, "name": name, "now": now, "error": error, "whole": whole})


def unregister(db: Connection, namespace: int, name: str) -> bool:
    """Unregister a folder; return whether it was registered."""
    return db.execute(UNREGISTER, {"namespace": namespace, "name": name}).rowcount > 0


def all_registered(db: Connection) -> Sequence[tuple[str, str]]:
    """Return (namespace, folder) of all registered folders, by their names."""
    return db.execute(ALL_REGISTERED).fetchall()
