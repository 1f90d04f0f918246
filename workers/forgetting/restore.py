"""Restore: what was forgotten is live again, as if it had just been recalled."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import lifetime
from workers.core.episodes import NOT_YET
from workers.core.fading import Anchors, FadingRules, ends, written
from workers.core.fidelity import FINGERPRINT
from workers.errors import InvalidInputError, NotFoundError
from workers.forgetting.forget import Fate, came_later, forget_ended, forget_over
from workers.forgetting.terms import rules_for
from workers.remembering.touch import QUERY_BOOST, strengthened
from workers.storage import (
    activity,
    contradictions,
    facts,
    forgotten_hashes,
    likenesses,
    namespaces,
    outrunning,
    signatures,
    tombstones,
)
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction
from workers.storage.namespaces import Namespace
from workers.storage.tombstones import Standing

VOUCHED_FOR = 1.0
"""The confidence of what its owner restores though nobody believed it any more, or else it would end at once."""

MERGED = "merged"
"""Whoever restores what was merged says that it is not the same, and consolidation is not to do it again."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of each fact that somebody wished back, and which of them have less than the full vector."""

    fates: list[Fate | InvalidInputError]
    faded: list[UUID] = field(default_factory=list)


def restore(context: Context, namespace: str, ids: Sequence[UUID], now: datetime) -> Restored:
    """Bring forgotten facts back; return what became of each, in order. Repeating it changes nothing.

    A fact is as after a recall: seen and confirmed now, stronger, with its whole lifetime before it; of its vector
    the signature is there, until it is regenerated. Refused are ids that the namespace does not have, what a live
    fact says as well, and what was forgotten after `now`.

    Raises:
        UnavailableError: somebody stores the same at this very moment; nothing was changed.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return Restored([_not_there(id_, namespace) for id_ in ids])
        return _restore(context, db, tenant, ids, now)


def _restore(context: Context, db: Connection, tenant: Namespace, ids: Sequence[UUID], now: datetime) -> Restored:
    rows = _swept(context, db, tenant.id, ids, now)
    there = tombstones.standings(db, tenant.id, ids)
    buried = [there[id_] for id_ in dict.fromkeys(ids) if id_ in there and there[id_].forgotten_at is not None]
    forget_ended(context, db, tenant.id, [one.hash for one in buried], now)
    refused = _refused(db, tenant.id, buried, now)
    back = [one for one in buried if one.id not in refused]
    faded = _revive(context, db, tenant.id, rows, back, now)
    fates: dict[UUID, Fate | InvalidInputError] = {id_: _not_there(id_, tenant.name) for id_ in ids if id_ not in there}
    fates |= {id_: Fate(id_, "unchanged") for id_ in there} | {one.id: Fate(one.id, "restored") for one in back}
    fates |= refused
    return Restored([fates[id_] for id_ in ids], faded)


def _swept(context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime) -> Activity:
    """Return the activity of facts, locked; those that are over have become tombstones, as a pass would have it."""
    rows = activity.lock(db, tenant, ids)
    live = {one.id for one in tombstones.standings(db, tenant, rows.ids).values() if one.live}
    forget_over(context, db, rows.among(live), now)
    return activity.lock(db, tenant, ids)


def _refused(
    db: Connection, tenant: int, buried: Sequence[Standing], now: datetime
) -> dict[UUID, Fate | InvalidInputError]:
    """Return why some tombstones stay; of two that say the same only the first comes back."""
    said = facts.known_by_hash(db, tenant, [one.hash for one in buried])
    refused: dict[UUID, Fate | InvalidInputError] = {}
    for one in buried:
        if one.forgotten_at is not None and one.forgotten_at > now:
            refused[one.id] = came_later(one.id, "forgotten", one.forgotten_at, now)
        elif not one.superseded and one.hash in said:
            refused[one.id] = InvalidInputError(
                f"id: {one.id} cannot be restored, for fact {said[one.hash]} says the same; forget that one first."
            )
        elif not one.superseded:
            said[one.hash] = one.id
    return refused


def _revive(
    context: Context, db: Connection, tenant: int, rows: Activity, back: Sequence[Standing], now: datetime
) -> list[UUID]:
    """Take off the tombstones; return those facts that have less than the full vector."""
    if not back:
        return []
    tombstones.revive(db, tenant, [one.id for one in back], now)
    forgotten_hashes.lift(db, tenant, [one.hash for one in back])
    likenesses.set_apart(db, tenant, [one.id for one in back if one.reason == MERGED], now)
    live = rows.among({one.id for one in back if not one.superseded})
    signatures.revive(db, tenant, live.ids)
    likenesses.compare_again(db, tenant, live.ids)
    rules = rules_for(context, db, live.namespaces)
    anchors = _as_recalled(live, now, rules)
    faded = written(anchors, now.timestamp(), rules)
    outrunning.encode_anew(db, tenant, live.ids, now)
    activity.write_used(db, live, anchors, faded, np.zeros(len(live), dtype=np.int64), now)
    if live.ids:
        contradictions.find(db, tenant, live.ids, now)
    return live.only(live.anchors.fidelity == FINGERPRINT).ids


def _as_recalled(rows: Activity, now: datetime, rules: FadingRules) -> Anchors:
    """Return anchors seen and confirmed now, whose lifetimes begin now or when their pins end, of every class.

    Episodes are as if they had been told now.
    """
    instant = now.timestamp()
    anchors = strengthened(rows.anchors, now, QUERY_BOOST, coactivations=0)
    begins = np.maximum(anchors.pinned_until, instant).tolist()
    expires = [lifetime.expiry(name or None, begin) for name, begin in zip(rows.decay_classes, begins, strict=True)]
    anchors = replace(
        anchors,
        confirmed_at=np.maximum(anchors.confirmed_at, instant),
        halvings=np.zeros_like(anchors.halvings),
        expires_at=np.array(expires, dtype=np.float64),
        encoded_at=np.full_like(anchors.encoded_at, instant),
        outrun_at=np.full_like(anchors.outrun_at, NOT_YET),
        silent_since=np.full_like(anchors.silent_since, instant),
    )
    over = ends(anchors, rules)[0] <= instant
    return replace(anchors, confidence=np.where(over, VOUCHED_FOR, anchors.confidence))


def _not_there(id_: UUID, namespace: str) -> InvalidInputError:
    return NotFoundError(f"id: no fact {id_} is in namespace {namespace!r}: it never was, or it was purged.")
