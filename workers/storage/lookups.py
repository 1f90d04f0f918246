"""Lookups: whom facts are about, and which of their properties, without any search."""

from collections.abc import Sequence
from uuid import UUID

from workers.storage.candidates import quoted
from workers.storage.connection import Connection

OF_ENTITY = """
    select id from facts
    where namespace = %(namespace)s and entity is not null and forgotten_at is null and superseded_at is null
        and left(lower(entity), 200) = left(lower(%(entity)s), 200) and lower(entity) = lower(%(entity)s)
        and (%(key)s::text is null
            or left(lower(key), 200) = left(lower(%(key)s), 200) and lower(key) = lower(%(key)s))
"""

# What was superseded or forgotten since stands in no index of entities, but its words are still in that of texts, which
# has those of entities, too; `+ 0` as in `candidates.MATCHES`.
OF_ENTITY_EVER = """
    select id from facts
    where namespace + 0 = %(namespace)s and search @@ %(words)s::tsquery
        and lower(entity) = lower(%(entity)s) and (%(key)s::text is null or lower(key) = lower(%(key)s))
"""


def of_entity(db: Connection, namespace: int, entity: str, key: str | None) -> list[UUID]:
    """Return the live facts about an entity, or about one key of it, whatever their case."""
    given = {"namespace": namespace, "entity": entity, "key": key}
    return [id_ for (id_,) in db.execute(OF_ENTITY, given)]


def of_entity_ever(db: Connection, namespace: int, entity: str, key: str | None, words: Sequence[str]) -> list[UUID]:
    """Return all facts that ever were about an entity, or one key of it; `words` are the lexemes of its name."""
    wanted = " & ".join(map(quoted, [f"namespace {namespace}", *words]))
    given = {"namespace": namespace, "entity": entity, "key": key, "words": wanted}
    return [id_ for (id_,) in db.execute(OF_ENTITY_EVER, given)]
