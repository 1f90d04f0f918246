"""Lookup: all facts about an entity, or one property of it, by name."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ebb.contract.recall import Filters, Lookup

from workers.context import Context
from workers.core import confidence
from workers.core.cost import check_size
from workers.memory.lifetime import NEVER
from workers.memory.namespace_settings import notices_updates
from workers.memory.recall import answer, deep, scoring, updates
from workers.memory.recall.answer import Result
from workers.storage import candidates, entities, facts, namespaces, words
from workers.storage.candidates import Scope
from workers.storage.connection import reading
from workers.validation import cursors

BY_NAME = "name"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a listing: the last fact with its confidence at the instant when the listing began."""

    at: datetime
    believed: float
    stated_at: float
    id: UUID


def lookup(context: Context, asked: Lookup, now: datetime) -> tuple[list[Result], str | None]:
    """Return facts about an entity, most confident first, then newest, and the cursor of the next page.

    The score is the confidence after soft decay. Expired, superseded and forgotten facts are included only as of an
    instant.

    Raises:
        InvalidInputError: the cursor belongs to another listing, or the facts are too large together.
        UnavailableError: the database does not answer.
    """
    after = cursors.place(asked.cursor, Cursor)
    scope = Scope(now, Filters(tag=asked.tag), asked.as_of or asked.known_as_of, asked.known_as_of)
    began = after.at if after else now
    if scope.looks_back:
        deep.promote_property(context, asked.namespace, asked.entity, asked.key, now)
    with reading(context.read_url) as db:
        tenant = namespaces.find(db, asked.namespace)
        if tenant is None:
            return [], None
        stems = words.of_query(db, asked.namespace, asked.entity) if scope.looks_back else []
        lexemes = [term.lexeme for term in stems]
        every, numbers = entities.visible(db, tenant.id, asked.entity, asked.key, lexemes, scope)
        stated_at, surety, confirmed_at, expires_at = numbers
        believed = confidence.softened(surety, confirmed_at, expires_at, (scope.as_of or began).timestamp())
        listed = sorted(zip((-believed).tolist(), (-stated_at).tolist(), every, strict=True))
        last = None if after is None else (-after.believed, -after.stated_at, after.id.bytes)
        left = [one for one in listed if last is None or one > last]
        page = left[: asked.limit]
        ids = [id_ for *_, id_ in page]
        check_size(facts.size(db, tenant.id, ids, whole=False))
        read = candidates.read(db, tenant.id, ids, {}, scope)
        shown = candidates.describe(db, tenant.id, ids, answer.silent_since(context, tenant, now))()
        ends = answer.endings_of(context, tenant, shown)
        noticed = notices_updates(context, tenant.settings)
        outdated = updates.outdated_values(db, tenant.id, read, scope) if noticed else {}
    by_id = {one["id"]: one for one in read}
    tiers = dict(zip(read["id"], scoring.current_tiers(read, now).tolist(), strict=True))
    results = [
        answer.result(
            by_id[id_],
            shown.facts[id_],
            ends.get(UUID(bytes=id_), NEVER),
            tiers[id_],
            -doubt,
            BY_NAME,
            outdated_by=outdated.get(id_, ()),
        )
        for doubt, _, id_ in page
    ]
    if len(page) == len(left):
        return results, None
    doubt, age, id_ = page[-1]
    return results, cursors.following(Cursor(began, -doubt, -age, UUID(bytes=id_)))
