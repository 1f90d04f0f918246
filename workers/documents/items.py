"""Items: JSON documents under a path and key, retrieved by place or by search, and replaced as a whole."""

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID, uuid5

import numpy as np
from ebb.contract.documents import DropItem, Dropped, Item, ItemPaths, ItemQuery, Items, ListItemPaths, NewItem
from ebb.contract.facts import NewFact
from ebb.contract.faults import show
from ebb.contract.recall import Filters
from ebb.contract.retention import Outcome
from ebb.contract.values import LONE_SURROGATE, LONGEST_FIELD

from workers.context import Context
from workers.core import ranking
from workers.core.arrays import Vectors
from workers.core.cost import check_size
from workers.core.text import item_digest
from workers.errors import EmbeddingError, InvalidInputError, UnavailableError
from workers.memory import forget as forgetting
from workers.memory.recall import arms, scoring, stems
from workers.memory.recall.arms import Found
from workers.memory.store import store_many
from workers.memory.unpack import known_by_id
from workers.storage import candidates, documents, facts, namespaces
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, reading
from workers.storage.documents import Item as Row
from workers.storage.namespaces import Namespace
from workers.validation.facts import own_words

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def satisfies(value: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether an object's fields match a filter; nested objects are compared field by field.

    A dotted name that is not a field is a path into nested objects: `user.city`.
    """
    return isinstance(value, Mapping) and all(_is(_field(value, name), condition) for name, condition in wanted.items())


def _field(value: Any, name: str) -> Any:
    while isinstance(value, Mapping) and name not in value and "." in name:
        outer, _, name = name.partition(".")
        value = value.get(outer)
    return value.get(name) if isinstance(value, Mapping) else None


def _is(value: Any, condition: Any) -> bool:
    if not isinstance(condition, Mapping):
        return bool(value == condition)
    if any(name.startswith("$") for name in condition):
        return all(_holds(value, name, bound) for name, bound in condition.items())
    return satisfies(value, condition)


def _holds(value: Any, name: str, bound: Any) -> bool:
    """Return whether a comparison holds; false if the values cannot be compared."""
    try:
        return bool(COMPARISONS[name](value, bound))
    except (KeyError, TypeError):
        return False


MOST_SEARCHED = 10_000
"""Items below a path that are searched, newest first."""

COMPARED = 200
"""Number of best items whose words are compared with those of a query, the same on each page."""

TRIES = 5


def item_path(labels: Sequence[str]) -> str:
    """Return labels as one text: each as JSON followed by a slash, so that paths below it start with it.

    Raises:
        InvalidInputError: it is too long.
    """
    path = "".join(f"{json.dumps(label, ensure_ascii=bool(LONE_SURROGATE.search(label)))}/" for label in labels)
    if len(path) > LONGEST_FIELD:
        raise InvalidInputError(f"path: {show(labels)} is longer than {LONGEST_FIELD} characters; shorten its labels.")
    return path


def labels(path: str) -> list[str]:
    """Return the labels of a path."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(path):
        label, at = decoder.raw_decode(path, at)
        found.append(label)
        at += 1
    return found


def item_id(task: UUID, place: int = 0) -> UUID:
    """Return the id of the fact that a task stores, equal at every delivery."""
    return uuid5(task, f"item {place}" if place else "item")


def put(context: Context, namespace: str, given: Sequence[NewItem], ids: Sequence[UUID], now: datetime) -> None:
    """Store documents, each replacing the one under its path and key; the last write wins.

    Raises:
        InvalidInputError: a path is too long.
        UnavailableError: others keep replacing the same items.
    """
    left = dict(zip(ids, given, strict=True))
    for _ in range(TRIES):
        left = _put(context, namespace, left, now)
        if not left:
            return
    keys = ", ".join(repr(one.key) for one in list(left.values())[:3])
    raise UnavailableError(f"{keys}: is being replaced by others at this very moment: try again.")


def _put(context: Context, namespace: str, given: Mapping[UUID, NewItem], now: datetime) -> dict[UUID, NewItem]:
    """Store documents by id; return those in whose place others were stored meanwhile."""
    paths = {id_: item_path(one.path) for id_, one in given.items()}
    places = {id_: item_digest(paths[id_], one.key) for id_, one in given.items()}
    with context.namespace(namespace) as (db, tenant):
        before = documents.items_at(db, tenant, list(places.values()), now)
        known = known_by_id(context, db, tenant, list(given))
    new = {
        id_: _fact(context, one, paths[id_], id_, before.get(places[id_]), now)
        for id_, one in given.items()
        if id_ not in known
    }
    done = store_many(context, namespace, list(new.values()), now, touch=False, classify=False) if new else []
    stored = {one.id for one in done if not isinstance(one, InvalidInputError)}
    return {id_: given[id_] for id_ in new if id_ not in stored}


def find(context: Context, namespace: str, asked: ItemQuery, now: datetime) -> tuple[Items, list[UUID]]:
    """Return a page of items with the ids of their facts: newest first, or best first for a query.

    Raises:
        InvalidInputError: the path or the query is too long, or the items are too large together.
    """
    prefix, most = item_path(asked.path), asked.offset + asked.limit
    query = own_words(asked.query or "", "query", context.settings.max_text)
    if query.strip():
        found = _search(context, namespace, asked, prefix, query, now)[asked.offset : most]
    else:
        found = [(item, None) for item in _newest(context, namespace, asked, prefix, now)]
    return Items(items=[_shown(item, score) for item, score in found]), [item.id for item, _ in found]


def _newest(context: Context, namespace: str, asked: ItemQuery, prefix: str, now: datetime) -> list[Row]:
    most = asked.offset + asked.limit
    with reading(context.read_url) as db:
        tenant = namespaces.id_of(db, namespace)
        found = documents.items_below(db, tenant, prefix, now, MOST_SEARCHED if asked.filter else most, key=asked.key)
        return list(_bounded(islice((item for item in found if _wanted(item, asked)), asked.offset, most)))


def _bounded(found: Iterable[Row]) -> Iterator[Row]:
    """Yield items until their documents are too large for one answer.

    Raises:
        InvalidInputError: they are.
    """
    size = 0
    for item in found:
        check_size(size := size + len(item.metadata["document"]))
        yield item


def _search(
    context: Context, namespace: str, asked: ItemQuery, prefix: str, query: str, now: datetime
) -> list[tuple[Row, float | None]]:
    """Return the best items below a path for a query, each with its score in [0, 1].

    All are compared, by words and by similarity, except those stored without text.
    """
    vector = None
    with suppress(EmbeddingError):
        vector = context.queries.embed(query)
    with reading(context.read_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return []
        found = documents.items_below(db, tenant.id, prefix, now, MOST_SEARCHED, whole=bool(asked.filter))
        ids = [item.id for item in found if item.metadata["indexed"] and _wanted(item, asked)]
        best = _scored(context, db, tenant, query, vector, ids, now)[: asked.offset + asked.limit]
        check_size(facts.size(db, tenant.id, [id_.bytes for id_, _ in best]))
        shown = documents.items_among(db, tenant.id, [id_ for id_, _ in best])
    return [(shown[id_], score) for id_, score in best]


def _wanted(item: Row, asked: ItemQuery) -> bool:
    return not asked.filter or satisfies(json.loads(item.metadata["document"]), asked.filter)


def _shown(item: Row, score: float | None) -> Item:
    """Return an item with its document as the given text, which is not decoded on the way."""
    return Item(
        id=item.id,
        path=labels(item.path),
        key=item.key,
        document=item.metadata["document"],
        created_at=item.metadata["created_at"].replace("+00:00", "Z"),
        updated_at=item.created_at,
        score=score,
    )


def paths(context: Context, asked: ListItemPaths, now: datetime) -> ItemPaths:
    """Return every path of a namespace that has items."""
    with reading(context.read_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        found = documents.item_paths(db, tenant, now)
    return ItemPaths(paths=[labels(path) for path in found])


def drop(context: Context, asked: DropItem, now: datetime) -> Dropped:
    """Forget the item under a path and key, unless it was put there after `now`; return whether there was one."""
    digest = item_digest(item_path(asked.path), asked.key)
    with context.namespace(asked.namespace) as (db, tenant):
        item = documents.items_at(db, tenant, [digest], now).get(digest)
        if item is None or not item.current or forgetting.stored_later(context, db, {item.id: item.created_at}, now):
            return Dropped(dropped=False)
    (outcome,) = forgetting.forget(context, asked.namespace, [item.id], now)
    return Dropped(dropped=isinstance(outcome, Outcome) and outcome.action == "forgotten")


def _fact(context: Context, asked: NewItem, path: str, id_: UUID, before: Row | None, now: datetime) -> NewFact:
    words = asked.text if asked.text and asked.text.strip() else f"{path} {asked.key}"
    metadata = {
        "document": asked.document,
        "created_at": now.isoformat() if before is None else before.metadata["created_at"],
        "minutes": asked.ttl,
        "indexed": bool(asked.text and asked.text.strip()),
    }
    return NewFact(
        id=id_,
        kind="item",
        text=_storable(words, context.settings.max_text),
        entity=path,
        key=asked.key,
        metadata=metadata,
        decay_class="permanent" if asked.ttl is None else "durable",
        supersedes=None if before is None else before.id,
        again=True,
    )


def _storable(text: str, most: int) -> str:
    """Return a text shortened to a fact's limit, without characters that PostgreSQL cannot store."""
    return text.replace("\0", " ").encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _scored(
    context: Context,
    db: Connection,
    tenant: Namespace,
    query: str,
    vector: Vectors | None,
    ids: Sequence[UUID],
    now: datetime,
) -> list[tuple[UUID, float]]:
    """Return these items with their relevance, which is comparable across queries, best first."""
    if not ids:
        return []
    scope = Scope(now, Filters(kind="item"))
    usable = vector if vector is not None and tenant.embedder == context.embedder.name else None
    text = arms.search_text(db, tenant, query, scope)
    queries, sought = scoring.pooled_queries(context, usable), text.stems.unsearched
    read = candidates.ask(db, tenant.id, [id_.bytes for id_ in ids], queries, scope, stems=sought)()
    cosines = scoring.similarities(read, usable)
    by_words = np.array([text.scores.get(id_, 0.0) for id_ in read["id"]])
    meaning = ranking.by_length(context.embedder.weights, text.stems.question.mean_words)
    fused = ranking.fuse(by_words, cosines, meaning, text.enough)
    found = Found(text, dict(zip(read["id"], cosines.tolist(), strict=True)))
    held = stems.contained(db, tenant.id, text.stems, read)
    first = np.argsort(-fused, kind="stable")[:COMPARED]
    alike = stems.alike(text.stems.vectors, read["text"].tolist(), first)
    relevances = found.relevances(tenant.embedder, held, alike, cosines)
    return [(UUID(bytes=read["id"][place]), float(relevances[place])) for place in np.lexsort((-fused, -relevances))]
