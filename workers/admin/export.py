"""Export: every fact of a namespace as what `import` takes, with what has become of it by an instant."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from workers.context import Context
from workers.errors import DamagedError
from workers.memory.facts import shaped
from workers.storage import exports
from workers.storage.connection import snapshot

BATCH = 1_000


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
        for kind, row in exports.beside_facts(db, namespace, BATCH):
            yield {"namespace": row.pop("namespace"), kind: row}
