"""Items: documents that a client keeps under a path and a key, as facts of kind `item`.

Their entity is the path, each of its labels as JSON with a slash behind it, so that what begins alike lies below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

BATCH = 200

# An index's entry must fit a third of a page, so only the beginnings of long paths stand in it.
BELOW = """
    select id, entity as path, key, created_at,
        case when %(whole)s then metadata else json_build_object('indexed', metadata -> 'indexed') end as metadata
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and kind = 'item' and forgotten_at is null and superseded_at is null
        and starts_with(left(entity, 200) collate "C", left(%(prefix)s, 200)) and starts_with(entity, %(prefix)s)
        and (%(key)s::text is null or key = %(key)s and entity = %(prefix)s)
        and not has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and (metadata ->> 'minutes' is null
            or last_seen_at + (metadata ->> 'minutes')::double precision * interval '1 minute' > %(now)s)
    order by created_at desc, id desc
    limit %(limit)s
"""

PATHS = """
    select distinct entity
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and kind = 'item' and forgotten_at is null and superseded_at is null
        and not has_ended(activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and (metadata ->> 'minutes' is null
            or last_seen_at + (metadata ->> 'minutes')::double precision * interval '1 minute' > %(now)s)
    order by entity
"""

AMONG = """
    select id, entity as path, key, metadata, created_at
    from facts
    where namespace = %(namespace)s and id = any(%(ids)s) and kind = 'item'
"""

CURRENT = """
    select id, entity as path, key, metadata, created_at
    from facts
    where namespace = %(namespace)s and hash = %(hash)s and kind = 'item'
        and forgotten_at is null and superseded_at is null
"""


@dataclass(frozen=True, slots=True)
class Item:
    """A document as it is kept, and since when it is so."""

    id: UUID
    path: str
    key: str
    metadata: dict[str, Any]
    created_at: datetime


def below(
    db: Connection,
    namespace: int,
    prefix: str,
    now: datetime,
    limit: int,
    *,
    key: str | None = None,
    whole: bool = True,
) -> Iterator[Item]:
    """Yield the items whose paths begin so, the newest first, or the one with a key at just that path.

    Unless they are wanted `whole`, their metadata only say whether they are indexed. Few are in memory at once.
    """
    given = {"namespace": namespace, "prefix": prefix, "key": key, "now": now, "limit": limit, "whole": whole}
    with db.cursor("items", row_factory=class_row(Item)) as cursor:
        cursor.itersize = BATCH
        yield from cursor.execute(BELOW, given)


def among(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Item]:
    """Return those of these facts that are items."""
    with db.cursor(row_factory=class_row(Item)) as cursor:
        return {item.id: item for item in cursor.execute(AMONG, {"namespace": namespace, "ids": list(ids)})}


def current(db: Connection, namespace: int, hash_: bytes) -> Item | None:
    """Return what is kept at the place with that hash, be it over or not, so that it can be replaced."""
    with db.cursor(row_factory=class_row(Item)) as cursor:
        return cursor.execute(CURRENT, {"namespace": namespace, "hash": hash_}).fetchone()


def paths(db: Connection, namespace: int, now: datetime) -> Sequence[str]:
    """Return every path under which something is kept."""
    return [path for (path,) in db.execute(PATHS, {"namespace": namespace, "now": now})]
