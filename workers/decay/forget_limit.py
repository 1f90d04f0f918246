"""The forget limit: how much of a namespace passes may end in a day and a week, also after a gap between passes."""

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core.arrays import Bools, Floats, Ints
from workers.core.fading import Faded, fade, over
from workers.core.forget_limit import Limit, is_gap, is_set_back
from workers.memory.namespace_settings import namespace_rules
from workers.memory.turn_limit import counted
from workers.storage import due, limits, namespaces
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction
from workers.storage.limits import Cutoff
from workers.storage.runs import Part

log = logging.getLogger(__name__)


def check(context: Context, *, everywhere: bool) -> None:
    """Look at the database's clock before a pass, and have what ended in a gap since the last one held.

    Only a pass over all namespaces counts as the last one. In a simulation instants are no evidence.
    """
    if context.settings.time_travel:
        return
    with transaction(context.database_url) as db:
        reading = limits.read_clock(db)
        jumped = reading is not None and is_gap(*(one.timestamp() for one in reading))
        if reading is not None and jumped:
            limits.hold_gap(db, reading)
        if reading is not None and is_set_back(reading.last.timestamp(), reading.now.timestamp()):
            limits.take_back(db, reading)
            log.warning("the database's clock was set back from %s to %s", reading.last, reading.now)
        if everywhere or jumped:
            limits.set_clock(db)
    if reading is not None and jumped:
        log.warning(
            "NO PASS CAME from %s to %s: the system was off, or the database's clock jumped (its server runs since "
            "%s). What ended meanwhile is kept. If the clock is right, let it go with `ebb decay --all --force`; if "
            "not, set the clock right.",
            *reading,
        )


def within(db: Connection, rows: Activity, ends_at: Floats) -> Bools:
    """Return which facts end within an unconfirmed gap of their namespace; ends in epoch seconds."""
    found = limits.gaps(db, np.unique(rows.namespaces).tolist())
    inside = np.zeros(len(rows), dtype=np.bool_)
    for tenant, gap in found.items():
        own = rows.namespaces == tenant
        inside |= own & (ends_at > gap.began.timestamp()) & (ends_at <= gap.ended.timestamp())
    return inside


REGULAR = timedelta(days=1)
"""A lifetime that its owner chose and that is over counts only if no pass came for longer than this before its end."""

BATCH = 10_000

ALL: Cutoff = (np.inf, None)
NONE: Cutoff = (-np.inf, None)


@dataclass(frozen=True, slots=True)
class Decision:
    """Of n facts: which are forgotten now, and which are over but held back by the limit."""

    forgotten: Bools
    held: Bools


def shares(context: Context) -> Limit:
    """Return which shares of a namespace may end by themselves, as the operator set them."""
    return Limit(context.settings.forget_limit, context.settings.forget_limit_week)


def publish(context: Context, db: Connection) -> None:
    """Write the shares that this process was started with to the table that readers use."""
    own = shares(context)
    if limits.shares(db) != (own.a_day, own.a_week):
        limits.set_shares(db, own.a_day, own.a_week)


def allowed(context: Context, db: Connection, tenant: int, wanted: int, now: datetime) -> int:
    """Return how many of `wanted` facts a clean-up may forget by itself, and count them."""
    publish(context, db)
    limits.lock(db, tenant)
    left = limits.room(db, tenant, now)
    granted = wanted if left is None else min(wanted, left)
    limits.spend(db, tenant, granted, now)
    return granted


def asked_for(rows: Activity, passed_at: datetime | None, now: datetime) -> Bools:
    """Return which facts end as their owners asked: a lifetime that they chose has run out while passes came regularly.

    Before the first pass no interval is known, and every pass counts as regular.
    """
    until = now if passed_at is None else min(now, passed_at + REGULAR)
    expires_at = rows.anchors.expires_at
    asked: Bools = rows.explicit & (expires_at < now.timestamp()) & (expires_at <= until.timestamp())
    return asked


def decide(context: Context, db: Connection, run: UUID, part: Part, rows: Activity, faded: Faded) -> Decision:
    """Return which of some claimed facts a run forgets, the least valuable first; count those not asked for.

    What is held already waits for its owner, and takes no part; nor does what ended while no pass came for long.
    """
    ended = over(faded, part.planned_for.timestamp())
    forgotten = ended.copy() if part.force else ended & asked_for(rows, part.passed_at, part.planned_for)
    if ended.any() and not part.force:
        paused = within(db, rows, faded.ends_at)
        forgotten &= ~paused
        wanted = ended & ~forgotten & ~rows.held & ~paused
    else:
        wanted = ended & ~forgotten & ~rows.held
    asked = forgotten.copy()
    for tenant in np.unique(rows.namespaces[asked | wanted]).tolist():
        own = rows.namespaces == tenant
        going = _granted(context, db, run, part, tenant, rows, np.flatnonzero(wanted & own))
        forgotten[going] = True
        if not part.dry_run:
            limits.spend(db, tenant, len(going), part.planned_for, asked=int((asked & own).sum()))
    held = ended & ~forgotten
    if not part.dry_run:
        for tenant in np.unique(rows.namespaces[held]).tolist():
            namespaces.hold(db, tenant, part.planned_for)
    return Decision(forgotten, held)


def _granted(
    context: Context,
    db: Connection,
    run: UUID,
    part: Part,
    tenant: int,
    rows: Activity,
    places: Ints,
) -> list[int]:
    """Return the places of those facts of one namespace that may go; the namespace is locked where there are any."""
    if not len(places):
        return []
    limits.lock(db, tenant)
    last = limits.cutoff(db, run, tenant)
    if last is None:
        last = _cutoff(context, db, run, part, tenant)
    ordered = sorted(places.tolist(), key=lambda place: (rows.value_rank[place], rows.ids[place]))
    going = [place for place in ordered if _goes(float(rows.value_rank[place]), rows.ids[place], last)]
    if part.dry_run:
        return going
    left = limits.room(db, tenant, part.planned_for)
    return going if left is None else going[:left]


def _goes(rank: float, id_: UUID, last: Cutoff) -> bool:
    return rank < last[0] or (rank == last[0] and (last[1] is None or id_ <= last[1]))


def _cutoff(context: Context, db: Connection, run: UUID, part: Part, tenant: int) -> Cutoff:
    """Settle up to which fact a run may go in a namespace, so that its tasks agree in whatever order they come."""
    left = limits.room(db, tenant, part.planned_for)
    last = ALL
    if left is not None and limits.count_due(db, tenant, part.planned_for, left + 1) > left:
        last = _nth_of_value(context, db, part, tenant, left)
    limits.set_cutoff(db, run, tenant, 0 if left is None else left, last)
    return last


def _nth_of_value(context: Context, db: Connection, part: Part, tenant: int, number: int) -> Cutoff:
    """Return the last, in order of value, of so many facts that are over, were not asked to end and are not held."""
    if number == 0:
        return NONE
    found: list[tuple[float, UUID]] = []
    now = part.planned_for
    for rows in due.coming(db, tenant, now, BATCH):
        own = namespace_rules(context, db, rows.namespaces, janitor=part.work == "janitor")
        faded = fade(counted(rows, own, now).anchors, now.timestamp(), own.rules)
        counting = over(faded, now.timestamp()) & ~asked_for(rows, part.passed_at, now) & ~rows.held
        counting &= ~within(db, rows, faded.ends_at)
        found += [(float(rows.value_rank[place]), rows.ids[place]) for place in np.flatnonzero(counting)]
    found.sort()
    return found[number - 1] if len(found) > number else ALL


def waiting(rows: Activity, faded: Faded, held: Bools, now: datetime, guard: float) -> Faded:
    """Return facts with those that are held due again only when a lifetime that their owners chose runs out."""
    expires_at = rows.anchors.expires_at
    again = np.where(rows.explicit & (expires_at >= now.timestamp()), expires_at + guard, np.inf)
    return replace(faded, due_at=np.where(held, again, faded.due_at))
