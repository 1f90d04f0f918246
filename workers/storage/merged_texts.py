"""Texts of near-duplicates that were merged into a live fact, by which that fact is known if one is stored again."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from workers.core import text
from workers.storage import columns
from workers.storage.connection import Connection

# As to `offset 0` and `(select …)`, see `server.OUTDATED`.
KNOWN = """
    select said.place - 1, known.id, known.hash
    from unnest(%(wordings)b::bytea[]) with ordinality as said (wording, place)
    cross join lateral (
        select fact from merged_texts
        where namespace = (select %(namespace)s::int) and merged_texts.wording = said.wording
        offset 0
    ) as merged
    cross join lateral (
        select id, hash from facts
        where namespace = %(namespace)s and id = merged.fact
            and coalesce(forgotten_at, superseded_at) is null
        offset 0
    ) as known
    cross join lateral (
        select from activity
        where activity.namespace = %(namespace)s and activity.fact = known.id
            and not has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        offset 0
    ) as living
"""

HASHES = "select id, hash from facts where namespace = %(namespace)s and id = any(%(ids)s)"

# What was merged into a fact that is merged itself goes on with it.
MOVE_ON = """
    update merged_texts set fact = new.kept
    from unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as new (gone, kept)
    where merged_texts.namespace = %(namespace)s and merged_texts.fact = new.gone
"""

# In key order, to avoid deadlocks. As to `offset 0`, see `server.OUTDATED`.
MISSING = """
    insert into merged_texts (namespace, wording, fact)
    select distinct on (new.wording) %(namespace)s::int, new.wording, new.kept
    from unnest(%(wordings)s::bytea[], %(kept)s::uuid[]) as new (wording, kept)
    cross join lateral (select from facts where namespace = %(namespace)s and id = new.kept offset 0) as there
    order by new.wording, new.kept
    on conflict (namespace, wording) do nothing
"""
ADD = MISSING.replace("do nothing", "do update set fact = excluded.fact")

DROP = "delete from merged_texts where namespace = %(namespace)s and wording = any(%(wordings)s::bytea[])"


def ask_known(
    db: Connection, namespace: int, hashes: Sequence[bytes], now: datetime
) -> Callable[[], dict[bytes, UUID]]:
    """Send the query for the live fact into which one that made each statement was merged; return its reader.

    Only a fact that is about the same is given: an edit may have changed that since the merge.
    """
    wordings = columns.byteas([text.wording_digest(hash_) for hash_ in hashes])
    rows = db.execute(KNOWN, {"namespace": namespace, "wordings": wordings, "now": now}, binary=True)
    return lambda: {hashes[place]: id_ for place, id_, hash_ in rows if text.same_subject(hash_, hashes[place])}


def take_over(db: Connection, namespace: int, gone: Sequence[UUID], kept: Sequence[UUID]) -> None:
    """Record the texts of merged facts, each by the fact that it was merged into, with what was merged into them."""
    db.execute(MOVE_ON, {"namespace": namespace, "gone": list(gone), "kept": list(kept)})
    _add(db, ADD, namespace, dict(zip(gone, kept, strict=True)))


def add_missing(db: Connection, namespace: int, into: Mapping[UUID, UUID]) -> None:
    """Record texts of merged facts that no fact is known by, each by the fact that it was merged into."""
    _add(db, MISSING, namespace, into)


def _add(db: Connection, statement: str, namespace: int, into: Mapping[UUID, UUID]) -> None:
    there = [(wording, into[gone]) for gone, wording in _wordings(db, namespace, list(into)).items()]
    given = {"wordings": [one for one, _ in there], "kept": [other for _, other in there]}
    db.execute(statement, given | {"namespace": namespace})


def drop(db: Connection, namespace: int, ids: Sequence[UUID]) -> None:
    """No longer take the texts of these facts for statements of others."""
    db.execute(DROP, {"namespace": namespace, "wordings": list(_wordings(db, namespace, ids).values())})


def drop_stated(db: Connection, namespace: int, hashes: Sequence[bytes]) -> None:
    """No longer take the texts of these statements for statements of others."""
    db.execute(DROP, {"namespace": namespace, "wordings": list(map(text.wording_digest, hashes))})


def _wordings(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, bytes]:
    rows = db.execute(HASHES, {"namespace": namespace, "ids": list(ids)})
    return {id_: text.wording_digest(hash_) for id_, hash_ in rows}
