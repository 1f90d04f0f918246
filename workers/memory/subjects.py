"""Forgetting by subject: all facts about something, live or not, with a preview and a receipt."""

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from ebb.contract.retention import Forget, Forgot

from workers.context import Context
from workers.errors import InvalidInputError
from workers.memory import forget as forgetting
from workers.storage import namespaces, subjects
from workers.storage.connection import transaction

BATCH = 500
SHOWN = 100
"""Maximum number of facts in the answer."""

LONGEST = 200
"""Maximum characters of a text in the answer."""

FORGOT = ("forgotten", "purged")


def forget(context: Context, asked: Forget, now: datetime, run: UUID, until: float) -> Forgot:
    """Forget or count the facts that match a subject, in batches until `until` on the monotonic clock.

    Raises:
        InvalidInputError: the query has no word to search for.
    """
    shown: list[dict[str, Any]] = []
    matching = done = 0
    for found in _batches(context, asked, now):
        matching += len(found)
        texts = {str(id_): text[:LONGEST] for id_, text in found.items()}
        results: list[dict[str, Any]] = [{"id": id_} for id_ in texts]
        if not asked.dry_run:
            outcomes = forgetting.forget(context, asked.namespace, list(found), now, purge=asked.purge, run=run)
            results = [_result(id_, one) for id_, one in zip(texts, outcomes, strict=True)]
            done += sum(one.get("action") in FORGOT for one in results)
        room = max(SHOWN - len(shown), 0)
        shown += [
            one | ({} if asked.purge and not asked.dry_run else {"text": texts[one["id"]]}) for one in results[:room]
        ]
        if time.monotonic() >= until:
            return Forgot(results=shown, matching=matching, done=done, left=True, run=run, at=now)
    if asked.dry_run:
        return Forgot(results=shown, matching=matching)
    return Forgot(results=shown, matching=matching, done=done, left=False, run=run, at=now)


def _batches(context: Context, asked: Forget, now: datetime) -> Iterator[dict[UUID, str]]:
    """Yield batches of matching facts as texts by id, each fact once."""
    about = {name: one for name, one in asked.subject.items() if name != "query"}
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, asked.namespace)
        wanted = None if asked.query is None else subjects.stems(db, asked.query)
    if wanted == []:
        raise InvalidInputError(f"query: {asked.query!r} has only words that every text has; give others.")
    after: UUID | None = None
    while tenant is not None:
        with transaction(context.database_url) as db:
            found = subjects.matching(db, tenant.id, about, wanted, now, after, BATCH, erasing=asked.purge)
        if not found:
            break
        yield found
        after = max(found)
    after, more = None, tenant is not None
    while tenant is not None and more:
        with transaction(context.database_url) as db:
            found, after = subjects.matching_deep(db, tenant.id, about, wanted, after, BATCH)
        if found:
            yield found
        more = after is not None


def _result(id_: str, outcome: Any) -> dict[str, Any]:
    return {
        "id": id_,
        **({"error": str(outcome)} if isinstance(outcome, InvalidInputError) else {"action": outcome.action}),
    }
