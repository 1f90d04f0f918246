"""Erasures: of which namespaces facts were erased, until no page and no count of words tells of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.storage.connection import Connection

WAITING = """
    select array_agg(erasures.id), array_agg(distinct name) filter (where name is not null)
    from erasures left join namespaces on namespaces.id = namespace
"""

DELETE = "delete from erasures where id = any(%(ids)s)"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is to be cleaned: the ids of erasures, and the names of the namespaces that they were in."""

    ids: Sequence[int]
    namespaces: Sequence[str]


def waiting(db: Connection) -> Waiting:
    """Return the erasures that were committed and not cleaned yet."""
    row = db.execute(WAITING).fetchone()
    ids, names = row or (None, None)
    return Waiting(ids or [], names or [])


def note_cleaned(db: Connection, done: Waiting) -> None:
    """Forget erasures, all of which was cleaned; others stay, though they have smaller ids and were committed later."""
    db.execute(DELETE, {"ids": done.ids})
