"""Look up: all that is known of an entity, or of one property of it, by its name alone."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import confidence
from workers.core.arrays import Floats
from workers.memory.lifetime import NEVER
from workers.memory.recall import answer, scoring
from workers.memory.recall.answer import Result
from workers.storage import candidates, lexemes, lookups, namespaces
from workers.storage.candidates import Candidates, Scope
from workers.storage.connection import Connection, reading

BY_NAME = "name"


@dataclass(frozen=True, slots=True)
class Name:
    """Whom facts are about, and which property of it; without `key`, all of them. Case makes no difference."""

    entity: str
    key: str | None = None
    tag: str | None = None
    as_of: datetime | None = None
    known_as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a listing goes on: behind a fact, as it was believed at the instant at which the listing began."""

    at: datetime
    believed: float
    told_at: float
    id: UUID


def lookup(
    context: Context, namespace: str, name: Name, now: datetime, limit: int | None = None, behind: Cursor | None = None
) -> tuple[list[Result], Cursor | None]:
    """Return facts of that name, the most confident first, then the newest, and where to go on; nothing is embedded.

    Without limit they are all of them. Their score is their confidence, as soft decay has left it. What is expired,
    superseded or forgotten is hidden, except from those who ask what was true, or known, as of an instant.

    Raises:
        UnavailableError: the database does not answer.
    """
    scope = Scope(now, name.as_of or name.known_as_of, name.tag, known_as_of=name.known_as_of)
    began = behind.at if behind else now
    with reading(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return [], None
        found = _visible(db, tenant.id, name, scope)
        believed = _confidence(found, scope.as_of or began)
        left = [place for place in _order(found, believed) if _is_behind(found[place], believed[place], behind)]
        page = left[:limit]
        ids = [found[place]["id"] for place in page]
        shown = candidates.describe(db, tenant.id, ids, answer.silent_since(context, tenant, now))
        ends = answer.ending(context, db, tenant, ids)
    tiers = scoring.current_tiers(found, now)
    results = [
        answer.result(
            found[place],
            shown[found[place]["id"]],
            ends.get(found[place]["id"], NEVER),
            int(tiers[place]),
            float(believed[place]),
            BY_NAME,
            None,
        )
        for place in page
    ]
    ended = len(page) == len(left)
    return results, None if ended else Cursor(began, *_key(found[page[-1]], believed[page[-1]]))


def _visible(db: Connection, tenant: int, name: Name, scope: Scope) -> Candidates:
    """Return the facts of that name that no rule hides."""
    if scope.looks_back:
        words = [term.lexeme for term in lexemes.of_query(db, tenant, name.entity)]
        ids = lookups.of_entity_ever(db, tenant, name.entity, name.key, words)
    else:
        ids = lookups.of_entity(db, tenant, name.entity, name.key)
    found = candidates.weigh(db, tenant, ids, {}, scope)
    visible: Candidates = found[np.array([rule is None for rule in found["left_out"]], dtype=np.bool_)]
    return visible


def _confidence(found: Candidates, at: datetime) -> Floats:
    return confidence.softened(found["confidence"], found["confirmed_at"], found["expires_at"], at.timestamp())


def _order(found: Candidates, believed: Floats) -> list[int]:
    """Return places by confidence, then the latest statement; ties always in the same order."""
    ids = np.array([id_.int for id_ in found["id"]], dtype=object)
    places: list[int] = np.lexsort((np.argsort(np.argsort(ids)), -found["told_at"], -believed)).tolist()
    return places


def _key(fact: Any, believed: float) -> tuple[float, float, UUID]:
    """Return by what a fact stands where it does."""
    return float(believed), float(fact["told_at"]), fact["id"]


def _is_behind(fact: Any, believed: float, place: Cursor | None) -> bool:
    """Tell whether a fact stands behind a place, in the order of `_order`."""
    if place is None:
        return True
    surety, told_at, id_ = _key(fact, believed)
    return (-surety, -told_at, id_) > (-place.believed, -place.told_at, place.id)
