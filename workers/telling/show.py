"""Show: single facts as they are now, to whoever knows their ids, or turns the pages of a namespace."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from workers.context import Context
from workers.errors import NotFoundError
from workers.storage import exports
from workers.storage import namespaces as tenants
from workers.storage.connection import transaction
from workers.telling.export import shaped


@dataclass(frozen=True, slots=True)
class Place:
    """Where a listing goes on: with what is older than a fact."""

    before: UUID


def show(context: Context, namespace: str, id_: UUID, now: datetime) -> dict[str, Any]:
    """Return a fact of a namespace as of `now`, in the terms of an export; reading it does not touch it.

    Raises:
        NotFoundError: the namespace has no such fact, or it is forgotten.
    """
    with transaction(context.database_url) as db:
        row = exports.shown(db, namespace, [id_], now).get(id_)
    if row is None:
        raise NotFoundError(
            f"id: no live fact {id_} is in namespace {namespace!r}; if one was, its history says what became of it."
        )
    (shown,) = shaped([row], now, context)
    return shown


def among(context: Context, namespace: str, ids: Sequence[UUID], now: datetime) -> list[dict[str, Any]]:
    """Return those of these facts that readers see, in the order of the ids, in the terms of an export."""
    with transaction(context.database_url) as db:
        rows = exports.shown(db, namespace, ids, now)
    return _shaped([rows[id_] for id_ in ids if id_ in rows], now, context)


def page(
    context: Context, namespace: str, limit: int, now: datetime, *, before: UUID | None = None, offset: int = 0
) -> tuple[list[dict[str, Any]], Place | None]:
    """Return the next facts that readers see, newest first, in the terms of an export, and where to go on.

    Reading does not touch them.
    """
    with transaction(context.database_url) as db:
        tenant = tenants.find(db, namespace)
        ids = [] if tenant is None else exports.page(db, tenant.id, now, limit + 1, before=before, offset=offset)
        rows = exports.shown(db, namespace, ids[:limit], now)
    rest = Place(ids[limit - 1]) if len(ids) > limit else None
    return _shaped([rows[id_] for id_ in ids[:limit] if id_ in rows], now, context), rest


def namespaces(context: Context, prefix: str, limit: int) -> list[str]:
    """Return the names of the first namespaces that begin so, in order."""
    with transaction(context.database_url) as db:
        return tenants.beginning(db, prefix, limit)


def _shaped(rows: list[dict[str, Any]], now: datetime, context: Context) -> list[dict[str, Any]]:
    return list(shaped(rows, now, context)) if rows else []
