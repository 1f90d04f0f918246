"""The forget limit: the share of a namespace that passes may end in a day and a week, also after gaps; capacity.

What it holds back stays until its owner decides to forget or to keep it.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import attrgetter
from uuid import UUID, uuid4

import numpy as np
from ebb.contract.decay import HeldFacts, ListHeld

from workers.context import Context
from workers.core.arrays import Bools, Floats, Ints
from workers.core.fading import GUARD, REASONS, Faded, ends, fade, have_ended
from workers.core.forget_limit import Limit, is_gap, is_set_back
from workers.memory.forget import forget_within
from workers.memory.namespace_settings import namespace_rules, unapplied
from workers.memory.restore import begin_again
from workers.memory.turn_limit import with_turn_limit
from workers.storage import activity, due, events, limits, namespaces
from workers.storage.activity import Activity
from workers.storage.connection import Connection, commit_later, transaction
from workers.storage.limits import Cutoff, HeldCursor, Reading
from workers.storage.runs import Part
from workers.validation import cursors

log = logging.getLogger(__name__)


def check_for_gap(context: Context, *, everywhere: bool) -> None:
    """Detect gaps between passes by the database's clock; facts that ended within a gap are held.

    Only a pass over all namespaces counts as the last one. With simulated instants nothing is checked.
    """
    if context.settings.time_travel:
        return
    with transaction(context.database_url) as db:
        reading = limits.read_clock(db)
        jumped = reading is not None and _record_jump(db, reading)
        if everywhere or jumped:
            limits.set_clock(db)


def _record_jump(db: Connection, reading: Reading) -> bool:
    """Record a gap since the last pass, or remove those that the clock was set back over; return if there is a gap."""
    last, now, _ = instants = [one.timestamp() for one in reading]
    if is_set_back(last, now):
        limits.remove_gaps(db, reading)
        log.warning("the database's clock was set back from %s to %s", reading.last, reading.now)
    if not is_gap(*instants):
        return False
    limits.record_gap(db, reading)
    log.warning(
        "NO PASS CAME from %s to %s: the system was off, or the database's clock jumped (its server runs since %s). "
        "What ended meanwhile is kept. If the clock is right, let it go with `ebb decay --all --force`; if not, set "
        "the clock right.",
        *reading,
    )
    return True


def in_gap(context: Context, db: Connection, part: Part, rows: Activity, ends_at: Floats) -> Bools:
    """Return which facts end within an unconfirmed gap of their namespace; ends in epoch seconds.

    A dry run detects none, but includes the one that the pass would.
    """
    coming = part.dry_run and not context.settings.time_travel
    found = limits.gaps(db, np.unique(rows.namespaces).tolist(), coming=coming)
    inside = np.zeros(len(rows), dtype=np.bool_)
    for tenant, gap in found.items():
        inside |= (rows.namespaces == tenant) & gap.includes(ends_at)
    return inside


REGULAR = timedelta(days=1)
"""Interval of regular passes: an expired explicit lifetime counts against the limit only after a longer one."""

ALL: Cutoff = (np.inf, None)
NONE: Cutoff = (-np.inf, None)


def configured(context: Context) -> Limit:
    """Return the limit by the operator's settings."""
    return Limit(context.settings.forget_limit, context.settings.forget_limit_week)


def publish(context: Context, db: Connection) -> None:
    """Write this process's limit to the table that SQL functions read."""
    own = configured(context)
    if limits.shares(db) != (own.a_day, own.a_week):
        limits.set_shares(db, own.a_day, own.a_week)


def take_allowance(context: Context, db: Connection, tenant: int, wanted: int, now: datetime) -> int:
    """Return how many of `wanted` facts a clean-up may forget, and count them."""
    publish(context, db)
    limits.lock(db, tenant)
    left = limits.remaining(db, tenant, now)
    granted = wanted if left is None else min(wanted, left)
    limits.count_ended(db, tenant, granted, now)
    return granted


def requested(rows: Activity, passed_at: datetime | None, now: datetime) -> Bools:
    """Return which facts end as requested: an explicit lifetime has expired while passes were regular.

    Before the first pass, passes count as regular.
    """
    until = now if passed_at is None else min(now, passed_at + REGULAR)
    expires_at = rows.anchors.expires_at
    return rows.explicit & (expires_at < now.timestamp()) & (expires_at <= until.timestamp())


def decide(
    context: Context, db: Connection, run: UUID, part: Part, rows: Activity, faded: Faded
) -> tuple[Bools, Bools]:
    """Return which of the claimed facts a run forgets, least valuable first, and which it holds, and count them.

    Those held before wait for their owner, as do facts that ended within a gap.
    """
    ended = have_ended(faded, part.planned_for.timestamp())
    forgotten = ended.copy() if part.force else ended & requested(rows, part.passed_at, part.planned_for)
    wanted = ended & ~forgotten & ~rows.held
    if ended.any() and not part.force:
        outside = ~in_gap(context, db, part, rows, faded.ends_at)
        forgotten, wanted = forgotten & outside, wanted & outside
    asked = forgotten.copy()
    for tenant in np.unique(rows.namespaces[asked | wanted]).tolist():
        own = rows.namespaces == tenant
        going = _granted(context, db, run, part, tenant, rows, np.flatnonzero(wanted & own))
        forgotten[going] = True
        if not part.dry_run:
            limits.count_ended(db, tenant, len(going), part.planned_for, asked=int((asked & own).sum()))
    held = ended & ~forgotten
    if not part.dry_run:
        for tenant in np.unique(rows.namespaces[held]).tolist():
            namespaces.hold(db, tenant, part.planned_for)
    return forgotten, held


class ManyEndedError(Exception):
    """Too many facts of a namespace are due to find its cutoff within a batch; see `MANY`."""

    def __init__(self, part: Part, tenant: int) -> None:
        super().__init__(tenant)
        self.part, self.tenant = part, tenant


MANY = 10_000
"""With this many due facts, a namespace's cutoff is found in a transaction that locks no facts of others."""


def find_cutoff(context: Context, run: UUID, part: Part, tenant: int) -> None:
    """Set the cutoff of a run in a namespace with many ended facts; other tasks of the run wait for it meanwhile."""
    with transaction(context.database_url) as db:
        commit_later(db)
        limits.lock_cutoff(db, tenant)
        if limits.cutoff(db, run, tenant) is None:
            _cutoff(context, db, run, part, tenant, most=None)


def _granted(
    context: Context, db: Connection, run: UUID, part: Part, tenant: int, rows: Activity, places: Ints
) -> list[int]:
    """Return the indexes of the facts of one namespace that may go; locks the namespace if there are any."""
    if not len(places):
        return []
    limits.lock(db, tenant)
    last = limits.cutoff(db, run, tenant)
    if last is None:
        last = _cutoff(context, db, run, part, tenant, most=MANY)
    ordered = sorted(places.tolist(), key=lambda place: (rows.value_rank[place], rows.ids[place]))
    going = [place for place in ordered if _goes(float(rows.value_rank[place]), rows.ids[place], last)]
    if part.dry_run:
        return going
    left = limits.remaining(db, tenant, part.planned_for)
    return going if left is None else going[:left]


def _goes(rank: float, id_: UUID, last: Cutoff) -> bool:
    return rank < last[0] or (rank == last[0] and (last[1] is None or id_ <= last[1]))


def _cutoff(context: Context, db: Connection, run: UUID, part: Part, tenant: int, *, most: int | None) -> Cutoff:
    """Set the cutoff of a run in a namespace, so that its tasks agree in any order.

    Raises:
        ManyEndedError: it would have to be found among more than `most` due facts.
    """
    left = limits.remaining(db, tenant, part.planned_for)
    last = ALL
    if left is not None and (
        _takes_every(context, db, part, tenant) or limits.count_due(db, tenant, part.planned_for, left + 1) > left
    ):
        if most is not None and limits.count_due(db, tenant, part.planned_for, most + 1) > most:
            raise ManyEndedError(part, tenant)
        last = _nth_of_value(context, db, part, tenant, left)
    limits.set_cutoff(db, run, tenant, 0 if left is None else left, last)
    return last


def _nth_of_value(context: Context, db: Connection, part: Part, tenant: int, number: int) -> Cutoff:
    """Return the fact number `number`, by value, of those that ended without a request and are not held."""
    if number == 0:
        return NONE
    ranks, ids = _ended_by_themselves(context, db, part, tenant)
    if len(ids) <= number:
        return ALL
    last = np.partition(ranks, number - 1)[number - 1]
    equal = sorted((ids[place] for place in np.flatnonzero(ranks == last)), key=attrgetter("int"))
    return float(last), equal[number - 1 - int((ranks < last).sum())]


def _ended_by_themselves(context: Context, db: Connection, part: Part, tenant: int) -> tuple[Floats, list[UUID]]:
    """Return the facts that ended without a request and are not held, with the value ranks."""
    ranks, ids = [np.empty(0)], list[UUID]()
    for rows, ends_at in _ended(context, db, part, tenant):
        outside = ~in_gap(context, db, part, rows, ends_at)
        counting = rows.only(~requested(rows, part.passed_at, part.planned_for) & outside)
        ranks.append(counting.value_rank)
        ids += counting.ids
    return np.concatenate(ranks), ids


def _ended(context: Context, db: Connection, part: Part, tenant: int) -> Iterator[tuple[Activity, Floats]]:
    """Yield batches of the facts that have ended and are not held, with their ends (epoch seconds)."""
    now = part.planned_for
    for rows in due.due_by(db, tenant, now, every=_takes_every(context, db, part, tenant)):
        own = namespace_rules(context, db, rows.namespaces, janitor=part.work == "janitor")
        faded = fade(with_turn_limit(rows, own, now).anchors, now.timestamp(), own.rules)
        ended = have_ended(faded, now.timestamp()) & ~rows.held
        yield rows.only(ended), faded.ends_at[ended]


def _takes_every(context: Context, db: Connection, part: Part, tenant: int) -> bool:
    """Return whether a dry run takes every fact, as the pass would apply changed settings."""
    return part.dry_run and part.work == "decay" and tenant in unapplied(context, db, tenant)


def until_requested_end(rows: Activity, faded: Faded, held: Bools, now: datetime) -> Faded:
    """Return the state where held facts are due again only when an explicit lifetime expires."""
    expires_at = rows.anchors.expires_at
    again = np.where(rows.explicit & (expires_at >= now.timestamp()), expires_at + GUARD, np.inf)
    return replace(faded, due_at=np.where(held, again, faded.due_at))


CROWDED = "crowded"
"""The reason of facts over capacity."""

CROWDED_SECONDS = 5.0
"""Time after which a batch takes no further namespace over capacity, as it holds the locks of all before."""


def forget_least_valuable(context: Context, db: Connection, run: UUID, part: Part) -> int:
    """Forget a batch of facts in the first namespaces over capacity, in order of their ids; return how many.

    Each namespace is counted again under its lock, as another pass may have forgotten facts of it since.
    """
    now, most = part.planned_for, context.settings.decay_batch
    over = limits.over_capacity(db, context.database_url, part.namespace, now)
    until, going = time.monotonic() + CROWDED_SECONDS, list[tuple[int, UUID]]()
    for tenant, capacity in over.items():
        limits.lock(db, tenant)
        left, vectors = limits.counted_against_capacity(db, tenant, now)
        wanted = _room(db, tenant, min(capacity.most_over(left, vectors), most - len(going)), part)
        least = limits.claim_least_valuable(db, tenant, wanted, now) if wanted else []
        ids = [id_ for id_, _ in least][: capacity.going([size for _, size in least], left, vectors)]
        if not part.force:
            limits.count_ended(db, tenant, len(ids), now)
        going += [(tenant, id_) for id_ in ids]
        if len(going) >= most or (going and time.monotonic() >= until):
            break
    if going:
        forget_within(db, [tenant for tenant, _ in going], [id_ for _, id_ in going], [CROWDED] * len(going), now, run)
    return len(going)


def _room(db: Connection, tenant: int, wanted: int, part: Part) -> int:
    """Return how many of `wanted` facts may go beside those that have ended and that other parts have yet to take."""
    left = None if part.force or not wanted else limits.remaining(db, tenant, part.planned_for)
    if left is None:
        return wanted
    first = limits.count_ended_unasked(db, tenant, part.passed_at, part.planned_for)
    return min(wanted, max(left - first, 0))


BATCH = 500
"""Facts per transaction."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The facts that were forgotten or kept, and the number still held."""

    ids: list[UUID]
    left: int


def held_facts(context: Context, asked: ListHeld) -> HeldFacts:
    """Return a page of a namespace's held facts, by the time when they ended."""
    behind = cursors.place(asked.cursor, HeldCursor)
    with context.namespace(asked.namespace) as (db, tenant):
        found = limits.held_page(db, tenant, asked.limit + 1, behind)
        shown, following = cursors.page(found, asked.limit, lambda one: HeldCursor(one.ended_at, one.id))
        reasons = _reasons(context, db, activity.read(db, tenant, [one.id for one in shown]))
        total = limits.count_held(db, tenant)
    facts = [one.model_copy(update={"reason": reasons.get(one.id)}) for one in shown]
    return HeldFacts(held=facts, total=total, next=following)


def let_go(
    context: Context,
    namespace: str,
    ids: Sequence[UUID] | None,
    now: datetime,
    until: float,
    use: UUID | None = None,
) -> Decided:
    """Forget the given held facts, or all of them; they do not count against the forget limit.

    It stops at `until`, on the monotonic clock. Idempotent. A redelivery with the same `use` also returns what the
    earlier one forgot.
    """
    before = _decided_before(context, namespace, ids, "forgotten", now, use)
    return _decide(context, namespace, ids, until, before, lambda db, rows: _let_go(context, db, rows, now))


def keep(
    context: Context,
    namespace: str,
    ids: Sequence[UUID] | None,
    now: datetime,
    until: float,
    use: UUID | None = None,
) -> Decided:
    """Keep the given live facts, or all held ones: confirmed now, with a full lifetime, as by a restore.

    It stops at `until`, on the monotonic clock. A redelivery with the same `use` also returns what the earlier one
    kept, and keeps given facts no further time.
    """
    if ids is None:
        before = _decided_before(context, namespace, None, "kept", now, use)
        return _decide(context, namespace, None, until, before, lambda db, rows: _keep(context, db, rows, now))
    with context.namespace(namespace) as (db, tenant):
        activity.lock(db, tenant, ids)
        rows = activity.read_live(db, tenant, ids)
        rows = rows.among(set(rows.ids) - activity.ended(db, tenant, rows.ids, now))
        if rows.ids and activity.claim_uses(db, tenant, [use or uuid4()]):
            _keep(context, db, rows, now)
        limits.settle_held(db, tenant)
        return Decided(rows.ids, limits.count_held(db, tenant))


def _decided_before(
    context: Context, namespace: str, ids: Sequence[UUID] | None, what: str, now: datetime, use: UUID | None
) -> list[UUID]:
    """Return what an earlier delivery of a decision about the given facts, or all, has done, if there was one."""
    with context.namespace(namespace) as (db, tenant):
        if not tenant or use is None or activity.claim_uses(db, tenant, [use]):
            return []
        return sorted(events.done_at(db, tenant, ids, what, now))


def _decide(
    context: Context,
    namespace: str,
    ids: Sequence[UUID] | None,
    until: float,
    before: Sequence[UUID],
    decide: Callable[[Connection, Activity], None],
) -> Decided:
    done = [*before]
    while True:
        with context.namespace(namespace) as (db, tenant):
            rows = activity.lock(db, tenant, limits.held_among(db, tenant, ids, BATCH))
            rows = rows.only(rows.held)
            if rows.ids:
                decide(db, rows)
            limits.settle_held(db, tenant)
            done += rows.ids
            if not rows.ids or time.monotonic() >= until:
                return Decided(done, limits.count_held(db, tenant))


def _reasons(context: Context, db: Connection, rows: Activity) -> dict[UUID, str]:
    _, why = ends(rows.anchors, namespace_rules(context, db, rows.namespaces, janitor=True).rules)
    return {id_: REASONS[code] for id_, code in zip(rows.ids, why.tolist(), strict=True)}


def _let_go(context: Context, db: Connection, rows: Activity, now: datetime) -> None:
    reasons = _reasons(context, db, rows)
    forget_within(db, rows.namespaces.tolist(), rows.ids, [reasons[id_] for id_ in rows.ids], now)


def _keep(context: Context, db: Connection, rows: Activity, now: datetime) -> None:
    begin_again(context, db, int(rows.namespaces[0]), rows, now)
    events.add_all(db, rows.namespaces.tolist(), rows.ids, now, "kept")
