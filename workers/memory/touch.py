"""Touch and reinforce: each use of a fact counts once, in any order, and revives a fact that a pass has forgotten."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

import numpy as np
from ebb.contract.retention import Use, Used

from workers.context import Context
from workers.core import lifetime, tiers
from workers.core.arrays import Bools, Floats
from workers.core.confidence import DAY
from workers.core.fading import Anchors, as_written, select, with_pins
from workers.core.fidelity import FULL, PENDING
from workers.core.repeats import is_repeat, with_question
from workers.memory.namespace_settings import rules_for
from workers.storage import activity, duplicate_pairs, events, namespaces, signatures, supersession, tombstones, visible
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction, writing


@dataclass(frozen=True, slots=True)
class Reached:
    """The locked facts for which a use counts, and when a pass forgot each since (epoch seconds, -inf if none did).

    `asked` has the recent questions of each, packed by `core.repeats`.
    """

    rows: Activity
    forgotten_at: Floats
    asked: list[bytes]

    def only(self, keep: Bools) -> "Reached":
        """Return the facts where `keep` is true."""
        asked = [one for one, kept in zip(self.asked, keep, strict=True) if kept]
        return Reached(self.rows.only(keep), self.forgotten_at[keep], asked)

    @property
    def live(self) -> Activity:
        """Return the facts that no pass has forgotten."""
        return self.rows.only(np.isneginf(self.forgotten_at))

    def prolonged(self, ends_at: Floats) -> Bools:
        """Return which facts are live, or with the new `ends_at` would have outlived the pass that forgot them."""
        return ends_at > self.forgotten_at

    def revive(self, db: Connection, tenant: int, kept: Collection[UUID], at: datetime) -> None:
        """Restore the `kept` facts that are tombstones; the caller writes their activity."""
        back = [id_ for id_ in self.rows.only(~np.isneginf(self.forgotten_at)).ids if id_ in kept]
        if back:
            tombstones.revive(db, tenant, back, at, what="revived")
            signatures.revive(db, tenant, back)
            duplicate_pairs.compare_again(db, tenant, back)
            supersession.find_contradictions(db, tenant, back, at)


def reach(db: Connection, tenant: int, ids: Sequence[UUID], at: datetime) -> Reached:
    """Return the facts for which a use at `at` counts, locked until the commit.

    These are the facts that were visible at `at`. As a message may be late, they include facts that have ended since,
    and those that a pass forgot because they had ended, within ten minutes of `at` and if no equal fact is live. Facts
    forgotten on request are excluded.
    """
    locked, visible_then = activity.ask_lock(db, tenant, ids), visible.ask_reached(db, tenant, ids, at)
    rows, found = locked(), visible_then()
    rows = rows.among(found)
    instants = (found[id_][0] for id_ in rows.ids)
    forgotten = [-np.inf if instant is None else instant.timestamp() for instant in instants]
    return Reached(rows, np.array(forgotten, dtype=np.float64), [found[id_][1] for id_ in rows.ids])


log = logging.getLogger(__name__)

QUERY_BOOST = 0.5
"""Increase of strength by a recall or a reported use."""

MOST_COUNTED = 2**31 - 1
"""Maximum of the counters' columns."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The facts that a touch changed, and all that have less than the full vector."""

    changed: list[UUID]
    faded: list[UUID]


@dataclass(frozen=True, slots=True)
class Reinforced:
    """The salience of a reinforced fact, and whether it has less than its full vector."""

    salience: float
    faded: bool


def touch(
    context: Context,
    namespace: str,
    ids: Sequence[UUID],
    at: datetime,
    use: UUID | None = None,
    question: int | None = None,
) -> Touched:
    """Record that a recall returned these facts at `at`: counters, expiry, strength and last use.

    Touches may arrive in any order. Each counts once by its id `use` (deduplicated for a day; without an id each call
    counts). Timestamps become the latest of all; the strength grows by `QUERY_BOOST` at `at`, or at the last use if it
    was later. A fact that the same `question`, a key of `core.repeats`, touched within the cool-down is unchanged.
    """
    with writing(context.database_url) as db:
        return touch_within(context, db, namespaces.id_of(db, namespace), ids, at, use, question)


def reinforce(
    context: Context, namespace: str, id_: UUID, boost: float, at: datetime, use: UUID | None = None
) -> Reinforced | None:
    """Strengthen one fact by `boost`, confirm it and note that in its history; return None if there is no such fact.

    Reinforcements are deduplicated by `use` and may arrive in any order, like touches; a redelivery only answers.
    """
    with writing(context.database_url) as db:
        tenant = namespaces.id_of(db, namespace)
        found = reach(db, tenant, [id_], at)
        if not found.rows.ids:
            return None
        rows = found.live
        if activity.claim_use(db, tenant, use or uuid4()):
            anchors = strengthened(found.rows.anchors, at, boost, coactivations=0)
            rows = _confirm(context, db, tenant, found, anchors, at)
            events.add_use(db, tenant, rows.ids, at, "reinforced", {"boost": boost})
            log.info("[decay-2.0] regenerated/reinforced memory mem_%s", id_.hex)
        anchors = activity.read(db, tenant, rows.ids).anchors
        return Reinforced(float(salience(anchors, at)[0]), bool(_faded(anchors)[0])) if rows.ids else None


def used(context: Context, asked: Use, at: datetime, use: UUID | None = None) -> tuple[Used, list[UUID]]:
    """Record that an agent used these facts: strengthen and confirm them, and add an event to their history.

    Returns the answer, and the facts with less than the full vector. A redelivery with the same `use` only answers.
    """
    with writing(context.database_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        found = reach(db, tenant, asked.ids, at)
        if not found.rows.ids:
            return Used(used=[], unknown=asked.ids), []
        rows = found.live
        if activity.claim_use(db, tenant, use or uuid4()):
            anchors = strengthened(found.rows.anchors, at, QUERY_BOOST, coactivations=1)
            rows = _confirm(context, db, tenant, found, anchors, at)
            events.add_use(db, tenant, rows.ids, at, "used", {})
    there, ids = set(rows.ids), dict.fromkeys(asked.ids)
    answer = Used(used=[id_ for id_ in ids if id_ in there], unknown=[id_ for id_ in ids if id_ not in there])
    return answer, rows.only(_faded(rows.anchors)).ids


def _confirm(context: Context, db: Connection, tenant: int, found: Reached, anchors: Anchors, at: datetime) -> Activity:
    """Write anchors as confirmed, and count that; return the facts that are live or revived by it."""
    rows = _write(context, db, tenant, found, confirmed(anchors, found.rows, at, always=True), at, recalls=0)
    activity.confirm(db, tenant, rows.ids, [1] * len(rows))
    return rows


def touch_within(
    context: Context,
    db: Connection,
    tenant: int,
    ids: Sequence[UUID],
    at: datetime,
    use: UUID | None = None,
    question: int | None = None,
) -> Touched:
    """Touch facts as `touch` does, in an open transaction."""
    every = reach(db, tenant, ids, at)
    found = every if question is None else _first(context, every, question, at)
    if not found.rows.ids or not activity.claim_use(db, tenant, use or uuid4()):
        return Touched([], every.live.only(_faded(every.live.anchors)).ids)
    anchors = found.rows.anchors
    if context.settings.decay_reinforce_on_query:
        anchors = strengthened(anchors, at, QUERY_BOOST, coactivations=1)
    elif context.settings.regeneration_enabled:
        anchors = _seen_again(anchors, at)
    anchors = confirmed(anchors, found.rows, at, always=False)
    touched = _write(context, db, tenant, found, anchors, at, recalls=1)
    return Touched(touched.ids, touched.only(_faded(touched.anchors)).ids)


def _first(context: Context, found: Reached, question: int, at: datetime) -> Reached:
    """Return the facts that a question did not touch within the cool-down, with the question added to `asked`."""
    seconds, instant = context.settings.touch_cooldown, at.timestamp()
    found = found.only(
        np.array([not is_repeat(one, question, instant, seconds) for one in found.asked], dtype=np.bool_)
    )
    return replace(found, asked=[with_question(one, question, instant, seconds) for one in found.asked])


def drop_old_uses(context: Context) -> int:
    """Delete ids of uses that cannot be redelivered any more; return how many."""
    with transaction(context.database_url) as db:
        return activity.drop_old_uses(db)


def _faded(anchors: Anchors) -> Bools:
    less: Bools = (anchors.fidelity != FULL) & (anchors.fidelity != PENDING)
    return less


def _seen_again(anchors: Anchors, at: datetime) -> Anchors:
    """Return anchors where the decay of faded facts restarts at `at`, without more strength.

    Else the next pass would reduce their regenerated vectors again.
    """
    renewed, faded = strengthened(anchors, at, 0.0, coactivations=0), _faded(anchors)
    base = np.where(faded, renewed.base, anchors.base)
    return replace(anchors, base=base, last_seen_at=np.where(faded, renewed.last_seen_at, anchors.last_seen_at))


def salience(anchors: Anchors, at: datetime) -> Floats:
    """Return the salience of facts at an instant."""
    strength = tiers.strength(anchors.base, anchors.coactivations)
    age_days = (at.timestamp() - with_pins(anchors).last_seen_at) / DAY
    return strength * tiers.retention(tiers.curve(strength, anchors.coactivations), age_days)


def strengthened(anchors: Anchors, at: datetime, boost: float, coactivations: int) -> Anchors:
    """Return anchors whose strength is the salience at `at` plus `boost`, at most 1, from the last use on.

    The last use is `at` or a later one. The base is set so that the strength is exact: the source's 0.35 becomes 0.85,
    however often the fact was recalled before.
    """
    wanted = np.minimum(salience(anchors, at) + boost, 1.0)
    times = np.minimum(anchors.coactivations + coactivations, MOST_COUNTED)
    seen = np.maximum(anchors.last_seen_at, at.timestamp())
    return replace(anchors, base=tiers.base_for(wanted, times), coactivations=times, last_seen_at=seen)


def confirmed(anchors: Anchors, rows: Activity, at: datetime, *, always: bool) -> Anchors:
    """Return anchors confirmed at `at` where the decay class is refreshed by use, or `always`.

    The lifetime of a pinned fact starts at the end of its pin. A confirmation undoes soft decay.
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


def _write(
    context: Context, db: Connection, tenant: int, found: Reached, anchors: Anchors, at: datetime, recalls: int
) -> Activity:
    """Write the new anchors of facts that are live or revived by them; return these facts with their old anchors."""
    instant = at.timestamp()
    anchors = replace(anchors, silent_since=np.maximum(anchors.silent_since, instant))
    faded = as_written(anchors, instant, rules_for(context, db, found.rows.namespaces))
    keep = found.prolonged(faded.ends_at)
    rows = found.rows.only(keep)
    if rows.ids:
        found.revive(db, tenant, set(rows.ids), at)
        counts = np.full(len(rows), recalls, dtype=np.int64)
        activity.write_used(db, rows, select(anchors, keep), faded.only(keep), counts, at, found.only(keep).asked)
    return rows
