"""Lookup: all facts about an entity, or one property of it, by name."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.recall import Filters, Lookup
from numpy.typing import NDArray

from workers.context import Context
from workers.core import confidence
from workers.core.arrays import Floats
from workers.core.cost import check_size
from workers.memory.lifetime import NEVER
from workers.memory.recall import answer, deep, scoring
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
        found = entities.visible(db, tenant.id, asked.entity, asked.key, [term.lexeme for term in stems], scope)
        at = (scope.as_of or began).timestamp()
        believed = confidence.softened(found["confidence"], found["confirmed_at"], found["expires_at"], at)
        left = [place for place in _order(found, believed) if _is_after(found[place], believed[place], after)]
        page = left[: asked.limit]
        ids = found["id"][page].tolist()
        check_size(facts.size(db, tenant.id, ids, whole=False))
        read = candidates.read(db, tenant.id, ids, {}, scope)
        shown = candidates.describe(db, tenant.id, ids, answer.silent_since(context, tenant, now))()
        ends = answer.endings_of(context, tenant, shown)
    by_id = {one["id"]: one for one in read}
    tiers = dict(zip(read["id"], scoring.current_tiers(read, now).tolist(), strict=True))
    results = [
        answer.result(
            by_id[id_], shown.facts[id_], ends.get(UUID(bytes=id_), NEVER), tiers[id_], score, None, BY_NAME, None, None
        )
        for id_, score in zip(ids, believed[page].tolist(), strict=True)
    ]
    is_last = len(page) == len(left)
    return results, None if is_last else cursors.following(Cursor(began, *_key(found[page[-1]], believed[page[-1]])))


def _order(found: NDArray[np.void], believed: Floats) -> list[int]:
    """Return indexes by confidence, then newest first, then by id."""
    return np.lexsort((np.argsort(np.argsort(found["id"])), -found["stated_at"], -believed)).tolist()


def _key(fact: Any, believed: float) -> tuple[float, float, UUID]:
    return float(believed), float(fact["stated_at"]), UUID(bytes=fact["id"])


def _is_after(fact: Any, believed: float, place: Cursor | None) -> bool:
    """Return whether a fact comes after a cursor in the order of `_order`."""
    if place is None:
        return True
    surety, stated_at, id_ = _key(fact, believed)
    return (-surety, -stated_at, id_) > (-place.believed, -place.stated_at, place.id)
