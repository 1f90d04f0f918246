"""Export: every fact of a namespace as what `import` takes, with what has become of it by an instant."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from workers.context import Context
from workers.errors import DamagedError
from workers.memory.facts import shaped
from workers.storage import deep, exports
from workers.storage.connection import Connection, snapshot

BATCH = 1_000
PAIRS = {"links": "link", "contradictions": "contradiction", "likenesses": "likeness"}
"""How lines call the rows of tables that name two facts."""


def export(context: Context, namespace: str | None, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield each fact of a namespace, or of all, as of `now`, then all that these have beside facts.

    All of it is from one unchanging state of the database. What is no fact stands under its kind: `own` (what a
    namespace has of its own), `link`, `contradiction`, `relation` and `wish`, beside `namespace`.

    Raises:
        UnavailableError: the database does not answer.
        DamagedError: facts would be missing, because rows of them are.
    """
    with snapshot(context.database_url) as db:
        if lacking := exports.without_activity(db, namespace):
            raise DamagedError(
                f"{lacking} facts have no activity, and would be missing; run `ebb doctor --all --mend` first."
            )
        rows = exports.rows(db, namespace, BATCH)
        while batch := list(islice(rows, BATCH)):
            noted: list[list[dict[str, Any]]] = [[] for _ in batch]
            for place, at, what, details in exports.events(
                db, [row["namespace"] for row in batch], [row["id"] for row in batch]
            ):
                noted[place].append({"at": at, "what": what, "details": details})
            for row, fact, events in zip(batch, shaped(batch, now, context), noted, strict=True):
                yield fact | {"state": row["state"], "events": events}
        yield from _deep(context, db, namespace, now)
        for kind, row in exports.beside_facts(db, namespace, BATCH):
            yield {"namespace": row.pop("namespace"), kind: row}


def _deep(context: Context, db: Connection, namespace: str | None, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the facts in deep memory, then what lies between them and others."""
    between: list[dict[str, Any]] = []
    rows = deep.rows(db, namespace, BATCH)
    while batch := list(islice(rows, BATCH)):
        beside = {one.id: one.rows()[2] for one in batch}
        found = exports.unpacked(db, batch)
        for row, fact in zip(found, shaped(found, now, context), strict=True):
            yield fact | {"state": row["state"], "events": beside[row["id"]].pop("events")}
            between += [
                {"namespace": row["namespace"], PAIRS[table]: one}
                for table, others in beside[row["id"]].items()
                for one in others
            ]
    yield from between
