"""Forecast: compute from the decay curves what the passes of the coming days will do."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import numpy as np
from ebb.contract.reports import ForecastDay, ForecastFact, Totals

from workers.context import Context
from workers.core.arrays import Bools, Floats, Ints
from workers.core.fading import REASONS, Anchors, Faded, FadingRules, ends, fade, have_ended, newly_stale, select
from workers.core.fidelity import FINGERPRINT
from workers.core.forget_limit import remaining
from workers.core.tiers import Tier
from workers.decay import forget_limit
from workers.decay.endings import Outlook, outlook, visited
from workers.decay.forget_limit import CROWDED
from workers.storage import activity, branches, facts, limits, namespaces, tallies
from workers.storage.activity import Activity
from workers.storage.connection import Connection, snapshot, transaction
from workers.storage.limits import Capacity, Gap
from workers.storage.namespaces import Namespace
from workers.storage.runs import Part

MINUTE = 60.0

COOLING = tuple(tier.name.lower() for tier in Tier if tier is not Tier.HOT)
ENDS = (*REASONS, CROWDED)
CHANGES = (*COOLING, "compressed", "fingerprinted", "stale", *ENDS)
"""The changes of a fact: a colder tier, a smaller vector, only the signature, staleness, or its end for a reason."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Facts that end on one day, with reason and bytes; `changes`, and `smaller` by these, count where they are held.

    The owner has to confirm the end of those that ended within a gap.
    """

    rows: Activity
    reason: Ints
    in_gap: Bools
    bytes: Floats
    smaller: Floats
    changes: list[tuple[str, Bools]]

    def only(self, keep: Bools) -> "Ended":
        """Return the facts where `keep` is true."""
        changes = [(name, which[keep]) for name, which in self.changes]
        columns = (self.reason[keep], self.in_gap[keep], self.bytes[keep], self.smaller[keep])
        return Ended(self.rows.only(keep), *columns, changes)

    @property
    def shrunk(self) -> "Ended":
        """Return the facts as a pass that holds them leaves them."""
        return replace(self, bytes=self.bytes - self.smaller)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Facts that change on one day unless they were crowded out before, and the bytes that this frees."""

    ids: list[UUID]
    bytes: Floats
    changes: list[tuple[str, Bools]]


@dataclass(slots=True)
class Day:
    """What a pass at the end of one day will do, with daily passes before it, and up to `most` examples of each change.

    `held` are facts beyond the forget limit, which do not end; `released` were held before and live on by other
    settings. Of the ending facts, `recalled` were recalled within `LATELY` before the forecast; `freed` is an estimate
    in bytes. `crowdable` are facts that may be over capacity and have not ended; `smaller` is by how many bytes the
    vectors of others that count against a capacity shrink, less those of `released` facts.
    """

    at: datetime
    most: int
    counts: Counter[str] = field(default_factory=Counter)
    held: int = 0
    released: int = 0
    recalled: int = 0
    freed: float = 0.0
    smaller: float = 0.0
    facts: list[ForecastFact] = field(default_factory=list)
    examples: list[tuple[UUID, str]] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    crowdable: list[Shrunk] = field(default_factory=list)

    @property
    def answer(self) -> ForecastDay:
        """Return the counts, with the sum of all reasons, and the first facts of each change."""
        counts = {change: self.counts[change] for change in CHANGES}
        forgotten = sum(self.counts[reason] for reason in ENDS)
        return ForecastDay(at=self.at, **counts, forgotten=forgotten, held=self.held, facts=self.facts)

    def count(self, change: str, ids: Sequence[UUID]) -> None:
        """Count a change of some facts, and add the first of them as examples."""
        self.counts[change] += len(ids)
        self.add_examples(change, ids)

    def add_examples(self, change: str, ids: Sequence[UUID]) -> None:
        """Add the first of some facts as examples of a change."""
        room = self.most - sum(known == change for _, known in self.examples)
        self.examples += [(id_, change) for id_ in ids[: max(room, 0)]]

    def count_ended(self, rows: Activity, sizes: Floats, now: datetime) -> None:
        """Count the bytes of ending facts, and how many were recalled lately."""
        self.recalled += int((rows.last_accessed_at >= (now - LATELY).timestamp()).sum())
        self.freed += float(sizes.sum())


LATELY = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bytes of a fact without its vector, and the dimensions of a full vector."""

    row: float
    dims: int

    def of_vectors(self, fidelity: Ints) -> Floats:
        """Return the bytes of vectors, two for each dimension."""
        kept = (fidelity > 0) & (fidelity < FINGERPRINT)
        return np.where(kept, 2.0 * self.dims / np.maximum(fidelity, 1), 0.0)


def totals(context: Context, namespace: str, ahead: Sequence[Day]) -> Totals:
    """Return the totals of a forecast."""
    with transaction(context.database_url) as db:
        live = tallies.live(db, namespaces.id_of(db, namespace))
    gone = sum(day.counts[reason] for day in ahead for reason in ENDS)
    recalled, freed = sum(day.recalled for day in ahead), sum(day.freed for day in ahead)
    held = sum(day.held for day in ahead)
    return Totals(facts=live - gone, forgotten=gone, held=held, recalled_lately=recalled, bytes_freed=round(freed))


def forecast(
    context: Context, namespace: str, days: int, now: datetime, shown: int = 3, given: Sequence[str] = ()
) -> list[Day]:
    """Return the changes in a namespace day by day, if nothing is recalled or stored meanwhile.

    It reads only due facts, or every live fact if settings are `given`, each as `PATH=VALUE`, and writes nothing.
    `shown` is the number of examples for each day and change.
    """
    ahead = [Day(now + timedelta(days=number), shown) for number in range(1, days + 1)]
    with snapshot(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return ahead
        _forecast(db, tenant, ahead, outlook(context, db, tenant, given), now)
        _read_examples(db, tenant, ahead)
    return ahead


def crowded_out(context: Context, db: Connection, part: Part) -> int:
    """Return how many facts a pass would forget as over capacity, after all else that it does.

    The pass takes all that is due, whatever `decay_ratio` says, so with less than 1 this may be too few.
    """
    now, crowded = part.planned_for, 0
    for name in namespaces.names(db, [*limits.over_capacity(db, context.database_url, part.namespace, now)]):
        if tenant := namespaces.find(db, name):
            day = Day(now, most=0)
            _forecast(db, tenant, [day], outlook(context, db, tenant), now, force=part.force)
            crowded += day.counts[CROWDED]
    return crowded


def _forecast(
    db: Connection, tenant: Namespace, ahead: Sequence[Day], settings: Outlook, now: datetime, *, force: bool = False
) -> None:
    """Compute the changes on each day; with `force` there is no forget limit."""
    sizes = Sizes(*facts.sizes(db, settings.context.database_url))
    crowd = _over_capacity(db, tenant, settings, sizes, now, ahead[-1].at)
    gap = limits.gaps(db, [tenant.id], coming=not settings.context.settings.time_travel).get(tenant.id)
    for rows in visited(db, tenant, settings, now, ahead[-1].at):
        _forecast_batch(rows, ahead, settings, sizes, crowd, gap)
    _limit(db, tenant, ahead, settings, sizes, crowd, now, force=force)


def _read_examples(db: Connection, tenant: Namespace, ahead: Sequence[Day]) -> None:
    """Read the texts of the facts that are examples of each day's changes."""
    texts = facts.excerpts(db, tenant.id, [id_ for day in ahead for id_, _ in day.examples])
    for day in ahead:
        known = [(id_, change) for id_, change in day.examples if id_ in texts]  # others were erased meanwhile
        day.facts = [ForecastFact(id=id_, change=change, text=texts[id_]) for id_, change in known]


def _forecast_batch(
    rows: Activity, ahead: Sequence[Day], settings: Outlook, sizes: Sizes, crowd: "OverCapacity", gap: Gap | None
) -> None:
    """Compute the changes and endings of some facts on each day, and add them to the days."""
    due_at = np.minimum(rows.due_at, -np.inf if settings.every else np.inf)
    tier, fidelity, halvings = rows.tier.copy(), rows.anchors.fidelity.copy(), rows.anchors.halvings.copy()
    stale, crowdable = rows.anchors.stale.copy(), crowd.among(rows.ids)
    rows = replace(rows, held=rows.held.copy())
    for day in ahead:
        due_today = due_at <= day.at.timestamp()
        places = np.flatnonzero(due_today)
        instant = day.at.timestamp()
        before = replace(
            select(rows.anchors, places), fidelity=fidelity[places], halvings=halvings[places], stale=stale[places]
        )
        faded = fade(before, instant, settings.rules.rules)
        if rows.held[places].any():
            found = fade(before, instant, settings.janitor)
            faded = faded.replaced(have_ended(found, instant) & rows.held[places], found)
        ended, changes = have_ended(faded, instant), _changes(before, faded, tier[places])
        of_vectors = sizes.of_vectors(before.fidelity)
        smaller, later = of_vectors - sizes.of_vectors(faded.fidelity), ~ended & crowdable[places]
        day.freed += float(smaller[~ended & ~later].sum())
        day.smaller += float(smaller[~ended & ~later].sum() - of_vectors[~ended & rows.held[places]].sum())
        for change, which in changes:
            day.count(change, [rows.ids[i] for i in places[which & ~ended & ~later]])
        if later.any():
            ids = [rows.ids[i] for i in places[later]]
            day.crowdable.append(Shrunk(ids, smaller[later], [(name, which[later]) for name, which in changes]))
        if ended.any():
            in_gap = gap.includes(faded.ends_at) if gap else np.zeros(len(ended), dtype=np.bool_)
            those = Ended(rows.only(due_today), faded.end_reason, in_gap, of_vectors + sizes.row, smaller, changes)
            day.ended.append(those.only(ended))
        day.released += int((rows.held[places] & ~ended).sum()) if day is ahead[0] else 0
        rows.held[places] &= ended
        tier[places], fidelity[places], halvings[places] = faded.tier, faded.fidelity, faded.halvings
        stale[places] = faded.stale
        due_at[places] = np.where(ended, np.inf, faded.due_at)


def _changes(before: Anchors, faded: Faded, tier: Ints) -> list[tuple[str, Bools]]:
    """Return each change with a mask of the facts that it applies to, as a pass counts them."""
    falls = faded.fidelity > before.fidelity
    cooling = [(cooler, Tier[cooler.upper()]) for cooler in COOLING]
    return [
        *((cooler, (faded.tier == code) & (tier != code)) for cooler, code in cooling),
        ("compressed", falls & (faded.fidelity < FINGERPRINT)),
        ("fingerprinted", falls & (faded.fidelity == FINGERPRINT)),
        ("stale", newly_stale(before, faded)),
    ]


def _limit(
    db: Connection,
    tenant: Namespace,
    ahead: Sequence[Day],
    settings: Outlook,
    sizes: Sizes,
    crowd: "OverCapacity",
    now: datetime,
    *,
    force: bool,
) -> None:
    """Decide on each day which facts end: requested endings, and the least valuable ones within the forget limit."""
    live, spent = tallies.live(db, tenant.id), limits.recently_ended(db, tenant.id, now)
    waiting, held, passed_at = limits.count_held(db, tenant.id), list[Ended](), limits.last_pass(db, tenant.id)
    branch, own = branches.find(db, tenant.name), forget_limit.configured(settings.context)
    unlimited = force or (branch is not None and branch.original is not None)
    for day in ahead:
        day.ended = [one.only(crowd.keeps(one.rows.ids)) for one in day.ended]
        left = None if unlimited else remaining(own, live, spent, day.at.timestamp())
        fate = _decide(day, passed_at, left)
        released, held = _released(held, passed_at, day.at)
        going = [*fate.going, *released]
        kept = [_releasable(one.shrunk, day.at, settings.janitor) for one in (*fate.staying, *fate.held_before)]
        held += [one for one in kept if len(one.rows)]
        _count(day, going, fate)
        for one in going:
            day.count_ended(one.rows, one.bytes, now)
        ended = sum(len(one.rows) for one in going)
        waiting += sum(len(one.rows) for one in fate.staying) - sum(len(one.rows) for one in released)
        waiting -= sum(int(one.rows.held.sum()) for one in fate.going) + day.released
        live -= ended
        counted = fate.counted
        crowd.shrink(day, [*fate.going, *fate.staying], sizes)
        over = {id_ for one in (*going, *fate.staying, *fate.held_before) for id_ in one.rows.ids}
        crowded = crowd.next(over, live - waiting, left, counted, day.at)
        day.count(CROWDED, crowded)
        if crowded:
            rows = activity.read(db, tenant.id, crowded)
            day.count_ended(rows, np.array([crowd.bytes[id_] for id_ in rows.ids]) + sizes.row, now)
        live, counted, ended = live - len(crowded), counted + len(crowded), ended + len(crowded)
        spent.append((day.at.timestamp() // MINUTE * MINUTE, counted, ended - counted))
        passed_at = day.at


class Fate(NamedTuple):
    """The ended facts of a day: those that go, that the limit holds now, and that it held before.

    `counted` is how many of those that go count against the limit.
    """

    going: list[Ended]
    staying: list[Ended]
    held_before: list[Ended]
    counted: int


def _decide(day: Day, passed_at: datetime | None, left: int | None) -> Fate:
    """Return what happens to the ended facts of a day, if the limit leaves `left`."""
    requested = [_requested(one, passed_at, day.at) for one in day.ended]
    wanted = [~own & ~one.rows.held & ~one.in_gap for own, one in zip(requested, day.ended, strict=True)]
    staying = [~own & ~one.rows.held for own, one in zip(requested, day.ended, strict=True)]
    granted = _granted(day.ended, wanted, left)
    return Fate(
        [one.only(own | goes) for one, own, goes in zip(day.ended, requested, granted, strict=True)],
        [one.only(own & ~goes) for one, own, goes in zip(day.ended, staying, granted, strict=True)],
        [one.only(~own & one.rows.held) for one, own in zip(day.ended, requested, strict=True)],
        sum(int(which.sum()) for which in granted),
    )


def _released(held: Sequence[Ended], passed_at: datetime | None, at: datetime) -> tuple[list[Ended], list[Ended]]:
    """Return the held facts whose explicit lifetime has expired between the last pass and `at`, and the others.

    A pass takes a held fact again at the end of its explicit lifetime, and not if that was over when it was held.
    """
    since = -np.inf if passed_at is None else passed_at.timestamp()
    released = [_requested(one, passed_at, at) & (one.rows.anchors.expires_at >= since) for one in held]
    return (
        [one.only(goes) for one, goes in zip(held, released, strict=True) if goes.any()],
        [one.only(~goes) if goes.any() else one for one, goes in zip(held, released, strict=True) if not goes.all()],
    )


def _releasable(held: Ended, at: datetime, janitor: FadingRules) -> Ended:
    """Return the held facts that `_released` may ever return after `at`: most have no explicit lifetime.

    Their reasons are those by the rules of the janitor, by which passes take held facts again.
    """
    expires_at = held.rows.anchors.expires_at
    those = held.only(held.rows.explicit & (expires_at >= at.timestamp()) & np.isfinite(expires_at))
    return replace(those, reason=ends(those.rows.anchors, janitor)[1])


def _requested(one: Ended, passed_at: datetime | None, at: datetime) -> Bools:
    return forget_limit.requested(one.rows, passed_at, at) & ~one.in_gap


@dataclass(slots=True)
class OverCapacity:
    """The facts that may be over a namespace's capacity, least valuable first, without those that are `gone`.

    Each has the end of its pin (epoch seconds), and the `bytes` of its vector. `vectors` are the bytes of all vectors
    that count against the capacity.
    """

    pinned_until: dict[UUID, float]
    bytes: dict[UUID, float]
    capacity: Capacity
    vectors: float = 0.0
    gone: set[UUID] = field(default_factory=set)

    def among(self, ids: Sequence[UUID]) -> Bools:
        """Return which facts may be over the capacity."""
        return np.array([id_ in self.pinned_until for id_ in ids], dtype=np.bool_)

    def keeps(self, ids: Sequence[UUID]) -> Bools:
        """Return which facts are not gone."""
        return np.array([id_ not in self.gone for id_ in ids], dtype=np.bool_)

    def shrink(self, day: Day, ended: Sequence[Ended], sizes: Sizes) -> None:
        """Count the changes of a day of those that are not gone, and what vectors are left after it."""
        self.vectors -= day.smaller + sum(float((one.bytes - sizes.row)[~one.rows.held].sum()) for one in ended)
        for one in day.crowdable:
            here = self.keeps(one.ids)
            day.freed += float(one.bytes[here].sum())
            self.vectors -= float(one.bytes[here].sum())
            for id_, smaller in zip(one.ids, one.bytes.tolist(), strict=True):
                self.bytes[id_] -= smaller
            for change, which in one.changes:
                day.count(change, [one.ids[i] for i in np.flatnonzero(which & here)])

    def next(self, over: set[UUID], live: int, left: int | None, counted: int, at: datetime) -> list[UUID]:
        """Return the facts that go at `at` with `live` facts, if the forget limit leaves `left` less those counted.

        Those and the facts that are `over` by other reasons are gone then.
        """
        room, instant = live if left is None else max(left - counted, 0), at.timestamp()
        self._remove(over)
        may_go = (id_ for id_, pinned_until in self.pinned_until.items() if pinned_until <= instant)
        chosen = list(islice(may_go, max(min(self.capacity.most_over(live, self.vectors), room), 0)))
        chosen = chosen[: self.capacity.going([self.bytes[id_] for id_ in chosen], live, self.vectors)]
        self.vectors -= sum(self.bytes[id_] for id_ in chosen)
        self._remove(chosen)
        return chosen

    def _remove(self, ids: Iterable[UUID]) -> None:
        for id_ in ids:
            self.pinned_until.pop(id_, None)
            self.gone.add(id_)


def _over_capacity(
    db: Connection, tenant: Namespace, settings: Outlook, sizes: Sizes, now: datetime, until: datetime
) -> OverCapacity:
    own = settings.own.get("capacity") or {}
    capacity = Capacity(own.get("facts"), own.get("bytes"), sizes.row)
    if not own:
        return OverCapacity({}, {}, capacity)
    _, by_dims = limits.live_with_vectors(db, tenant.id)
    live, most_by_dims = limits.live_with_vectors(db, tenant.id, with_held=settings.every)
    more = capacity.most_over(live, most_by_dims * sizes.dims)
    least = limits.least_valuable_by(db, tenant.id, more, now, until, every=settings.every) if more else []
    pins, sized = {id_: pin for id_, pin, _ in least}, {id_: size * sizes.dims for id_, _, size in least}
    return OverCapacity(pins, sized, capacity, by_dims * sizes.dims)


def _granted(ended: Sequence[Ended], wanted: Sequence[Bools], left: int | None) -> list[Bools]:
    """Return which of the wanted facts go: the `left` least valuable ones, or all if there is no limit."""
    if left is None:
        return list(wanted)
    order = sorted(
        (float(one.rows.value_rank[place]), one.rows.ids[place], number, place)
        for number, (one, which) in enumerate(zip(ended, wanted, strict=True))
        for place in np.flatnonzero(which).tolist()
    )
    granted = [np.zeros(len(one.rows), dtype=np.bool_) for one in ended]
    for _, _, number, place in order[:left]:
        granted[number][place] = True
    return granted


def _count(day: Day, going: Sequence[Ended], fate: Fate) -> None:
    """Add ended facts to a day: some end, the others are or stay held and may change."""
    for one in going:
        for number, name in enumerate(REASONS):
            day.count(name, [one.rows.ids[place] for place in np.flatnonzero(one.reason == number)])
    for one in fate.staying:
        day.held += len(one.rows)
        day.add_examples("held", one.rows.ids)
    for one in (*fate.staying, *fate.held_before):
        for change, which in one.changes:
            day.counts[change] += int(which.sum())
        day.freed += float(one.smaller.sum())
