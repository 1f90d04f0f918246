"""Facts: what was said, written once and found by its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from workers.storage.connection import Connection


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of `facts` as it is first written."""

    id: UUID
    kind: str
    text: str
    hash: bytes
    summary: str | None
    category: str | None
    entity: str | None
    key: str | None
    value: str | None
    source: str | None
    tags: list[str]
    importance: float
    session: str | int | None
    turn: int | None
    source_date: datetime | None
    created_at: datetime
    valid_from: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """A fact that is there already: who it is, what it says, and whether it is live."""

    id: UUID
    hash: bytes
    live: bool


# Rows go in by hash, so that two batches with the same facts wait for each other instead of deadlocking. Tags go in as
# one string a fact, for arrays of arrays must all be of one length.
ADD = """
    insert into facts (namespace, id, kind, text, hash, summary, category, entity, key, value, source, tags,
        importance, session, turn, source_date, created_at, valid_from)
    select %(namespace)s, id, kind, text, hash, summary, category, entity, key, value, source,
        string_to_array(tags, ','), importance, session, turn, source_date, created_at, valid_from
    from unnest(%(id)b::uuid[], %(kind)b::text[], %(text)b::text[], %(hash)b::bytea[], %(summary)b::text[],
        %(category)b::text[], %(entity)b::text[], %(key)b::text[], %(value)b::text[], %(source)b::text[],
        %(tags)b::text[], %(importance)b::float8[], %(session)b::jsonb[], %(turn)b::int[],
        %(source_date)b::timestamptz[], %(created_at)b::timestamptz[], %(valid_from)b::timestamptz[])
        as new (id, kind, text, hash, summary, category, entity, key, value, source, tags, importance, session,
            turn, source_date, created_at, valid_from)
    order by hash
    on conflict do nothing
    returning id, hash
"""

KNOWN_BY_HASH = """
    select hash, id from facts
    where namespace = %(namespace)s and hash = any(%(hashes)b) and forgotten_at is null and superseded_at is null
"""

KNOWN_BY_ID = """
    select id, hash, forgotten_at is null and superseded_at is null as live from facts
    where namespace = %(namespace)s and id = any(%(ids)b)
"""

TEXTS = "select id, text from facts where namespace = %(namespace)s and id = any(%(ids)b) and forgotten_at is null"

FORGET = """
    update facts set forgotten_at = %(now)s, forgotten_reason = new.reason
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(reasons)b::text[]) as new (namespace, id, reason)
    where facts.namespace = new.namespace and facts.id = new.id and forgotten_at is null
"""

COUNT_LIVE = """
    select count(*) from facts
    where namespace = %(namespace)s and forgotten_at is null and superseded_at is null
"""

# A query's words, stemmed as the index stems, stop words gone.
LEXEMES_OF = "select tsvector_to_array(to_tsvector('english', %(query)s))"

NEIGHBOURS = """
    select facts.id
    from unnest(%(sessions)s::jsonb[], %(turns)s::int[]) as near (session, turn)
    join facts on facts.namespace = %(namespace)s and facts.session = near.session and facts.turn = near.turn
    where forgotten_at is null and superseded_at is null
"""


def add(db: Connection, namespace: int, facts: Sequence[Fact]) -> dict[UUID, bytes]:
    """Add facts; return id and hash of those that were new. What is said already, or has a known id, stays as it is."""
    columns = {name: [getattr(fact, name) for fact in facts] for name in Fact.__slots__}
    columns["tags"] = [",".join(fact.tags) for fact in facts]
    columns["session"] = [None if fact.session is None else Jsonb(fact.session) for fact in facts]
    return dict(db.execute(ADD, columns | {"namespace": namespace}, binary=True).fetchall())


def known_by_hash(db: Connection, namespace: int, hashes: Sequence[bytes]) -> dict[bytes, UUID]:
    """Return the live fact that says each of these things, where there is one."""
    rows = db.execute(KNOWN_BY_HASH, {"namespace": namespace, "hashes": list(hashes)}, binary=True)
    return dict(rows.fetchall())


def known_by_id(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Known]:
    """Return which of these ids are taken, and by what."""
    with db.cursor(row_factory=class_row(Known)) as cursor:
        rows = cursor.execute(KNOWN_BY_ID, {"namespace": namespace, "ids": list(ids)}, binary=True)
        return {known.id: known for known in rows}


def texts(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the texts of those facts that are not forgotten."""
    return dict(db.execute(TEXTS, {"namespace": namespace, "ids": list(ids)}).fetchall())


def forget(
    db: Connection, namespaces: Sequence[int], ids: Sequence[UUID], reasons: Sequence[str], now: datetime
) -> int:
    """Hide facts from every reader but history; return how many were live until now."""
    given = {"namespaces": list(namespaces), "ids": list(ids), "reasons": list(reasons), "now": now}
    return db.execute(FORGET, given).rowcount


def count_live(db: Connection, namespace: int) -> int:
    """Return how many facts of a namespace are neither forgotten nor superseded."""
    row = db.execute(COUNT_LIVE, {"namespace": namespace}).fetchone()
    return int(row[0]) if row else 0


def lexemes_of(db: Connection, query: str) -> list[str]:
    """Return the words of a query as the text index knows them; empty when it has stop words only."""
    row = db.execute(LEXEMES_OF, {"query": query}).fetchone()
    return list(row[0]) if row else []


def neighbours(db: Connection, namespace: int, places: Sequence[tuple[str, int]]) -> list[UUID]:
    """Return the live facts at these places, each a session (JSON as it is stored) and a turn."""
    sessions, turns = [session for session, _ in places], [turn for _, turn in places]
    rows = db.execute(NEIGHBOURS, {"namespace": namespace, "sessions": sessions, "turns": turns})
    return [id_ for (id_,) in rows]
