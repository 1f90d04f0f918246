"""What a fact has become by an instant, and when it next changes without being touched.

Each threshold is crossed at one known age, so a fact's state is read off by comparing its age with those ages. The
same ages give the next change, which is why a pass over the facts that are due is all that decay ever needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from workers.core.arrays import Bools, Each, Floats, Ints
from workers.core.confidence import (
    DAY,
    SOFT_DECAY_FLOOR,
    culled_at,
    halvings_applied,
    next_halving_at,
    removed_by_soft_decay_at,
    soft_decay_halvings,
)
from workers.core.episodes import Branch, aged_out_at, stale_at
from workers.core.fidelity import FINGERPRINT, PENDING, ladder
from workers.core.tiers import Curve, age_at_retention, curve, strength, tier

GUARD = 1e-3
"""Seconds from a crossing to the instant called due, so that float rounding cannot call it early."""

REASONS = ("expired", "faded", "culled", "aged")
"""Why a fact ends of itself: its lifetime is over, soft decay took its confidence, it was not confirmed for long, or it
is an episode of long ago."""

OF_LIFETIME = 2
"""So many of the reasons follow from the lifetime alone that a fact was given; what ends for them is no surprise."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """What n facts were at their last access, one array each; times are epoch seconds, never is infinity.

    A fact without a pin is pinned until minus infinity. Of vectors, halvings and staleness it is what the last
    pass made, or noted, of them. When they were encoded, outrun, and last heard of, matters for episodes alone.
    """

    base: Floats
    coactivations: Ints
    last_seen_at: Floats
    confidence: Floats
    confirmed_at: Floats
    expires_at: Floats
    permanent: Bools
    fidelity: Ints
    pinned_until: Floats
    halvings: Ints
    branch: Ints
    encoded_at: Floats
    outrun_at: Floats
    silent_since: Floats
    stale: Bools


@dataclass(frozen=True, slots=True)
class FadingRules:
    """What an operator chose: how far vectors may be pooled for all facts, the rest for all or for each of n facts.

    What is switched off has infinite days, or the floor 0.
    """

    widest_bucket: int = 4
    cold_threshold: float = 0.25
    half_life: Each = 180.0
    cull_floor: Each = 0.1
    persistent_days: Each = 90.0
    both_limits: Bools | bool = False
    stale_days: Each = 180.0


@dataclass(frozen=True, slots=True)
class Faded:
    """What n facts have become: codes of `Tier`, fidelity, halvings, staleness, when they end, why, and next change.

    Their lifetimes end when they expire or soft decay removes them, whatever else may end them before.
    """

    tier: Ints
    fidelity: Ints
    halvings: Ints
    stale: Bools
    ends_at: Floats
    end_reason: Ints
    lifetime_ends_at: Floats
    due_at: Floats

    def only(self, which: Bools | Ints) -> "Faded":
        """Return the state of some facts: where a mask is true, or at these places."""
        return Faded(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


def chosen(facts: Anchors, which: Bools | Ints) -> Anchors:
    """Return the anchors of some facts: where a mask is true, or at these places."""
    return Anchors(**{field.name: getattr(facts, field.name)[which] for field in fields(facts)})


def fade(facts: Anchors, now: float, rules: FadingRules) -> Faded:
    """Return the state of facts at `now`; what was already coarser stays so, for only a hit restores it."""
    facts = sustained(facts)
    bends = curve(strength(facts.base, facts.coactivations), facts.coactivations)
    age = np.maximum(now - facts.last_seen_at, 0.0) / DAY
    fidelity, next_fidelity = _fidelity(facts, bends, age, rules)
    halvings, next_halving = _halvings(facts, now)
    stale, next_stale = _staleness(facts, now, rules)
    instants = _end_instants(facts, rules)
    next_age = np.minimum(next_fidelity, _next_tier(bends, age))
    next_change = np.minimum(facts.last_seen_at + next_age * DAY, np.minimum(next_halving, next_stale))
    return Faded(
        tier=tier(bends, age),
        fidelity=fidelity,
        halvings=halvings,
        stale=stale,
        ends_at=instants.min(axis=0),
        end_reason=instants.argmin(axis=0),
        lifetime_ends_at=instants[:OF_LIFETIME].min(axis=0),
        due_at=np.minimum(next_change, instants.min(axis=0)) + GUARD,
    )


def over(faded: Faded, now: float) -> Bools:
    """Return which facts have ended by `now`; a lifetime includes the instant at which it expires."""
    ended: Bools = (faded.ends_at < now) | ((faded.ends_at == now) & (faded.end_reason != REASONS.index("expired")))
    return ended


def written(facts: Anchors, now: float, rules: FadingRules) -> Faded:
    """Return the state of facts just written as they are, due at once where a pass has something to make of them."""
    faded = fade(facts, now, rules)
    behind = (faded.fidelity > facts.fidelity) | (faded.halvings > facts.halvings) | (faded.stale & ~facts.stale)
    due_at = np.where(behind, np.minimum(now, faded.due_at), faded.due_at)
    stale = faded.stale & facts.stale
    return replace(faded, fidelity=facts.fidelity, halvings=facts.halvings, stale=stale, due_at=due_at)


def sustained(facts: Anchors) -> Anchors:
    """Return facts as their clocks run: a pin counts as use until it ends, and permanence as a pin without end.

    While it lasts, nothing changes; after it a fact fades on from its strength as if it had been seen and confirmed
    for the last time when the pin ended. Repeating it changes nothing.
    """
    endless = np.isposinf(facts.pinned_until)
    permanent = facts.permanent | endless
    return replace(
        facts,
        last_seen_at=np.where(permanent, np.inf, np.maximum(facts.last_seen_at, facts.pinned_until)),
        confirmed_at=np.where(endless, facts.confirmed_at, np.maximum(facts.confirmed_at, facts.pinned_until)),
        encoded_at=np.where(endless, facts.encoded_at, np.maximum(facts.encoded_at, facts.pinned_until)),
        silent_since=np.maximum(facts.silent_since, facts.pinned_until),
        permanent=permanent,
    )


def lifetimes(facts: Anchors) -> Floats:
    """Return how many seconds each fact has to live from its confirmation, or from the end of its pin."""
    return facts.expires_at - sustained(facts).confirmed_at


def pin(facts: Anchors, lifetimes: Floats, until: float) -> Anchors:
    """Return facts pinned until an instant (epoch seconds), from which on their lifetimes (seconds) start again."""
    return replace(
        facts,
        pinned_until=np.full_like(facts.pinned_until, until),
        halvings=np.zeros_like(facts.halvings),
        expires_at=np.maximum(facts.confirmed_at, until) + lifetimes,
    )


def ends(facts: Anchors, rules: FadingRules) -> tuple[Floats, Ints]:
    """Return when each fact ends of itself (epoch seconds) and the index into `REASONS`.

    None ends before its pin does, and permanent ones never.
    """
    instants = _end_instants(sustained(facts), rules)
    return instants.min(axis=0), instants.argmin(axis=0)


def is_over(ends_at: Floats, held: Bools, instant: float) -> Bools:
    """Return which facts have ended by themselves by an instant (epoch seconds); what a pass held back has not.

    The function `is_over` of the schema says the same, for readers.
    """
    over: Bools = (ends_at <= instant) & ~held
    return over


def _end_instants(facts: Anchors, rules: FadingRules) -> Floats:
    """Return the (4, n) instants at which sustained facts would end for each of `REASONS` alone; permanent ones never.

    A fact that only its halvings take below the floor of culling is removed by soft decay, as it is at a tenth.
    Where confidence never fades, one that was below a tenth from the start lives until it expires.
    Confidence culls semantic facts alone, and nothing but episodes ages out.
    """
    confidence, confirmed_at, expires_at = facts.confidence, facts.confirmed_at, facts.expires_at
    never = np.full_like(expires_at, np.inf)
    removed = removed_by_soft_decay_at(confidence, confirmed_at, expires_at)
    removed = np.where(np.isinf(rules.half_life) & (confidence < SOFT_DECAY_FLOOR), np.inf, removed)
    floor = np.where(facts.branch == Branch.SEMANTIC, rules.cull_floor, 0.0)
    halved = culled_at(confidence, confirmed_at, expires_at, rules.half_life, floor)
    culled = culled_at(confidence, confirmed_at, never, rules.half_life, floor)
    faded = np.minimum(removed, np.where(halved < culled, halved, np.inf))
    aged = aged_out_at(facts.encoded_at, facts.outrun_at, rules.persistent_days, rules.both_limits)
    aged = np.where(facts.branch == Branch.PERSISTENT, aged, np.inf)
    instants = np.maximum(np.stack([expires_at, faded, culled, aged]), facts.pinned_until)
    return np.where(facts.permanent, np.inf, instants)


def _staleness(facts: Anchors, now: float, rules: FadingRules) -> tuple[Bools, Floats]:
    """Return which episodes are stale, and when the others will be (infinite if never)."""
    begins = np.where(facts.branch == Branch.PERMANENT, stale_at(facts.silent_since, rules.stale_days), np.inf)
    stale = begins <= now
    return stale, np.where(stale, np.inf, begins)


def _halvings(facts: Anchors, now: float) -> tuple[Ints, Floats]:
    """Return how often soft decay has halved the confidence, and when it next does (infinite if it does not)."""
    confidence, confirmed_at, expires_at = facts.confidence, facts.confirmed_at, facts.expires_at
    due = soft_decay_halvings(confirmed_at, expires_at, np.minimum(now, expires_at - GUARD))
    halvings = np.maximum(facts.halvings, halvings_applied(confidence, due))
    next_halving = next_halving_at(confidence, confirmed_at, expires_at, halvings)
    return np.where(facts.permanent, 0, halvings), np.where(facts.permanent, np.inf, next_halving)


def _fidelity(facts: Anchors, bends: Curve, age: Floats, rules: FadingRules) -> tuple[Ints, Floats]:
    """Return the fidelity at `age`, and the age at which it next falls (infinite if it does not)."""
    fidelity = facts.fidelity.copy()
    next_age = np.full_like(age, np.inf)
    fades = ~facts.permanent & (facts.fidelity != PENDING)
    rungs = list(_rungs(bends, rules))
    for reached_at, code in rungs:
        reached = fades & (age >= reached_at)
        fidelity = np.where(reached, np.maximum(fidelity, code), fidelity)
    for reached_at, code in rungs:
        ahead = fades & (age < reached_at) & (fidelity < code)
        next_age = np.where(ahead, np.minimum(next_age, reached_at), next_age)
    return fidelity, next_age


def _rungs(bends: Curve, rules: FadingRules) -> Iterator[tuple[Floats, int]]:
    """Yield (age in days, fidelity from then on): hot facts never shrink, only cold ones lose the vector."""
    for below, bucket in ladder(rules.widest_bucket):
        yield np.maximum(age_at_retention(bends, below), bends.hot_until), bucket
    yield np.maximum(age_at_retention(bends, rules.cold_threshold), bends.cold_from), FINGERPRINT


def _next_tier(bends: Curve, age: Floats) -> Floats:
    """Return the age at which the tier next changes; infinite for cold facts."""
    later = np.where(age < bends.cold_from, bends.cold_from, np.inf)
    return np.where(age < bends.hot_until, bends.hot_until, later)
