"""Export: everything in a namespace in the format of `import`, with the decay state at an instant."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate, islice
from typing import Any
from uuid import UUID

from workers.context import Context
from workers.errors import DamagedError, NotFoundError
from workers.memory.facts import shaped
from workers.storage import activity, deep, exports, namespaces
from workers.storage.connection import Connection, on_shard_of, snapshot

BATCH = 1_000
BESIDE = {"links": "link", "contradictions": "contradiction", "likenesses": "likeness", "occurrences": "occurrence"}
"""Kinds of records for the rows of other tables that are packed with a fact."""

MOST_CHARACTERS = 524_288
"""Maximum length of the history in the line of a fact, as imports refuse long lines; the rest follows in records."""

BEYOND = ("salience_given", "state")
"""Columns of a fact that only an export has."""

TYPES: dict[str, Callable[[Any], Any]] = dict.fromkeys(
    ("at", "created_at", "found_at", "accepted_at", "apart_at", "said_at"), datetime.fromisoformat
) | {"strength": float, "similarity": float}
"""Columns of the rows beside a deep fact, which are packed as JSON, that have other types."""


def export(context: Context, namespace: str | None, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the facts of one namespace, or all, as of `now`, and all other records, from one snapshot.

    Each node of Citus has a snapshot of its own, taken at the beginning.

    A record that is no fact has `namespace` and its content under its kind: `own` (settings and turns) before the
    facts, which fade by these settings; `link`, `contradiction`, `relation`, `wish` (deletion request) and so on after
    them.

    Raises:
        NotFoundError: there is no such namespace.
        UnavailableError: the database does not answer.
        DamagedError: facts without activity would be missing.
    """
    with context.at(namespace or 0), snapshot(context.database_url) as db:
        for _ in _places(context, db, namespace):
            _check(db, namespace)
        for _ in _places(context, db, namespace):
            yield from _exported(context, db, namespace, now)


def _places(context: Context, db: Connection, namespace: str | None) -> Iterator[None]:
    """Continue a transaction on each shard, or stay on that of the namespace."""
    if namespace is not None:
        yield
        return
    for shard in context.each_shard():
        with on_shard_of(db, shard):
            yield


def _check(db: Connection, namespace: str | None) -> None:
    if namespace is not None and namespaces.find(db, namespace) is None:
        raise NotFoundError(f"namespace: there is no {namespace!r}, so nothing is exported; correct its name.")
    if lacking := exports.without_activity(db, namespace):
        raise DamagedError(
            f"{lacking} facts have no activity, and would be missing; run `ebb doctor --all --mend` first."
        )


def _exported(context: Context, db: Connection, namespace: str | None, now: datetime) -> Iterator[dict[str, Any]]:
    for kind, row in exports.own_records(db, namespace, BATCH):
        yield _other(kind, row)
    rows = exports.rows(db, namespace, BATCH)
    while batch := list(islice(rows, BATCH)):
        noted: list[list[dict[str, Any]]] = [[] for _ in batch]
        for place, at, what, details in exports.events(
            db, [row["namespace"] for row in batch], [row["id"] for row in batch]
        ):
            noted[place].append({"at": at, "what": what, "details": details})
        facts = list(shaped(batch, now, context))
        over = _over(db, facts, now)
        for row, fact, events in zip(batch, facts, noted, strict=True):
            mark = {"over": True} if (fact["namespace"], fact["id"]) in over else {}
            yield from _in_lines(fact | {name: row[name] for name in BEYOND} | mark, events)
    yield from _deep(context, db, namespace, now)
    for kind, row in exports.other_records(db, namespace, BATCH):
        yield _other(kind, row)


def _in_lines(fact: dict[str, Any], events: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a fact with its history, and as records of their own what would make its line too long."""
    sizes = accumulate(len(repr(event)) for event in events)
    within = sum(1 for place, size in enumerate(sizes) if not place or size <= MOST_CHARACTERS)
    yield fact | {"events": events[:within]}
    for event in events[within:]:
        beside = {"fact": fact["id"], "after": events[within - 1]["at"]}
        yield {"namespace": fact["namespace"], "event": beside | event}


def _over(db: Connection, facts: Sequence[dict[str, Any]], now: datetime) -> set[tuple[str, UUID]]:
    """Return the facts, each with its namespace, that were not live any more, though no pass has forgotten them yet."""
    ended = defaultdict[str, list[UUID]](list)
    for fact in facts:
        if fact["ends_at"] is not None and fact["ends_at"] <= now:
            ended[fact["namespace"]].append(fact["id"])
    return {
        (name, id_) for name, ids in ended.items() for id_ in activity.ended(db, namespaces.id_of(db, name), ids, now)
    }


def _other(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"namespace": row.pop("namespace"), kind: row}


def _deep(context: Context, db: Connection, namespace: str | None, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the facts in deep memory, then their links, contradictions, near-duplicates and occurrences."""
    between: dict[tuple[Any, ...], dict[str, Any]] = {}
    rows = deep.rows(db, namespace, BATCH)
    while batch := list(islice(rows, BATCH)):
        found = exports.unpacked(db, batch)
        for packed, row, fact in zip(batch, found, shaped(found, now, context), strict=True):
            _, _, beside = packed.rows()
            events = [_written(event) for event in beside.pop("events")]
            yield from _in_lines(fact | {name: row[name] for name in BEYOND}, events)
            for table, others in beside.items():
                for one in others:  # which both facts have if both are deep
                    record = {"namespace": row["namespace"], BESIDE[table]: _written(one)}
                    between[row["namespace"], table, *one.values()] = record
    yield from between.values()


def _written(packed: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a packed fact with the types of its columns, so that it is written as other rows are."""
    return packed | {name: TYPES[name](one) for name, one in packed.items() if name in TYPES and one is not None}
