"""Items: documents that are put under a path and key, found there or by what they say, and replaced whole."""

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID, uuid5

import numpy as np
from ebb.contract.facts import NewFact
from ebb.contract.recall import Filters
from ebb.contract.values import DecayClass

from workers.context import Context
from workers.core import ranking
from workers.core.arrays import Vectors
from workers.core.text import item_digest
from workers.errors import EmbeddingError, InvalidInputError, UnavailableError
from workers.memory import forget as forgetting
from workers.memory.recall import arms, scoring
from workers.memory.store import store_many
from workers.storage import candidates, facts, items, namespaces
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, reading, transaction
from workers.storage.items import Item
from workers.storage.namespaces import Namespace

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def satisfies(value: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether each wanted field of an object is as wanted; objects within are compared field by field."""
    return isinstance(value, Mapping) and all(_is(value.get(name), condition) for name, condition in wanted.items())


def _is(value: Any, condition: Any) -> bool:
    if not isinstance(condition, Mapping):
        return bool(value == condition)
    if any(name.startswith("$") for name in condition):
        return all(_holds(value, name, bound) for name, bound in condition.items())
    return satisfies(value, condition)


def _holds(value: Any, name: str, bound: Any) -> bool:
    """Return whether a comparison holds; what cannot be compared with the bound does not satisfy it."""
    try:
        return bool(COMPARISONS[name](value, bound))
    except (KeyError, TypeError):
        return False


MOST_SEARCHED = 10_000
"""Items below a path that are looked through; past that the newest."""

TRIES = 5
LIVES: tuple[tuple[float, DecayClass], ...] = ((14_400.0, "normal"), (96_480.0, "durable"))
"""Up to so many minutes, an item has that lifetime: the shortest that use renews and that fades no earlier."""

Takes = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Put:
    """A document to keep: its JSON, the words by which it is found, if any, and minutes it lives after each use."""

    path: str
    key: str
    document: str
    text: str | None
    minutes: float | None


def item_id(task: UUID) -> UUID:
    """Return the id of the fact that a task puts, the same whenever it is delivered."""
    return uuid5(task, "item")


def put(context: Context, namespace: str, given: Put, id_: UUID, now: datetime) -> UUID:
    """Keep a document in place of what was under its path and key; the last write wins.

    Raises:
        UnavailableError: others replace the same at this very moment.
    """
    for _ in range(TRIES):
        before, stored = _standing(context, namespace, given, id_)
        if stored:
            return id_
        fact = _fact(context, given, id_, before, now)
        (done,) = store_many(context, namespace, [fact], now, touch=False, classify=False)
        if not isinstance(done, InvalidInputError) and done.id == id_:
            return id_
    raise UnavailableError(f"{given.key!r} is being replaced by others at this very moment: try again.")


def find(
    context: Context, namespace: str, prefix: str, now: datetime, *, key: str | None, takes: Takes | None, most: int
) -> list[Item]:
    """Return up to so many items below a path that are wanted, the newest first, or the one with a key."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return []
        found = items.below(db, tenant.id, prefix, now, most if takes is None else MOST_SEARCHED, key=key)
        return list(islice((item for item in found if _wanted(item, takes)), most))


def search(
    context: Context, namespace: str, prefix: str, query: str, now: datetime, *, takes: Takes | None, most: int
) -> list[tuple[Item, float]]:
    """Return the items below a path that fit a question best, each with its score in [0, 1].

    All of them are compared, by words and by meaning; those that were put without words are not among them.
    """
    vector = _embedded(context, query)
    with reading(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return []
        found = items.below(db, tenant.id, prefix, now, MOST_SEARCHED, whole=takes is not None)
        ids = [item.id for item in found if item.metadata["indexed"] and _wanted(item, takes)]
        best = _scored(context, db, tenant, query, vector, ids, now)[:most]
        shown = items.among(db, tenant.id, [id_ for id_, _ in best])
    return [(shown[id_], score) for id_, score in best]


def _wanted(item: Item, takes: Takes | None) -> bool:
    return takes is None or takes(json.loads(item.metadata["document"]))


def paths(context: Context, namespace: str, now: datetime) -> Sequence[str]:
    """Return every path of a namespace under which something is kept."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return [] if tenant is None else items.paths(db, tenant.id, now)


def drop(context: Context, namespace: str, path: str, key: str, now: datetime) -> bool:
    """Forget what is kept under a path and key; return whether there was something."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        item = None if tenant is None else items.current(db, tenant.id, item_digest(path, key))
    if item is not None:
        forgetting.forget(context, namespace, [item.id], now)
    return item is not None


def _standing(context: Context, namespace: str, given: Put, id_: UUID) -> tuple[Item | None, bool]:
    """Return what is at the place now, and whether this very document was put there before."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return None, False
        before = items.current(db, tenant.id, item_digest(given.path, given.key))
        return before, bool(facts.known_by_id(db, tenant.id, [id_]))


def _fact(context: Context, given: Put, id_: UUID, before: Item | None, now: datetime) -> NewFact:
    words = given.text if given.text and given.text.strip() else f"{given.path} {given.key}"
    metadata = {
        "document": given.document,
        "created_at": now.isoformat() if before is None else before.metadata["created_at"],
        "minutes": given.minutes,
        "indexed": bool(given.text and given.text.strip()),
    }
    return NewFact(
        id=id_,
        kind="item",
        text=_storable(words, context.settings.max_text),
        entity=given.path,
        key=given.key,
        metadata=metadata,
        decay_class=_lifetime(given.minutes),
        supersedes=None if before is None else before.id,
        again=True,
    )


def _storable(text: str, most: int) -> str:
    """Return as much of a text as a fact may have, without what PostgreSQL cannot store."""
    return text.replace("\0", " ").encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _lifetime(minutes: float | None) -> DecayClass:
    return next((lives for most, lives in LIVES if minutes is not None and minutes <= most), "permanent")


def _scored(
    context: Context,
    db: Connection,
    tenant: Namespace,
    query: str,
    vector: Vectors | None,
    ids: Sequence[UUID],
    now: datetime,
) -> list[tuple[UUID, float]]:
    """Return these items with their scores, best first."""
    if not ids:
        return []
    scope = Scope(now, Filters(kind="item"))
    usable = vector if vector is not None and tenant.embedder == context.embedder.name else None
    text = arms.text_arm(db, tenant, query, scope)
    read = candidates.weigh(db, tenant.id, ids, scoring.pooled_queries(context, usable), scope)
    by_words = np.array([text.scores.get(id_, 0.0) for id_ in read["id"]])
    fused = ranking.fuse(by_words, scoring.similarities(read, usable), context.embedder.weight)
    return sorted(zip(read["id"], fused.tolist(), strict=True), key=lambda one: -one[1])


def _embedded(context: Context, query: str) -> Vectors | None:
    try:
        return context.queries.embed(query)
    except EmbeddingError:
        return None
