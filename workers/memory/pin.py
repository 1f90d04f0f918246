"""Pin: exempt a fact from decay, without end or until an instant."""

import math
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import numpy as np
from ebb.contract.retention import Pinned

from workers.context import Context
from workers.core import episodes, fading, lifetime
from workers.errors import InvalidInputError, NotFoundError
from workers.memory.forget import overtaken_error
from workers.memory.namespace_settings import rules_for
from workers.memory.touch import Reached, reach
from workers.storage import activity, events, turns
from workers.storage.activity import Activity
from workers.storage.connection import Connection


def pin(context: Context, namespace: str, id_: UUID, until: datetime | None, now: datetime) -> tuple[Pinned, bool]:
    """Pin a fact until an instant or without end; return also whether it has less than its full vector. Idempotent.

    When the pin ends, decay continues as if the fact had been used and confirmed at that instant.

    Raises:
        InvalidInputError: there is no such live fact, the instant is past, or another pin came after `now`.
    """
    if until is not None and until <= now:
        raise InvalidInputError(f"until: {until} is past at {now}; give an instant to come, or `off` to end the pin.")
    changed, faded = _set(context, namespace, id_, math.inf if until is None else until.timestamp(), now)
    return Pinned(id=id_, action="pinned" if changed else "unchanged", pinned=True, until=until), faded


def unpin(context: Context, namespace: str, id_: UUID, now: datetime) -> Pinned:
    """End a fact's pin; decay continues as if it had been used and confirmed now. Idempotent.

    Raises:
        InvalidInputError: there is no such live fact, or another pin came after `now`.
    """
    changed, _ = _set(context, namespace, id_, now.timestamp(), now)
    return Pinned(id=id_, action="unpinned" if changed else "unchanged", pinned=False, until=None)


def _set(context: Context, namespace: str, id_: UUID, until: float, now: datetime) -> tuple[bool, bool]:
    """Pin a fact until an instant (epoch seconds); return whether it changed, and whether its vector is reduced."""
    with context.namespace(namespace) as (db, tenant):
        found = _reached(context, db, tenant, id_, now)
        changed = found is not None and until != max(float(found.rows.anchors.pinned_until[0]), now.timestamp())
        if found is None or not (changed or found.live.ids):
            raise NotFoundError(
                f"id: no live fact {id_} is in namespace {namespace!r}; `ebb history` says what became of it."
            )
        if changed:
            _write(context, db, found, until, now)
    return changed, bool(found.rows.anchors.reduced[0])


def _reached(context: Context, db: Connection, tenant: int, id_: UUID, now: datetime) -> Reached | None:
    """Return a fact, locked, if it was visible at `now`."""
    found = reach(db, tenant, {id_: now})
    for at in events.later(db, tenant, [id_], ["pinned", "unpinned"], now).values():
        if context.may_be_later(db, at):
            raise overtaken_error(id_, "pinned or unpinned", at, now)
    return found if found.rows.ids else None


def _write(context: Context, db: Connection, found: Reached, until: float, now: datetime) -> None:
    rows = found.rows
    (tenant,), (id_,) = rows.namespaces.tolist(), rows.ids
    seconds = _lifetime(db, tenant, rows)
    anchors = fading.pin(rows.anchors, np.array([seconds]), until)
    anchors = replace(anchors, outrun_at=np.full(1, episodes.NOT_YET))
    faded = fading.as_written(anchors, now.timestamp(), rules_for(context, db, rows.namespaces))
    found.revive(db, tenant, rows.ids)
    activity.write_used(db, rows, anchors, faded, now)
    activity.pin_until(db, tenant, id_, until, seconds)
    turns.restart_count(db, rows.namespaces.tolist(), rows.ids)
    if until == now.timestamp():
        events.add_many(db, tenant, now, [(id_, "unpinned", {})])
    else:
        shown = None if math.isinf(until) else datetime.fromtimestamp(until, now.tzinfo).isoformat()
        events.add_many(db, tenant, now, [(id_, "pinned", {"until": shown})])


def _lifetime(db: Connection, tenant: int, rows: Activity) -> float:
    """Return how many seconds a fact lives when its pin ends: what it had left, or all if it is held past its end."""
    endless = np.isposinf(rows.anchors.pinned_until[0])
    left = activity.kept_lifetime(db, tenant, rows.ids[0]) if endless else float(fading.lifetimes(rows.anchors)[0])
    return left if left > 0 else lifetime.expiry(rows.decay_classes[0] or None, 0.0)
