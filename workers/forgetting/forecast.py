"""Forecast: what the passes of the days to come will do. The curves are known, so it is computed and not guessed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core.arrays import Bools, Ints
from workers.core.fading import REASONS, Anchors, Faded, FadingRules, chosen, fade
from workers.core.fidelity import FINGERPRINT
from workers.core.tiers import Tier
from workers.forgetting.decay import forget_limit, newly_stale
from workers.forgetting.terms import hygiene, rules_of
from workers.storage import due, facts, namespaces, tallies
from workers.storage.activity import Activity
from workers.storage.connection import Connection, snapshot
from workers.storage.namespaces import Namespace

MOST_DAYS = 366
BATCH = 10_000

COOLING = tuple(tier.name.lower() for tier in Tier if tier is not Tier.HOT)
CHANGES = (*COOLING, "compressed", "fingerprinted", "stale", *REASONS)
"""What can become of a fact: a colder tier, a smaller vector, only the signature, the word that nobody has heard of it
for long, or its end for one of the reasons."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A fact that will change: into what, and how its text begins."""

    id: UUID
    change: str
    text: str


@dataclass(slots=True)
class Day:
    """What a pass at the end of one day will do, if one came each day until then.

    Of those that end, `limited` count towards the forget limit, and `held` are past it; that a lifetime ends them
    later, while they are held, is not counted again.
    """

    at: datetime
    counts: Counter[str] = field(default_factory=Counter)
    limited: int = 0
    held: int = 0
    facts: list[Foreseen] = field(default_factory=list)
    examples: list[tuple[UUID, str]] = field(default_factory=list)


def forecast(context: Context, namespace: str, days: int, now: datetime, shown: int = 3) -> list[Day]:
    """Return what becomes of a namespace day by day, if nobody recalls or tells anything meanwhile.

    It reads what is due until then, not what is stored. Of each day and change, the
    texts of `shown` facts begin it.
    """
    ahead = [Day(now + timedelta(days=number)) for number in range(1, days + 1)]
    with snapshot(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return ahead
        rules = rules_of(context, hygiene(context, tenant.settings))
        for rows, due_at in due.coming(db, tenant.id, ahead[-1].at, BATCH, every=tenant.unsettled):
            _foresee(rows, np.minimum(due_at, -np.inf if tenant.unsettled else np.inf), ahead, rules, shown)
        _hold(context, db, tenant, ahead)
        texts = facts.beginnings(db, tenant.id, [id_ for day in ahead for id_, _ in day.examples])
    for day in ahead:
        day.facts = [Foreseen(id_, change, texts[id_]) for id_, change in day.examples]
    return ahead


def _foresee(rows: Activity, due_at: np.ndarray, ahead: Sequence[Day], rules: FadingRules, shown: int) -> None:
    """Let the days pass over some facts, and add to each day what it changes."""
    tier, fidelity, halvings = rows.tier.copy(), rows.anchors.fidelity.copy(), rows.anchors.halvings.copy()
    stale = rows.anchors.stale.copy()
    for day in ahead:
        places = np.flatnonzero(due_at <= day.at.timestamp())
        instant = day.at.timestamp()
        before = replace(
            chosen(rows.anchors, places), fidelity=fidelity[places], halvings=halvings[places], stale=stale[places]
        )
        faded = fade(before, instant, rules)
        ended = faded.ends_at < instant
        day.limited += int((ended & (faded.lifetime_ends_at >= instant)).sum())
        for change, which in _changes(before, faded, ended, tier[places]):
            day.counts[change] += int(which.sum())
            room = shown - sum(known == change for _, known in day.examples)
            day.examples += [(rows.ids[i], change) for i in places[which][: max(room, 0)].tolist()]
        tier[places], fidelity[places], halvings[places] = faded.tier, faded.fidelity, faded.halvings
        stale[places] = faded.stale
        due_at[places] = np.where(ended, np.inf, faded.due_at)


def _changes(before: Anchors, faded: Faded, ended: Bools, tier: Ints) -> Iterator[tuple[str, Bools]]:
    """Yield each change with a mask of the facts that it happens to, as a pass counts them."""
    stays = ~ended
    for cooler in COOLING:
        code = Tier[cooler.upper()]
        yield cooler, stays & (faded.tier == code) & (tier != code)
    falls = stays & (faded.fidelity > before.fidelity)
    yield "compressed", falls & (faded.fidelity < FINGERPRINT)
    yield "fingerprinted", falls & (faded.fidelity == FINGERPRINT)
    yield "stale", stays & newly_stale(before, faded)
    for number, name in enumerate(REASONS):
        yield name, ended & (faded.end_reason == number)


def _hold(context: Context, db: Connection, tenant: Namespace, ahead: Sequence[Day]) -> None:
    """Count as held what is past each day's forget limit; from then on nothing more fades out of the namespace."""
    live, holding = tallies.live(db, tenant.id), tenant.held
    for day in ahead:
        granted = min(day.limited, 0 if holding else forget_limit(context, live))
        day.held, holding = day.limited - granted, holding or day.limited > granted
        live -= sum(day.counts[reason] for reason in REASONS) - day.held
