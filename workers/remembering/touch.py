"""Touch and reinforce: what is used is kept. Only what is newer than the stored counts, so repeats change nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import lifetime, tiers
from workers.core.arrays import Bools, Floats
from workers.core.confidence import DAY
from workers.core.fading import Anchors, sustained, written
from workers.core.fidelity import FULL, PENDING
from workers.forgetting.terms import rules_for
from workers.storage import activity, facts, namespaces
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction

QUERY_BOOST = 0.5
"""What a recall adds to the strength of what it returned (O41)."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What a touch found: whom it changed, and who, changed or not, has less than the full vector."""

    changed: list[UUID]
    faded: list[UUID]


@dataclass(frozen=True, slots=True)
class Reinforced:
    """The salience of a fact that was strengthened, and whether it has less than its full vector."""

    salience: float
    faded: bool


def touch(context: Context, namespace: str, ids: Sequence[UUID], at: datetime) -> Touched:
    """Note that a recall returned these facts at `at`: counters, expiry, strength and last seen.

    Whoever is not there any more, or was accessed later already, stays as it is.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return Touched([], []) if tenant is None else touch_within(context, db, tenant.id, ids, at)


def reinforce(context: Context, namespace: str, id_: UUID, boost: float, at: datetime) -> Reinforced | None:
    """Strengthen one fact by `boost` and confirm it; return how it is then, or nothing if it is not there.

    A repeat of the same call, or an older one, changes nothing.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None or not (rows := _locked(db, tenant.id, [id_])):
            return None
        newer = rows.only(rows.anchors.last_seen_at < at.timestamp())
        anchors = confirmed(strengthened(newer.anchors, at, boost, coactivations=0), newer, at, always=True)
        _write(context, db, newer, anchors, at, recalls=0)
        activity.confirm(db, tenant.id, newer.ids, [1] * len(newer))
        anchors = activity.lock(db, tenant.id, [id_]).anchors
        return Reinforced(float(salience(anchors, at)[0]), bool(_faded(anchors)[0]))


def touch_within(context: Context, db: Connection, tenant: int, ids: Sequence[UUID], at: datetime) -> Touched:
    """Do what `touch` does, in a transaction that is open already."""
    there = _locked(db, tenant, ids)
    rows = there.only(there.last_accessed_at < at.timestamp())
    anchors = rows.anchors
    if context.settings.decay_reinforce_on_query:
        anchors = strengthened(anchors, at, QUERY_BOOST, coactivations=1)
    _write(context, db, rows, confirmed(anchors, rows, at, always=False), at, recalls=1)
    return Touched(rows.ids, there.only(_faded(there.anchors)).ids)


def _faded(anchors: Anchors) -> Bools:
    less: Bools = (anchors.fidelity != FULL) & (anchors.fidelity != PENDING)
    return less


def _locked(db: Connection, tenant: int, ids: Sequence[UUID]) -> Activity:
    """Return the activity of those facts that are live, locked."""
    rows = activity.lock(db, tenant, ids)
    live = {known.id for known in facts.known_by_id(db, tenant, rows.ids).values() if known.live}
    return rows.only(np.array([id_ in live for id_ in rows.ids], dtype=np.bool_))


def salience(anchors: Anchors, at: datetime) -> Floats:
    """Return how well facts are remembered at an instant."""
    strength = tiers.strength(anchors.base, anchors.coactivations)
    age_days = (at.timestamp() - sustained(anchors).last_seen_at) / DAY
    return strength * tiers.retention(tiers.curve(strength, anchors.coactivations), age_days)


def strengthened(anchors: Anchors, at: datetime, boost: float, coactivations: int) -> Anchors:
    """Return anchors whose strength is what is left plus `boost`, at most 1, forgetting anew from `at` (C-O6).

    The base is chosen so that the strength comes out as just that: the source's 0.35 becomes 0.85, however often
    the fact was recalled before.
    """
    wanted = np.minimum(salience(anchors, at) + boost, 1.0)
    times = anchors.coactivations + coactivations
    seen = np.maximum(anchors.last_seen_at, at.timestamp())
    return replace(anchors, base=tiers.base_for(wanted, times), coactivations=times, last_seen_at=seen)


def confirmed(anchors: Anchors, rows: Activity, at: datetime, *, always: bool) -> Anchors:
    """Return anchors that are confirmed at `at` where the decay class is refreshed by use, or `always` (D28, D29).

    The lifetime of a pinned fact begins when its pin ends. What soft decay had taken of their confidence comes back,
    for it follows from the confirmation (C-D15).
    """
    lives = [lifetime.lifetime(name or None) for name in rows.decay_classes]
    instant = at.timestamp()
    refreshed = np.array([life.refreshed_by_use for life in lives], dtype=np.bool_) & (anchors.confirmed_at < instant)
    renewed = refreshed | (always & (anchors.confirmed_at < instant))
    begins = np.maximum(anchors.pinned_until, instant).tolist()
    expires = [lifetime.expiry(name or None, begin) for name, begin in zip(rows.decay_classes, begins, strict=True)]
    return replace(
        anchors,
        confirmed_at=np.where(renewed, instant, anchors.confirmed_at),
        halvings=np.where(renewed, 0, anchors.halvings),
        expires_at=np.where(refreshed, np.array(expires, dtype=np.float64), anchors.expires_at),
    )


def _write(context: Context, db: Connection, rows: Activity, anchors: Anchors, at: datetime, recalls: int) -> None:
    if rows.ids:
        instant = at.timestamp()
        anchors = replace(anchors, silent_since=np.maximum(anchors.silent_since, instant))
        faded = written(anchors, instant, rules_for(context, db, rows.namespaces))
        activity.write_used(db, rows, anchors, faded, np.full(len(rows), recalls, dtype=np.int64), at)
