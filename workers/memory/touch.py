"""Touch and reinforce: each use of a fact counts once, in any order, and revives it if a pass forgot it meanwhile."""

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
from workers.core.fading import Anchors, chosen, sustained, written
from workers.core.fidelity import FULL, PENDING
from workers.core.repeats import is_repeat, with_question
from workers.memory.namespace_settings import rules_for
from workers.storage import activity, duplicate_pairs, events, namespaces, signatures, supersession, tombstones, visible
from workers.storage.activity import Activity
from workers.storage.connection import Connection, keep_plans, transaction


@dataclass(frozen=True, slots=True)
class Reached:
    """The locked facts that a use reaches, and when a pass has forgotten each since (epoch seconds; never: -inf).

    `asked` says by which questions each was strengthened lately, packed by `core.repeats`.
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
        """Return which facts are live, or end by the new `ends_at` later than the pass that forgot them came."""
        return ends_at > self.forgotten_at

    def revive(self, db: Connection, tenant: int, kept: Collection[UUID], at: datetime) -> None:
        """Take off the tombstones of those of the `kept` facts that have one; their activity is for the caller."""
        back = [id_ for id_ in self.rows.only(~np.isneginf(self.forgotten_at)).ids if id_ in kept]
        if back:
            tombstones.revive(db, tenant, back, at, what="revived")
            signatures.revive(db, tenant, back)
            duplicate_pairs.compare_again(db, tenant, back)
            supersession.find_contradictions(db, tenant, back, at)


def reach(db: Connection, tenant: int, ids: Sequence[UUID], at: datetime) -> Reached:
    """Return which of these facts a use at `at` reaches, locked until the commit.

    Those are the facts that were remembered at `at`: neither forgotten nor superseded, and not over. A message may be
    late: a fact that has ended since is reached all the same, and so is one that a pass has forgotten since because it
    had ended by itself, if the pass came within ten minutes of `at` and no other fact says the same by now. A fact
    that was forgotten on request is never reached.
    """
    rows = activity.lock(db, tenant, ids)
    found = visible.reached(db, tenant, rows.ids, at) if rows.ids else {}
    rows = rows.among(found)
    instants = (found[id_][0] for id_ in rows.ids)
    forgotten = [-np.inf if instant is None else instant.timestamp() for instant in instants]
    return Reached(rows, np.array(forgotten, dtype=np.float64), [found[id_][1] for id_ in rows.ids])


log = logging.getLogger(__name__)

QUERY_BOOST = 0.5
"""What a recall adds to the strength of what it returned, and an agent's use to that of what it used."""

MOST_COUNTED = 2**31 - 1
"""Where counters stop: the largest number that their columns hold."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The facts that a touch changed, and those, changed or not, that have less than the full vector."""

    changed: list[UUID]
    faded: list[UUID]


@dataclass(frozen=True, slots=True)
class Reinforced:
    """The salience of a fact that was strengthened, and whether it has less than its full vector."""

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
    """Count that a recall returned these facts at `at`: counters, expiry, strength and last seen.

    Touches commute as far as that is defined, so it makes no difference in which order they arrive: each counts once,
    by its id `use` (a second delivery within a day changes nothing; without one the call is a use of its own); what
    grows by time (last seen, last accessed, confirmed, expiry) is the latest of all; the strength grows by
    `QUERY_BOOST` at `at`, or at the last use if that was later. No touch lowers anything. `reach` says which facts it
    counts for. A fact that the same `question`, a key of `core.repeats`, touched within the cool-down stays as it is.
    """
    with transaction(context.database_url) as db:
        keep_plans(db)
        tenant = namespaces.find(db, namespace)
        return Touched([], []) if tenant is None else touch_within(context, db, tenant.id, ids, at, use, question)


def reinforce(
    context: Context, namespace: str, id_: UUID, boost: float, at: datetime, use: UUID | None = None
) -> Reinforced | None:
    """Strengthen one fact by `boost` and confirm it; return how it is then, or nothing if it is not there.

    Each reinforcement counts once by its id `use`, in any order, under the same rules as a touch, and is one more
    confirmation. A second delivery only answers.
    """
    with transaction(context.database_url) as db:
        keep_plans(db)
        tenant = namespaces.find(db, namespace)
        found = None if tenant is None else reach(db, tenant.id, [id_], at)
        if tenant is None or found is None or not found.rows.ids:
            return None
        rows = found.live
        if activity.claim_use(db, tenant.id, use or uuid4()):
            anchors = strengthened(found.rows.anchors, at, boost, coactivations=0)
            anchors = confirmed(anchors, found.rows, at, always=True)
            rows = _write(context, db, tenant.id, found, anchors, at, recalls=0)
            activity.confirm(db, tenant.id, rows.ids, [1] * len(rows))
            log.info("[decay-2.0] regenerated/reinforced memory mem_%s", id_.hex)
        anchors = activity.read(db, tenant.id, rows.ids).anchors
        return Reinforced(float(salience(anchors, at)[0]), bool(_faded(anchors)[0])) if rows.ids else None


def used(context: Context, asked: Use, at: datetime, use: UUID | None = None) -> tuple[Used, list[UUID]]:
    """Count that an agent used these facts, which strengthens as a touch, confirms, and stands in their history.

    Returns which of them `reach` finds, and those that have less than the full vector. A second delivery by the same
    id `use` only answers.
    """
    with transaction(context.database_url) as db:
        keep_plans(db)
        tenant = namespaces.find(db, asked.namespace)
        found = None if tenant is None else reach(db, tenant.id, asked.ids, at)
        if tenant is None or found is None or not found.rows.ids:
            return Used(used=[], unknown=asked.ids), []
        rows = found.live
        if activity.claim_use(db, tenant.id, use or uuid4()):
            anchors = strengthened(found.rows.anchors, at, QUERY_BOOST, coactivations=1)
            anchors = confirmed(anchors, found.rows, at, always=True)
            rows = _write(context, db, tenant.id, found, anchors, at, recalls=0)
            activity.confirm(db, tenant.id, rows.ids, [1] * len(rows))
            events.add_all(db, rows.namespaces.tolist(), rows.ids, at, "used")
    there, ids = set(rows.ids), dict.fromkeys(asked.ids)
    answer = Used(used=[id_ for id_ in ids if id_ in there], unknown=[id_ for id_ in ids if id_ not in there])
    return answer, rows.only(_faded(rows.anchors)).ids


def touch_within(
    context: Context,
    db: Connection,
    tenant: int,
    ids: Sequence[UUID],
    at: datetime,
    use: UUID | None = None,
    question: int | None = None,
) -> Touched:
    """Do what `touch` does, in a transaction that is open already."""
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
    """Return the facts that a question did not touch within the cool-down, with the question noted."""
    seconds, instant = context.settings.touch_cooldown, at.timestamp()
    found = found.only(
        np.array([not is_repeat(one, question, instant, seconds) for one in found.asked], dtype=np.bool_)
    )
    return replace(found, asked=[with_question(one, question, instant, seconds) for one in found.asked])


def drop_old_uses(context: Context) -> int:
    """Delete the notes of which uses were counted, as far as no second delivery can come any more; return how many."""
    with transaction(context.database_url) as db:
        return activity.drop_old_uses(db)


def _faded(anchors: Anchors) -> Bools:
    less: Bools = (anchors.fidelity != FULL) & (anchors.fidelity != PENDING)
    return less


def _seen_again(anchors: Anchors, at: datetime) -> Anchors:
    """Return anchors where what had faded begins to fade from now on, no stronger than it is.

    Its vector is about to be made again, which the next pass would take back at once.
    """
    renewed, faded = strengthened(anchors, at, 0.0, coactivations=0), _faded(anchors)
    base = np.where(faded, renewed.base, anchors.base)
    return replace(anchors, base=base, last_seen_at=np.where(faded, renewed.last_seen_at, anchors.last_seen_at))


def salience(anchors: Anchors, at: datetime) -> Floats:
    """Return how well facts are remembered at an instant."""
    strength = tiers.strength(anchors.base, anchors.coactivations)
    age_days = (at.timestamp() - sustained(anchors).last_seen_at) / DAY
    return strength * tiers.retention(tiers.curve(strength, anchors.coactivations), age_days)


def strengthened(anchors: Anchors, at: datetime, boost: float, coactivations: int) -> Anchors:
    """Return anchors whose strength is what is left plus `boost`, at most 1, fading again from the last use.

    That is `at`, or a use that was later: then nothing of the boost has faded.

    The base is chosen so that the strength comes out as just that: the source's 0.35 becomes 0.85, however often
    the fact was recalled before.
    """
    wanted = np.minimum(salience(anchors, at) + boost, 1.0)
    times = np.minimum(anchors.coactivations + coactivations, MOST_COUNTED)
    seen = np.maximum(anchors.last_seen_at, at.timestamp())
    return replace(anchors, base=tiers.base_for(wanted, times), coactivations=times, last_seen_at=seen)


def confirmed(anchors: Anchors, rows: Activity, at: datetime, *, always: bool) -> Anchors:
    """Return anchors that are confirmed at `at` where the decay class is refreshed by use, or `always`.

    The lifetime of a pinned fact begins when its pin ends. What soft decay had taken of their confidence comes back,
    for it follows from the confirmation.
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
    """Write the new anchors of the facts that are live, or live again by them; return those facts as they were."""
    instant = at.timestamp()
    anchors = replace(anchors, silent_since=np.maximum(anchors.silent_since, instant))
    faded = written(anchors, instant, rules_for(context, db, found.rows.namespaces))
    keep = found.prolonged(faded.ends_at)
    rows = found.rows.only(keep)
    if rows.ids:
        found.revive(db, tenant, set(rows.ids), at)
        counts = np.full(len(rows), recalls, dtype=np.int64)
        activity.write_used(db, rows, chosen(anchors, keep), faded.only(keep), counts, at, found.only(keep).asked)
    return rows
