"""Passes: what was done of late, the newest first."""

from datetime import datetime

from workers.context import Context
from workers.storage import past_runs
from workers.storage.connection import transaction
from workers.storage.past_runs import Run


def latest(
    context: Context, namespace: str, limit: int, before: datetime | None = None, *, everything: bool = False
) -> list[Run]:
    """Return the latest passes that took a namespace's facts, or with `everything` any.

    Of a pass over all namespaces one of them learns when it was, not what it did.
    """
    with transaction(context.database_url) as db:
        return past_runs.latest(db, namespace, limit, before, everything=everything)
