"""Forgotten: the tombstones of a namespace, newest first, each with its run and until when it can be restored."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from workers.context import Context
from workers.storage import namespaces, tombstones
from workers.storage.connection import reading
from workers.storage.tombstones import Behind, Selection, Tombstone


@dataclass(frozen=True, slots=True)
class Page:
    """Some tombstones, until when each can be restored, and where the listing continues, if it does."""

    tombstones: list[Tombstone] = field(default_factory=list)
    restorable_until: list[datetime] = field(default_factory=list)
    rest: Behind | None = None


def forgotten(context: Context, namespace: str, selection: Selection, limit: int, behind: Behind | None = None) -> Page:
    """Return the next of the selected tombstones; what was purged has none."""
    with reading(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        found = [] if tenant is None else tombstones.found(db, tenant.id, selection, limit + 1, behind)
    shown = found[:limit]
    rest = Behind(shown[-1].forgotten_at, shown[-1].id) if len(found) > limit else None
    return Page(shown, [_restorable_until(context, one) for one in shown], rest)


def _restorable_until(context: Context, one: Tombstone) -> datetime:
    """Return when a purge may erase a fact: its retention begins with the later of its two dates."""
    begins = max(one.forgotten_at, one.tombstone_at or one.forgotten_at)
    return begins + min(timedelta(days=context.settings.retention_days), datetime.max.replace(tzinfo=UTC) - begins)
