"""Forecast: compute from the decay curves what the passes of the coming days will do."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from ebb.contract.reports import ForecastDay, ForecastFact, Totals
from pydantic import ValidationError

from workers.context import Context
from workers.core.arrays import Bools, Floats, Ints
from workers.core.fading import REASONS, Anchors, Faded, FadingRules, fade, have_ended, select
from workers.core.fidelity import FINGERPRINT
from workers.core.forget_limit import remaining
from workers.core.hygiene import SECTIONS, Document, changed
from workers.core.tiers import Tier
from workers.decay import forget_limit
from workers.decay.forget_limit import CROWDED
from workers.decay.passes import newly_stale
from workers.errors import InvalidInputError
from workers.memory.namespace_settings import hygiene, rules_of
from workers.settings import Settings
from workers.storage import activity, capacity, due, facts, limits, namespaces, tallies
from workers.storage.activity import Activity
from workers.storage.connection import Connection, snapshot, transaction
from workers.storage.namespaces import Namespace

BATCH = 10_000
MINUTE = 60.0

COOLING = tuple(tier.name.lower() for tier in Tier if tier is not Tier.HOT)
ENDS = (*REASONS, CROWDED)
CHANGES = (*COOLING, "compressed", "fingerprinted", "stale", *ENDS)
"""The changes of a fact: a colder tier, a smaller vector, only the signature, staleness, or its end for a reason."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Facts that end on one day, with reason, bytes, and the changes of those that are held."""

    rows: Activity
    reason: Ints
    bytes: Floats
    changes: list[tuple[str, Bools]]

    def only(self, keep: Bools) -> "Ended":
        """Return the facts where `keep` is true."""
        changes = [(name, which[keep]) for name, which in self.changes]
        return Ended(self.rows.only(keep), self.reason[keep], self.bytes[keep], changes)


@dataclass(slots=True)
class Day:
    """What a pass at the end of one day will do, with daily passes before it.

    `held` are facts beyond the forget limit, which do not end. Of the ending facts, `recalled` were recalled within
    `LATELY` before the forecast; `freed` is an estimate in bytes.
    """

    at: datetime
    counts: Counter[str] = field(default_factory=Counter)
    held: int = 0
    recalled: int = 0
    freed: float = 0.0
    facts: list[ForecastFact] = field(default_factory=list)
    examples: list[tuple[UUID, str]] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)

    @property
    def answer(self) -> ForecastDay:
        """Return the counts, with the sum of all reasons, and the first facts of each change."""
        counts = {change: self.counts[change] for change in CHANGES}
        forgotten = sum(self.counts[reason] for reason in ENDS)
        return ForecastDay(at=self.at, **counts, forgotten=forgotten, held=self.held, facts=self.facts)

    def add_examples(self, change: str, ids: Sequence[UUID], most: int) -> None:
        """Add the first of some facts as examples of a change."""
        room = most - sum(known == change for _, known in self.examples)
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
    ahead = [Day(now + timedelta(days=number)) for number in range(1, days + 1)]
    with snapshot(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return ahead
        every = tenant.unsettled or bool(given)
        context, own = with_settings(context, tenant.settings, given) if given else (context, tenant.settings)
        rules, sizes = rules_of(context, hygiene(context, own)), Sizes(*facts.sizes(db, context.database_url))
        for rows in due.due_by(db, tenant.id, ahead[-1].at, BATCH, every=every):
            due_at = np.minimum(rows.due_at, -np.inf if every else np.inf)
            _forecast_batch(rows, due_at, ahead, rules, sizes, shown)
        _limit(context, db, tenant, ahead, now, shown, sizes)
        _read_examples(db, tenant, ahead)
    return ahead


def _read_examples(db: Connection, tenant: Namespace, ahead: Sequence[Day]) -> None:
    """Read the texts of the facts that are examples of each day's changes."""
    texts = facts.excerpts(db, tenant.id, [id_ for day in ahead for id_, _ in day.examples])
    for day in ahead:
        day.facts = [ForecastFact(id=id_, change=change, text=texts[id_]) for id_, change in day.examples]


def _forecast_batch(
    rows: Activity, due_at: np.ndarray, ahead: Sequence[Day], rules: FadingRules, sizes: Sizes, shown: int
) -> None:
    """Compute the changes and endings of some facts on each day, and add them to the days."""
    tier, fidelity, halvings = rows.tier.copy(), rows.anchors.fidelity.copy(), rows.anchors.halvings.copy()
    stale = rows.anchors.stale.copy()
    for day in ahead:
        due_today = due_at <= day.at.timestamp()
        places = np.flatnonzero(due_today)
        instant = day.at.timestamp()
        before = replace(
            select(rows.anchors, places), fidelity=fidelity[places], halvings=halvings[places], stale=stale[places]
        )
        faded = fade(before, instant, rules)
        ended, changes = have_ended(faded, instant), _changes(before, faded, tier[places])
        of_vectors = sizes.of_vectors(before.fidelity)
        day.freed += float((of_vectors - sizes.of_vectors(faded.fidelity))[~ended].sum())
        for change, which in changes:
            day.counts[change] += int((which & ~ended).sum())
            day.add_examples(change, [rows.ids[i] for i in places[which & ~ended][:shown]], shown)
        if ended.any():
            those = Ended(rows.only(due_today), faded.end_reason, of_vectors + sizes.row, changes)
            day.ended.append(those.only(ended))
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
    context: Context, db: Connection, tenant: Namespace, ahead: Sequence[Day], now: datetime, shown: int, sizes: Sizes
) -> None:
    """Decide on each day which facts end: requested endings, and the least valuable ones within the forget limit."""
    live, spent = tallies.live(db, tenant.id), limits.recently_ended(db, tenant.id, now)
    passed_at, own, held = limits.last_pass(db, tenant.id), forget_limit.configured(context), list[Ended]()
    crowd = _over_capacity(db, context.database_url, tenant, now)
    for day in ahead:
        day.ended = [one.only(crowd.keeps(one.rows.ids)) for one in day.ended]
        left = remaining(own, live, spent, day.at.timestamp())
        fate = _decide(day, passed_at, left)
        released, held = _released(held, passed_at, day.at)
        going, held = [*fate.going, *released], [*held, *fate.staying, *fate.held_before]
        _count(day, going, fate.staying, shown)
        for one in going:
            day.count_ended(one.rows, one.bytes, now)
        ended = sum(len(one.rows) for one in going)
        live -= ended
        counted = fate.counted
        over_by_then = {id_ for one in (*going, *held) for id_ in one.rows.ids}
        crowded = crowd.next(over_by_then, live - sum(len(one.rows) for one in held), left, counted)
        day.counts[CROWDED] += len(crowded)
        day.add_examples(CROWDED, crowded, shown)
        if crowded:
            rows = activity.read(db, tenant.id, crowded)
            day.count_ended(rows, sizes.of_vectors(rows.anchors.fidelity) + sizes.row, now)
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
    wanted = [~own & ~one.rows.held for own, one in zip(requested, day.ended, strict=True)]
    granted = _granted(day.ended, wanted, left)
    return Fate(
        [one.only(own | goes) for one, own, goes in zip(day.ended, requested, granted, strict=True)],
        [one.only(own & ~goes) for one, own, goes in zip(day.ended, wanted, granted, strict=True)],
        [one.only(~own & one.rows.held) for one, own in zip(day.ended, requested, strict=True)],
        sum(int(which.sum()) for which in granted),
    )


def _released(held: Sequence[Ended], passed_at: datetime | None, at: datetime) -> tuple[list[Ended], list[Ended]]:
    """Return the held facts whose explicit lifetime has expired by `at`, and the others."""
    released = [_requested(one, passed_at, at) for one in held]
    return (
        [one.only(goes) for one, goes in zip(held, released, strict=True)],
        [one.only(~goes) for one, goes in zip(held, released, strict=True)],
    )


def _requested(one: Ended, passed_at: datetime | None, at: datetime) -> Bools:
    return forget_limit.requested(one.rows, passed_at, at)


@dataclass(slots=True)
class OverCapacity:
    """The facts over a namespace's capacity, least valuable first, and those of them that are gone."""

    ids: list[UUID]
    may: int
    gone: set[UUID] = field(default_factory=set)

    def keeps(self, ids: Sequence[UUID]) -> Bools:
        """Return which facts are not gone."""
        return np.array([id_ not in self.gone for id_ in ids], dtype=np.bool_)

    def next(self, over: set[UUID], live: int, left: int | None, counted: int) -> list[UUID]:
        """Return the facts that go on a day with `live` facts, if the forget limit leaves `left` less those counted."""
        more = max(live - self.may, 0) if self.ids else 0
        going = more if left is None else min(more, max(left - counted, 0))
        chosen = [id_ for id_ in self.ids if id_ not in self.gone and id_ not in over][:going]
        self.gone |= {*chosen, *over}
        return chosen


def _over_capacity(db: Connection, url: str, tenant: Namespace, now: datetime) -> OverCapacity:
    left, may = capacity.allowed(db, url, tenant.id, now).get(tenant.id, (0, 0))
    return OverCapacity(capacity.least(db, tenant.id, left - may, now) if left > may else [], may)


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


def _count(day: Day, going: Sequence[Ended], staying: Sequence[Ended], shown: int) -> None:
    """Add ended facts to a day: some end, the others are held and may change."""
    for one in going:
        for number, name in enumerate(REASONS):
            ids = one.rows.only(one.reason == number).ids
            day.counts[name] += len(ids)
            day.add_examples(name, ids, shown)
    for one in staying:
        day.held += len(one.rows)
        day.add_examples("held", one.rows.ids, shown)
        for change, which in one.changes:
            day.counts[change] += int(which.sum())


OPERATORS = ("cold_threshold", "forget_limit", "forget_limit_week")
"""Settings of the operator, which namespaces cannot override."""


def with_settings(context: Context, own: Document, given: Sequence[str]) -> tuple[Context, Document]:
    """Return a context and namespace settings with each `PATH=VALUE` applied, in the format of `ebb settings --set`.

    Raises:
        InvalidInputError: a setting is unknown, or its value is not allowed.
    """
    values = dict(_assignment(one) for one in given)
    operators = {name: value for name, value in values.items() if name in OPERATORS}
    document = {_whole_path(name): value for name, value in values.items() if name not in OPERATORS}
    try:
        settings = Settings(**(context.settings.model_dump() | operators))
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInputError(f"set: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    try:
        return Context(settings), changed(own, document, None)
    except InvalidInputError as fault:
        raise InvalidInputError(f"set: {fault} A forecast also takes {', '.join(OPERATORS)}.") from None


def _whole_path(path: str) -> str:
    """Return the full path of a setting; `hygiene.` may be omitted."""
    return f"hygiene.{path}" if path.split(".", maxsplit=1)[0] in (*SECTIONS, "schedule") else path


def _assignment(given: str) -> tuple[str, Any]:
    path, sign, value = given.partition("=")
    if not sign or not path.strip():
        raise InvalidInputError(f"set: {given!r} is no PATH=VALUE.")
    try:
        return path.strip(), json.loads(value)
    except ValueError:
        return path.strip(), value
