"""Look up: all that is known of an entity, or of one property of it, by its name alone (S62-S65)."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from workers.context import Context
from workers.core import confidence
from workers.core.arrays import Floats, Ints
from workers.recall import answer, scoring
from workers.recall.answer import Result
from workers.storage import candidates, lexemes, lookups, namespaces
from workers.storage.candidates import Candidates, Scope
from workers.storage.connection import Connection, transaction

BY_NAME = "name"


@dataclass(frozen=True, slots=True)
class Name:
    """Whom facts are about, and which property of it; without `key`, all of them (C-S23). Case makes no difference."""

    entity: str
    key: str | None = None
    tag: str | None = None
    as_of: datetime | None = None
    known_as_of: datetime | None = None


def lookup(context: Context, namespace: str, name: Name, now: datetime) -> list[Result]:
    """Return all facts of that name, the most confident first, then the newest; nothing is embedded.

    Their score is their confidence, as soft decay has left it. What is expired, superseded or forgotten is hidden,
    except from those who ask what was true, or known, as of an instant.

    Raises:
        UnavailableError: the database does not answer.
    """
    scope = Scope(now, name.as_of or name.known_as_of, name.tag, known_as_of=name.known_as_of)
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return []
        found = _visible(db, tenant.id, name, scope)
        believed = _confidence(found, scope.as_of or now)
        order = _order(found, believed)
        shown = candidates.describe(db, tenant.id, found["id"].tolist(), answer.silent_since(context, tenant, now))
    tiers = scoring.current_tiers(found, now)
    return [
        answer.result(found[place], shown[found[place]["id"]], int(tiers[place]), float(believed[place]), BY_NAME, None)
        for place in order.tolist()
    ]


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


def _order(found: Candidates, believed: Floats) -> Ints:
    """Return places by confidence and then by what was told last, equal ones always in the same order (S64)."""
    ids = np.array([id_.int for id_ in found["id"]], dtype=object)
    places: Ints = np.lexsort((np.argsort(np.argsort(ids)), -found["told_at"], -believed))
    return places
