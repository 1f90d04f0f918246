"""Folders: those that are registered to be kept indexed, each under a name in a namespace."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from workers.storage.connection import Connection

PUT = """
    insert into folders (namespace, name, path) values (%(namespace)s, %(name)s, %(path)s)
    on conflict (namespace, name) do update set path = excluded.path, read_at = null, error = null
    where folders.path <> excluded.path
"""

LISTED = """
    select name, path, read_at, error from folders
    where namespace = %(namespace)s and (%(name)s::text is null or name = %(name)s)
    order by name
"""

NOTE = """
    update folders set read_at = case when %(whole)s then %(now)s else read_at end, error = %(error)s
    where namespace = %(namespace)s and name = %(name)s
"""

DROP = "delete from folders where namespace = %(namespace)s and name = %(name)s"

ALL = """
    select namespaces.name, folders.name
    from folders join namespaces on namespaces.id = folders.namespace
    order by namespaces.id, folders.name
"""


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered folder, when all of it was last read, and the error of the latest attempt."""

    name: str
    path: str
    read_at: datetime | None
    error: str | None


def put(db: Connection, namespace: int, name: str, path: str) -> None:
    """Register a folder, in place of another one of that name."""
    db.execute(PUT, {"namespace": namespace, "name": name, "path": path})


def listed(db: Connection, namespace: int, name: str | None = None) -> list[Registered]:
    """Return the registered folders of a namespace, or the one with a name."""
    with db.cursor(row_factory=class_row(Registered)) as cursor:
        return cursor.execute(LISTED, {"namespace": namespace, "name": name}).fetchall()


def note(db: Connection, namespace: int, name: str, now: datetime, error: str | None, *, whole: bool) -> None:
    """Record an attempt to read a folder: its error, and whether the whole folder was read."""
    db.execute(NOTE, {"namespace": namespace, "name": name, "now": now, "error": error, "whole": whole})


def drop(db: Connection, namespace: int, name: str) -> bool:
    """Unregister a folder; return whether it was registered."""
    return db.execute(DROP, {"namespace": namespace, "name": name}).rowcount > 0


def all_names(db: Connection) -> Sequence[tuple[str, str]]:
    """Return (namespace, folder) of all registered folders, by their names."""
    return db.execute(ALL).fetchall()
