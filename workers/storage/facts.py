"""Facts: immutable statements, found by their words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from ebb.contract.values import REQUESTED
from psycopg.rows import class_row
from psycopg.types.json import Json, Jsonb

from workers.storage import columns as packed
from workers.storage import deep, namespaces
from workers.storage.connection import Connection, fetch_all, number, scalar, second_reader


class Fact(NamedTuple):
    """One row of `facts` as it is first written; a batch has thousands, and their columns are taken at once."""

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
    metadata: dict[str, Any] | None
    session: str | int | None
    turn: int | None
    role: str | None
    content_salience: float | None
    salience_given: bool
    source_date: datetime | None
    created_at: datetime
    valid_from: datetime
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TextInSession:
    """A fact's text, its speaker, and its position in a session."""

    id: UUID
    text: str
    role: str | None
    session: str | int | None
    turn: int | None


@dataclass(frozen=True, slots=True)
class Known:
    """An existing fact: its id, hash, and whether it is live."""

    id: UUID
    hash: bytes
    live: bool


# Ordered by hash, so that two batches with the same facts do not deadlock. Tags are joined, as PostgreSQL's nested
# arrays must be rectangular.
ADD = """
    insert into facts (namespace, id, kind, text, hash, summary, category, entity, key, value, source, tags,
        importance, metadata, session, turn, role, content_salience, salience_given, source_date, created_at,
        valid_from, valid_until)
    select %(namespace)s, id, kind, text, hash, summary, category, entity, key, value, source,
        string_to_array(tags, ','), importance, metadata, session, turn, role, content_salience, salience_given,
        source_date, created_at, valid_from, valid_until
    from unnest(%(id)b::uuid[], %(kind)b::text[], %(text)b::text[], %(hash)b::bytea[], %(summary)b::text[],
        %(category)b::text[], %(entity)b::text[], %(key)b::text[], %(value)b::text[], %(source)b::text[],
        %(tags)b::text[], %(importance)b::float8[], %(metadata)b::json[], %(session)b::jsonb[], %(turn)b::int[],
        %(role)b::text[], %(content_salience)b::float8[], %(salience_given)b::bool[], %(source_date)b::timestamptz[],
        %(created_at)b::timestamptz[], %(valid_from)b::timestamptz[], %(valid_until)b::timestamptz[])
        as new (id, kind, text, hash, summary, category, entity, key, value, source, tags, importance, metadata,
            session, turn, role, content_salience, salience_given, source_date, created_at, valid_from,
            valid_until)
    order by hash
    on conflict do nothing
    returning id, hash
"""

# In one snapshot, as facts move between the two. The hash of a fact in deep memory is packed: it has an empty one here.
KNOWN_BY_ID = f"""
    select id, hash, forgotten_at is null and superseded_at is null as live from facts
    where namespace = %(namespace)s and id = any(%(ids)b)
    union all
    select id, '', false from deep {deep.THESE}
"""

# In the lock order of other batches.
UNESTIMATED = """
    select id, text, role, session, turn from facts
    where namespace = %(namespace)s and content_salience is null
    order by id limit %(limit)s
"""

NEXT_UNESTIMATED = "select namespace from facts where content_salience is null order by namespace limit 1"

# Empty for facts without a session, and for the first turn.
BEFORE = """
    select coalesce((
        select text from facts
        where namespace = %(namespace)s and facts.session = said.session and facts.turn < said.turn
        order by facts.turn desc limit 1
    ), '')
    from unnest(%(sessions)s::jsonb[], %(turns)s::int[]) with ordinality as said (session, turn, place)
    order by place
"""

ESTIMATE = """
    update facts set content_salience = new.salience
    from unnest(%(ids)b::uuid[], %(saliences)b::float8[]) as new (id, salience)
    where namespace = %(namespace)s and facts.id = new.id and content_salience is null
"""

# Forgotten facts too: they may be restored.
ESTIMATED = """
    select id, text, role, session, turn from facts
    where namespace = %(namespace)s and not salience_given and (%(after)s::uuid is null or id > %(after)s)
    order by id limit %(limit)s
"""

# A decay curve that starts at the old estimate starts at the new one; the next pass recomputes it. A start that was
# given may be too small for single precision, which PostgreSQL refuses.
RESTART = """
    update activity
    set base = new.salience, due_at = case when retired or held then due_at else least(due_at, %(now)s) end
    from unnest(%(ids)b::uuid[], %(saliences)b::float8[]) as new (id, salience)
    join facts on facts.namespace = %(namespace)s and facts.id = new.id
    where activity.namespace = %(namespace)s and activity.fact = new.id
        and coactivations = 0 and (case when base < 1e-37 then 0 else base end)::real = content_salience
"""

# A fact without content salience is estimated in the background: an edit may have changed its role since it was read.
ESTIMATE_AGAIN = ESTIMATE.replace("content_salience is null", "content_salience is not null")

# On Citus the tables of the node that is asked are empty: their rows are on the schema's node.
BYTES = """
    select sum(pg_total_relation_size(oid)) from pg_class
    where oid in ('facts'::regclass, 'activity'::regclass, 'signatures'::regclass)
"""
BYTES_ON_CITUS = BYTES.replace("pg_total_relation_size", "citus_total_relation_size")

COUNTED = """
    select coalesce(sum(facts), 0), coalesce((select dims from embedders), 0)
    from (select * from tallies union all select * from tally_changes) as counted
    where not coalesce(starts_with(forgotten_reason, 'deep '), false)
"""

# `pg_column_size` does not read long texts. Each time the same pages are sampled: with another sample, a pass could let
# go of a few more facts than the pass before. Citus passes no parameters to its nodes here.
OWN_BYTES = """
    select avg(pg_column_size(text) + pg_column_size(search) + coalesce(pg_column_size(metadata), 0))::float8
    from facts tablesample system ({percent:f}) repeatable (0)
"""

SAMPLED = 1_000
"""Number of facts whose sizes are read, about."""

INDEXED, BESIDE_BYTES = 1.25, 1_450
"""Upper limit of a fact's bytes with indexes: a factor for text, words and metadata, and the bytes of all else."""

FEW = 20
"""Number of facts that fit into one answer, even with a mebibyte of metadata each."""

SIZE = """
    select sum(octet_length(text) + case when %(whole)s then coalesce(octet_length(metadata::text), 0) else 0 end)
    from facts where namespace = %(namespace)s and id = any(%(ids)b)
"""

BEGINNINGS = """
    select id, case when length(text) > %(length)s then rtrim(left(text, %(length)s - 1)) || '…' else text end
    from facts where namespace = %(namespace)s and id = any(%(ids)b) and (%(ever)s or forgotten_at is null)
"""

# As to `coalesce`, see `server.OUTDATED`.
TEXTS = """
    select id, text from facts
    where namespace = %(namespace)s and id = any(%(ids)b) and coalesce(forgotten_at, superseded_at) is null
"""

# A deletion request replaces a reason of decay. `tombstone_at` uses the database's clock, whatever `now` is.
FORGET = """
    with gone as (
        update facts set forgotten_at = %(now)s, forgotten_reason = new.reason, forgotten_by = %(run)s,
            tombstone_at = now()
        from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(reasons)b::text[], %(details)s::jsonb[])
            as new (namespace, id, reason, details)
        where facts.namespace = new.namespace and facts.id = new.id
            and (forgotten_at is null or new.reason = any(%(requested)s) and forgotten_reason <> all(%(requested)s))
        returning facts.namespace, facts.id, forgotten_reason, new.details
    )
    insert into events (namespace, fact, at, what, details)
    select namespace, id, %(now)s, 'forgotten',
        jsonb_strip_nulls(jsonb_build_object('reason', forgotten_reason, 'run', %(run)s::text))
            || details
    from gone
"""

CREATED = "select id, created_at from facts where namespace = %(namespace)s and id = any(%(ids)b)"

TEXTUAL = ("kind", "text", "summary", "category", "entity", "key", "value", "source", "tags", "role")
"""Columns of `Fact` that are written as texts."""


def ask_add(db: Connection, namespace: int, facts: Sequence[Fact]) -> Callable[[], dict[UUID, bytes]]:
    """Add facts, except those with a known hash or id; return the reader of the new ones' ids and hashes."""
    if not facts:
        return dict
    columns: dict[str, Any] = dict(zip(Fact._fields, map(list, zip(*facts, strict=True)), strict=True))
    columns["tags"] = [",".join(tags) for tags in columns["tags"]]
    columns["metadata"] = [None if one is None else Json(one) for one in columns["metadata"]]
    columns["session"] = [None if one is None else Jsonb(one) for one in columns["session"]]
    columns |= {name: packed.texts(columns[name]) for name in TEXTUAL}
    columns |= {"id": packed.uuids(columns["id"]), "hash": packed.byteas(columns["hash"]), "namespace": namespace}
    added = db.execute(ADD, columns, binary=True)
    return lambda: dict(added.fetchall())


def ask_known_by_id(
    db: Connection, namespace: int, ids: Sequence[UUID]
) -> Callable[[], tuple[dict[UUID, Known], list[UUID]]]:
    """Send the query for the existing facts among these ids; return its reader.

    Those in deep memory become tombstones; the reader returns which they are besides.
    """
    rows = _known_by_id(db, namespace, ids)

    def read() -> tuple[dict[UUID, Known], list[UUID]]:
        found, unpacked = list(rows), list[UUID]()
        if deep_ones := [one.id for one in found if not one.hash]:
            unpacked = deep.promote(db, namespace, deep_ones, waits=False)
            # read again, also if another transaction has promoted them meanwhile
            found += _known_by_id(db, namespace, deep_ones)
        return {one.id: one for one in found if one.hash}, unpacked

    return read


def _known_by_id(db: Connection, namespace: int, ids: Sequence[UUID]) -> Iterable[Known]:
    given = {"namespace": namespace, "ids": packed.uuids(ids)}
    return db.cursor(row_factory=class_row(Known)).execute(KNOWN_BY_ID, given, binary=True)


def texts(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the texts of the facts that are neither forgotten nor superseded, by id."""
    return dict(db.execute(TEXTS, {"namespace": namespace, "ids": list(ids)}).fetchall())


def created(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, datetime]:
    """Return when facts were stored, by id."""
    return dict(db.execute(CREATED, {"namespace": namespace, "ids": packed.uuids(ids)}, binary=True).fetchall())


def unestimated(db: Connection, limit: int) -> tuple[int, list[TextInSession]] | None:
    """Return a namespace that has facts without content salience, and the first of these facts."""
    row = db.execute(NEXT_UNESTIMATED).fetchone()
    if row is None:
        return None
    return row[0], fetch_all(db, TextInSession, UNESTIMATED, {"namespace": row[0], "limit": limit}, binary=True)


def ask_before(db: Connection, namespace: int, places: Sequence[tuple[str | int, int]]) -> Callable[[], list[str]]:
    """Send the query for the text that precedes each (session, turn), empty before the first; return its reader."""
    sessions, turns = [Jsonb(session) for session, _ in places], [turn for _, turn in places]
    rows = db.execute(BEFORE, {"namespace": namespace, "sessions": sessions, "turns": turns})
    return lambda: [text for (text,) in rows]


def estimate(db: Connection, namespace: int, ids: Sequence[UUID], saliences: Sequence[float]) -> None:
    """Write the content salience of facts that have none."""
    db.execute(ESTIMATE, {"namespace": namespace, "ids": list(ids), "saliences": list(saliences)})


def estimated(db: Connection, namespace: int, limit: int, after: UUID | None) -> list[TextInSession]:
    """Return the next facts of a namespace whose salience is an estimate, by id."""
    given = {"namespace": namespace, "limit": limit, "after": after}
    return fetch_all(db, TextInSession, ESTIMATED, given, binary=True)


def estimate_again(
    db: Connection, namespace: int, ids: Sequence[UUID], saliences: Sequence[float], now: datetime, *, with_base: bool
) -> None:
    """Replace estimated saliences; `with_base` also restarts the decay curves of facts that were never used."""
    given = {"namespace": namespace, "ids": list(ids), "saliences": list(saliences)}
    if with_base:
        db.execute(RESTART, given | {"now": now})
    db.execute(ESTIMATE_AGAIN, given)


def sizes(db: Connection, url: str) -> tuple[float, int]:
    """Return the average bytes of a fact without its vector, and the dimensions of a full vector.

    It is that of the tables, but no more than facts need: tables keep the space of rows that have left them. Citus
    refuses sizes to a transaction that has written, so there a second connection to `url` reads them.
    """
    if namespaces.is_on_citus(db):
        with second_reader(url) as other:
            size = number(other, BYTES_ON_CITUS)
    else:
        size = number(db, BYTES)
    count, dims = db.execute(COUNTED).fetchone() or (0, 0)
    percent = min(100.0, 100.0 * SAMPLED / max(int(count), 1))
    own = scalar(db, OWN_BYTES.format(percent=percent))
    average = size / max(int(count), 1)
    return average if own is None else min(average, INDEXED * own + BESIDE_BYTES), int(dims)


def excerpts(
    db: Connection, namespace: int, ids: Sequence[UUID], length: int = 80, *, ever: bool = True
) -> dict[UUID, str]:
    """Return texts by id, cut to `length` characters with an ellipsis; those of forgotten facts only if `ever`."""
    given = {"namespace": namespace, "ids": list(ids), "length": length, "ever": ever}
    return dict(db.execute(BEGINNINGS, given).fetchall())


def forget(
    db: Connection,
    namespaces: Sequence[int],
    ids: Sequence[UUID],
    reasons: Sequence[str],
    now: datetime,
    run: UUID | None = None,
    details: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Mark facts as forgotten and add the events; return how many changed.

    `details` are added to each event, beside its reason.
    """
    given = {
        "namespaces": list(namespaces),
        "ids": list(ids),
        "reasons": list(reasons),
        "details": [Jsonb(one) for one in details or [{}] * len(ids)],
        "requested": list(REQUESTED),
        "now": now,
        "run": run,
    }
    return db.execute(FORGET, given).rowcount


# The last turn, and which of the turns repeat what other facts say.
LAST_TURN = """
    select greatest(
        (select max(turn) from facts where namespace = %(namespace)s and session = %(session)s),
        (select max(turn) from occurrences where namespace = %(namespace)s and session = %(session)s)
    ), array(
        select id from occurrences where namespace = %(namespace)s and session = %(session)s and id = any(%(ids)s)
    )
"""


def next_turn(db: Connection, namespace: int, session: str | int | None, ids: Sequence[UUID]) -> tuple[int, set[UUID]]:
    """Return the next free turn of a session, and those of these turns that are in it as occurrences of other facts."""
    given = {"namespace": namespace, "session": None if session is None else Jsonb(session), "ids": list(ids)}
    last, repeated = db.execute(LAST_TURN, given).fetchone() or (None, [])
    return 0 if last is None else int(last) + 1, set(repeated)


def size(db: Connection, namespace: int, ids: Sequence[bytes], *, whole: bool = True) -> int:
    """Return the bytes of the texts of facts, and if `whole` of their metadata; 0 for up to `FEW` facts."""
    return number(db, SIZE, {"namespace": namespace, "ids": packed.keys(ids), "whole": whole}) if len(ids) > FEW else 0
