"""Timeline: what a property of an entity was, from when to when, and who said so."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ebb.contract.reports import ShowTimeline, Timeline

from workers.context import Context
from workers.memory.recall import deep
from workers.memory.recall.question import Question
from workers.storage import entities, namespaces, words
from workers.storage.connection import reading
from workers.validation import cursors


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a listing continues: after a fact, by when it became true."""

    valid_from: datetime
    id: UUID


def timeline(context: Context, asked: ShowTimeline, now: datetime) -> Timeline:
    """Return what facts state of a property, in the order in which it became true, deep memory included.

    Raises:
        InvalidInputError: the cursor is not one of this listing.
    """
    place = cursors.place(asked.cursor, Cursor)
    deep.promote_matching(context, asked.namespace, Question(f"{asked.entity} {asked.key}", deep=True), now)
    with reading(context.database_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        named = [term.lexeme for term in words.of_query(db, asked.namespace, asked.entity)]
        ids = entities.of_entity_with_past(db, tenant, asked.entity, asked.key, named)
        after = None if place is None else (place.valid_from, place.id)
        found = entities.stated(db, tenant, ids, now, asked.limit + 1, after)
    shown = found[: asked.limit]
    rest = Cursor(shown[-1].valid_from, shown[-1].id) if len(found) > asked.limit else None
    return Timeline(statements=shown, next=cursors.following(rest))
