"""Touch and reinforce: each use of a fact counts once, in any order, and revives a fact that a pass has forgotten."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from uuid import UUID, uuid4

import numpy as np
from ebb.contract.retention import Use, Used

from workers.context import Context
from workers.core import lifetime, tiers
from workers.core.arrays import Bools, Each, Floats
from workers.core.confidence import DAY
from workers.core.fading import Anchors, as_written, renewed, select, with_pins
from workers.core.repeats import is_repeat, with_question
from workers.memory.namespace_settings import rules_for
from workers.storage import activity, duplicate_pairs, events, namespaces, signatures, supersession, tombstones, visible
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction, writing


@dataclass(frozen=True, slots=True)
class Reached:
    """The locked facts for which a use counts, when each was used, and when a pass forgot each since.

    The latter is in epoch seconds, -inf if none did. `asked` has each one's recent questions, packed by `core.repeats`.
    """

    rows: Activity
    at: list[datetime]
    forgotten_at: Floats
    asked: list[bytes]

    def only(self, keep: Bools) -> "Reached":
        """Return the facts where `keep` is true."""
        kept = np.flatnonzero(keep).tolist()
        at, asked = [self.at[place] for place in kept], [self.asked[place] for place in kept]
        return Reached(self.rows.only(keep), at, self.forgotten_at[keep], asked)

    @property
    def instants(self) -> Floats:
        """Return when each was used (epoch seconds)."""
        return np.array([at.timestamp() for at in self.at], dtype=np.float64)

    @property
    def live(self) -> Activity:
        """Return the facts that no pass has forgotten."""
        return self.rows.only(np.isneginf(self.forgotten_at))

    def prolonged(self, ends_at: Floats) -> Bools:
        """Return which facts are live, or with the new `ends_at` would have outlived the pass that forgot them."""
        return ends_at > self.forgotten_at

    def revive(self, db: Connection, tenant: int, kept: Collection[UUID]) -> None:
        """Restore the `kept` facts that are tombstones; the caller writes their activity.

        They were used before a pass forgot them, but only live again since then.
        """
        back: dict[datetime, list[UUID]] = {}
        for id_, at, forgotten_at in zip(self.rows.ids, self.at, self.forgotten_at.tolist(), strict=True):
            if forgotten_at > -np.inf and id_ in kept:
                back.setdefault(max(at, datetime.fromtimestamp(forgotten_at, UTC)), []).append(id_)
        for at, ids in back.items():
            tombstones.revive(db, tenant, ids, at, what="revived")
            signatures.revive(db, tenant, ids)
            duplicate_pairs.compare_again(db, tenant, ids)
        if back:
            supersession.find_contradictions(db, tenant, [id_ for ids in back.values() for id_ in ids], max(back))


def reach(db: Connection, tenant: int, uses: Mapping[UUID, datetime]) -> Reached:
    """Return the facts for which a use counts, locked until the commit; `uses` has the instant of each fact's use.

    These are the facts that were visible then. As a message may be late, they include facts that have ended since, and
    those that a pass forgot because they had ended, within ten minutes of the use and if no equal fact is live. Facts
    forgotten on request are excluded.
    """
    locked, visible_then = activity.ask_lock(db, tenant, list(uses)), visible.ask_reached(db, tenant, uses)
    rows, found = locked(), visible_then()
    rows = rows.among(found)
    instants = (found[id_][0] for id_ in rows.ids)
    forgotten = [-np.inf if instant is None else instant.timestamp() for instant in instants]
    return Reached(
        rows,
        [uses[id_] for id_ in rows.ids],
        np.array(forgotten, dtype=np.float64),
        [found[id_][1] for id_ in rows.ids],
    )


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


@dataclass(frozen=True, slots=True)
class Shown:
    """Facts that a recall returned at `at`; `use` is the id of their touch, `question` a key of `core.repeats`."""

    ids: Sequence[UUID]
    at: datetime
    use: UUID = field(default_factory=uuid4)
    question: int | None = None


def touch(context: Context, namespace: str, shown: Sequence[Shown]) -> Touched:
    """Record that recalls returned these facts: counters, expiry, strength and last use.

    Touches may arrive in any order. Each counts once by its id (deduplicated for a day). Timestamps become the latest
    of all; the strength grows by `QUERY_BOOST` at the recall, or at the last use if it was later. A fact that the same
    question touched within the cool-down is unchanged.
    """
    with writing(context.database_url) as db:
        return touch_within(context, db, namespaces.id_of(db, namespace), shown)


def reinforce(
    context: Context, namespace: str, id_: UUID, boost: float, at: datetime, use: UUID | None = None
) -> Reinforced | None:
    """Strengthen one fact by `boost`, confirm it and note that in its history; return None if there is no such fact.

    Reinforcements are deduplicated by `use` and may arrive in any order, like touches; a redelivery only answers.
    """
    with writing(context.database_url) as db:
        tenant = namespaces.id_of(db, namespace)
        found = reach(db, tenant, {id_: at})
        if not found.rows.ids:
            return None
        rows = found.live
        if activity.claim_uses(db, tenant, [use or uuid4()]):
            anchors = strengthened(found.rows.anchors, found.instants, boost, coactivations=0)
            rows = _confirm(context, db, tenant, found, anchors)
            events.add_use(db, tenant, rows.ids, at, "reinforced", {"boost": boost})
            log.info("[decay-2.0] regenerated/reinforced memory mem_%s", id_.hex)
        anchors = activity.read(db, tenant, rows.ids).anchors
        return Reinforced(float(salience(anchors, at.timestamp())[0]), bool(anchors.reduced[0])) if rows.ids else None


def used(context: Context, asked: Use, at: datetime, use: UUID | None = None) -> tuple[Used, list[UUID]]:
    """Record that an agent used these facts: strengthen and confirm them, and add an event to their history.

    Returns the answer, and the facts with less than the full vector. A redelivery with the same `use` only answers.
    """
    with writing(context.database_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        found = reach(db, tenant, dict.fromkeys(asked.ids, at))
        if not found.rows.ids:
            return Used(used=[], unknown=asked.ids), []
        rows = found.live
        if activity.claim_uses(db, tenant, [use or uuid4()]):
            anchors = strengthened(found.rows.anchors, found.instants, QUERY_BOOST, coactivations=1)
            rows = _confirm(context, db, tenant, found, anchors)
            events.add_use(db, tenant, rows.ids, at, "used", {})
    there, ids = set(rows.ids), dict.fromkeys(asked.ids)
    answer = Used(used=[id_ for id_ in ids if id_ in there], unknown=[id_ for id_ in ids if id_ not in there])
    return answer, rows.only(rows.anchors.reduced).ids


def _confirm(context: Context, db: Connection, tenant: int, found: Reached, anchors: Anchors) -> Activity:
    """Write anchors as confirmed, and count that; return the facts that are live or revived by it."""
    anchors = confirmed(anchors, found.rows, found.instants, always=True)
    rows = _write(context, db, tenant, found, anchors, recalls=0)
    activity.confirm(db, tenant, rows.ids, [1] * len(rows))
    return rows


def touch_within(context: Context, db: Connection, tenant: int, shown: Sequence[Shown]) -> Touched:
    """Touch facts as `touch` does, in an open transaction."""
    groups = list(_without_common_facts(shown))
    if len(groups) > 1:  # in one order, so that two transactions do not wait for each other
        activity.ask_lock(db, tenant, [id_ for one in shown for id_ in one.ids])
    changed, faded = dict[UUID, None](), dict[UUID, None]()
    for group in groups:
        done = _touch_once(context, db, tenant, group)
        changed |= dict.fromkeys(done.changed)
        faded |= dict.fromkeys(done.faded)
    return Touched([*changed], [*faded])


def _without_common_facts(shown: Sequence[Shown]) -> Iterator[list[Shown]]:
    """Yield touches in groups in which no fact and no use has two; those of one keep the order of their instants."""
    groups: list[list[Shown]] = []
    after: dict[UUID, int] = {}
    for one in sorted(shown, key=attrgetter("at")):
        place = max(after.get(id_, 0) for id_ in (*one.ids, one.use))
        if place == len(groups):
            groups.append([])
        groups[place].append(one)
        after |= dict.fromkeys((*one.ids, one.use), place + 1)
    yield from groups


def _touch_once(context: Context, db: Connection, tenant: int, shown: Sequence[Shown]) -> Touched:
    """Record touches that have no fact in common."""
    of = {id_: one for one in shown for id_ in one.ids}
    every = reach(db, tenant, {id_: one.at for id_, one in of.items()})
    faded = every.live.only(every.live.anchors.reduced).ids
    # also for repeated questions: redelivered after the cool-down, they would count
    claimed = activity.claim_uses(db, tenant, {of[id_].use for id_ in every.rows.ids})
    found = every.only(np.array([of[id_].use in claimed for id_ in every.rows.ids], dtype=np.bool_))
    found = _first(context, found, of)
    if not found.rows.ids:
        return Touched([], faded)
    anchors = found.rows.anchors
    if context.settings.decay_reinforce_on_query:
        anchors = strengthened(anchors, found.instants, QUERY_BOOST, coactivations=1)
    elif context.settings.regeneration_enabled:
        anchors = _seen_again(anchors, found.instants)
    anchors = confirmed(anchors, found.rows, found.instants, always=False)
    touched = _write(context, db, tenant, found, anchors, recalls=1)
    return Touched(touched.ids, [*faded, *touched.only(touched.anchors.reduced).ids])


def _first(context: Context, found: Reached, of: Mapping[UUID, Shown]) -> Reached:
    """Return the facts that their question did not touch within the cool-down, with the question added to `asked`."""
    seconds, keep, asked = context.settings.touch_cooldown, list[bool](), list[bytes]()
    for id_, at, before in zip(found.rows.ids, found.instants.tolist(), found.asked, strict=True):
        question = of[id_].question
        keep.append(question is None or not is_repeat(before, question, at, seconds))
        asked.append(before if question is None else with_question(before, question, at, seconds))
    return replace(found, asked=asked).only(np.array(keep, dtype=np.bool_))


def drop_old_uses(context: Context) -> int:
    """Delete ids of uses that cannot be redelivered any more; return how many."""
    with transaction(context.database_url) as db:
        return activity.drop_old_uses(db)


def _seen_again(anchors: Anchors, at: Each) -> Anchors:
    """Return anchors where the decay of faded facts restarts at `at` (epoch seconds), without more strength.

    Else the next pass would reduce their regenerated vectors again.
    """
    again, faded = strengthened(anchors, at, 0.0, coactivations=0), anchors.reduced
    base = np.where(faded, again.base, anchors.base)
    return replace(anchors, base=base, last_seen_at=np.where(faded, again.last_seen_at, anchors.last_seen_at))


def salience(anchors: Anchors, at: Each) -> Floats:
    """Return the salience of facts at an instant (epoch seconds), or each at its own."""
    strength = tiers.strength(anchors.base, anchors.coactivations)
    age_days = (at - with_pins(anchors).last_seen_at) / DAY
    return strength * tiers.retention(tiers.curve(strength, anchors.coactivations), age_days)


def strengthened(anchors: Anchors, at: Each, boost: float, coactivations: int) -> Anchors:
    """Return anchors whose strength is the salience at `at` (epoch seconds) plus `boost`, at most 1, from the last use.

    The last use is `at` or a later one. The base is set so that the strength is exact: the source's 0.35 becomes 0.85,
    however often the fact was recalled before.
    """
    wanted = np.minimum(salience(anchors, at) + boost, 1.0)
    times = np.minimum(anchors.coactivations + coactivations, MOST_COUNTED)
    seen = np.maximum(anchors.last_seen_at, at)
    return replace(anchors, base=tiers.base_for(wanted, times), coactivations=times, last_seen_at=seen)


def confirmed(anchors: Anchors, rows: Activity, at: Each, *, always: bool) -> Anchors:
    """Return anchors confirmed at `at` (epoch seconds) where the decay class is refreshed by use, or `always`.

    The lifetime of a pinned fact starts at the end of its pin. A confirmation undoes soft decay.
    """
    lives = [lifetime.lifetime(name or None) for name in rows.decay_classes]
    refreshed = np.array([life.refreshed_by_use for life in lives], dtype=np.bool_) & (anchors.confirmed_at < at)
    counted = refreshed | (always & (anchors.confirmed_at < at))
    expires = renewed(anchors, rows.decay_classes, np.maximum(anchors.pinned_until, at))
    return replace(
        anchors,
        confirmed_at=np.where(counted, at, anchors.confirmed_at),
        halvings=np.where(counted, 0, anchors.halvings),
        expires_at=np.where(refreshed, expires, anchors.expires_at),
    )


def _write(context: Context, db: Connection, tenant: int, found: Reached, anchors: Anchors, recalls: int) -> Activity:
    """Write the new anchors of facts that are live or revived by them; return these facts with their old anchors."""
    anchors = replace(anchors, silent_since=np.maximum(anchors.silent_since, found.instants))
    faded = as_written(anchors, found.instants, rules_for(context, db, found.rows.namespaces))
    keep = found.prolonged(faded.ends_at)
    kept = found.only(keep)
    if kept.rows.ids:
        found.revive(db, tenant, set(kept.rows.ids))
        counts = np.full(len(kept.rows), recalls, dtype=np.int64)
        activity.write_used(db, kept.rows, select(anchors, keep), faded.only(keep), kept.at, counts, kept.asked)
    return kept.rows
