"""Show: one fact as it is now, to whoever knows its id."""

from datetime import datetime
from typing import Any
from uuid import UUID

from workers.context import Context
from workers.errors import NotFoundError
from workers.export import shaped
from workers.storage import exports
from workers.storage.connection import transaction


def show(context: Context, namespace: str, id_: UUID, now: datetime) -> dict[str, Any]:
    """Return a fact of a namespace as of `now`, in the terms of an export; reading it does not touch it.

    Raises:
        NotFoundError: the namespace has no such fact, or it is forgotten.
    """
    with transaction(context.database_url) as db:
        row = exports.shown(db, namespace, id_, now)
    if row is None:
        raise NotFoundError(
            f"id: no live fact {id_} is in namespace {namespace!r}; if one was, its history says what became of it."
        )
    (shown,) = shaped([row], now, context)
    return shown
