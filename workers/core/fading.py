"""The decayed state of facts at an instant, and when each next changes without access.

Each threshold is crossed at one known age, so the state follows from comparing a fact's age with those ages. The same
ages give the next change, so a pass only needs to visit facts that are due.
"""

from collections.abc import Iterator, Sequence
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
from workers.core.fidelity import FINGERPRINT, FULL, PENDING, ladder
from workers.core.lifetime import expiry
from workers.core.tiers import Curve, age_at_retention, curve, strength, tier

GUARD = 1e-3
"""Seconds between a crossing and its due time, so that float rounding cannot make it due early."""

SAME_INSTANT = 1e-3
"""Tolerance in seconds for equal instants, as PostgreSQL rounds to microseconds."""

REASONS = ("expired", "faded", "culled", "aged")
"""Why a fact ends without a request: its lifetime expired, soft decay exhausted its confidence, it was not confirmed
for long, or it is an old episode."""

OF_LIFETIME = 2
"""The first so many reasons follow from the fact's lifetime alone; such endings are expected."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """State of n facts at their last access, one array each; times are epoch seconds, infinity is never.

    A fact without a pin has `pinned_until` minus infinity. Fidelity, halvings and staleness are those of the last pass.
    `encoded_at`, `outrun_at` and `silent_since` matter for episodes only.
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

    @property
    def reduced(self) -> Bools:
        """Return which facts keep less than their full vector; those that still wait for it do not."""
        return self.fidelity > FULL


@dataclass(frozen=True, slots=True)
class FadingRules:
    """Decay settings: the widest pooling bucket for all facts, the rest for all or for each of n facts.

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
    """Decayed state of n facts: `Tier` codes, fidelity, halvings, staleness, end and its reason, and next change.

    `lifetime_ends_at` is when they expire or soft decay removes them, regardless of other reasons.
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
        """Return the state of the facts selected by a mask or by indexes."""
        return Faded(**{field.name: getattr(self, field.name)[which] for field in fields(self)})

    def replaced(self, which: Bools, other: "Faded") -> "Faded":
        """Return the state in which the facts selected by a mask are as in `other`."""
        both = ((field.name, getattr(other, field.name), getattr(self, field.name)) for field in fields(self))
        return Faded(**{name: np.where(which, one, own) for name, one, own in both})


def select(facts: Anchors, which: Bools | Ints) -> Anchors:
    """Return the anchors of the facts selected by a mask or by indexes."""
    return Anchors(**{field.name: getattr(facts, field.name)[which] for field in fields(facts)})


def fade(facts: Anchors, now: Each, rules: FadingRules) -> Faded:
    """Return the state of facts at `now` (epoch seconds), or each at its own instant.

    Fidelity that was already coarser stays, since only an access restores it.
    """
    facts = with_pins(facts)
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


def have_ended(faded: Faded, now: float) -> Bools:
    """Return which facts have ended by `now`; a lifetime includes the instant at which it expires."""
    return (faded.ends_at < now) | ((faded.ends_at == now) & (faded.end_reason != REASONS.index("expired")))


def as_written(facts: Anchors, now: Each, rules: FadingRules) -> Faded:
    """Return the state of facts as just written, due at once where a pass has work to do on them."""
    faded = fade(facts, now, rules)
    behind = (faded.fidelity > facts.fidelity) | (faded.halvings > facts.halvings) | (faded.stale & ~facts.stale)
    due_at = np.where(behind, np.minimum(now, faded.due_at), faded.due_at)
    stale = faded.stale & facts.stale
    return replace(faded, fidelity=facts.fidelity, halvings=facts.halvings, stale=stale, due_at=due_at)


def with_pins(facts: Anchors) -> Anchors:
    """Return facts with pins applied: a pin counts as use until it ends, and permanence is a pin without end.

    After the pin, a fact fades from its strength as if it had last been seen and confirmed when the pin ended. The
    function is idempotent.
    """
    if not (facts.permanent.any() or np.any(facts.pinned_until > -np.inf)):
        return facts
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


def expiries(decay_classes: Sequence[str | None], confirmed_at: Floats) -> Floats:
    """Return when facts of these classes expire; an empty name is a fact without one."""
    named = zip(decay_classes, confirmed_at.tolist(), strict=True)
    return np.array([expiry(name or None, at) for name, at in named], dtype=np.float64)


def softens_until(branch: Ints, expires_at: Floats) -> Floats:
    """Return the expiries before which soft decay halves confidence; infinite for documents, which it leaves alone."""
    return np.where(branch == Branch.CHUNK, np.inf, expires_at)


def renewed(facts: Anchors, decay_classes: Sequence[str | None], at: Floats) -> Floats:
    """Return when facts expire if their lifetimes start again at `at`; an item has its own, others that of a class."""
    return np.where(facts.branch == Branch.CHUNK, at + lifetimes(facts), expiries(decay_classes, at))


def lifetimes(facts: Anchors) -> Floats:
    """Return how many seconds each fact lives from its confirmation, or from the end of its pin."""
    return facts.expires_at - with_pins(facts).confirmed_at


def pin(facts: Anchors, lifetimes: Floats, until: float) -> Anchors:
    """Return facts pinned until an instant (epoch seconds), when their lifetimes (seconds) start again."""
    return replace(
        facts,
        pinned_until=np.full_like(facts.pinned_until, until),
        halvings=np.zeros_like(facts.halvings),
        expires_at=np.maximum(facts.confirmed_at, until) + lifetimes,
    )


def ends(facts: Anchors, rules: FadingRules) -> tuple[Floats, Ints]:
    """Return when each fact ends without a request (epoch seconds) and the index into `REASONS`.

    No fact ends before its pin; permanent ones never end.
    """
    instants = _end_instants(with_pins(facts), rules)
    return instants.min(axis=0), instants.argmin(axis=0)


def is_over(ends_at: Floats, held: Bools, instant: float) -> Bools:
    """Return which facts have ended by an instant (epoch seconds), except those that a pass held back.

    Readers use the SQL function `is_over` with the same result.
    """
    return (ends_at <= instant) & ~held


def _end_instants(facts: Anchors, rules: FadingRules) -> Floats:
    """Return the (4, n) instants at which sustained facts would end for each of `REASONS` alone; infinite if never.

    A fact that falls below the culling floor only because of its halvings counts as removed by soft decay. Where
    confidence never fades, one that started below a tenth lives until it expires. Only semantic facts are culled, and
    only episodes age out.
    """
    confidence, confirmed_at, expires_at = facts.confidence, facts.confirmed_at, facts.expires_at
    never = np.full_like(expires_at, np.inf)
    floor = np.where(facts.branch == Branch.SEMANTIC, rules.cull_floor, 0.0)
    culled = culled_at(confidence, confirmed_at, never, rules.half_life, floor)
    faded = aged = never
    if np.isfinite(expires_at).any():
        removed = removed_by_soft_decay_at(confidence, confirmed_at, softens_until(facts.branch, expires_at))
        removed = np.where(np.isinf(rules.half_life) & (confidence < SOFT_DECAY_FLOOR), np.inf, removed)
        halved = culled_at(confidence, confirmed_at, expires_at, rules.half_life, floor)
        faded = np.minimum(removed, np.where(halved < culled, halved, np.inf))
    if (ages := facts.branch == Branch.PERSISTENT).any():
        aged = aged_out_at(facts.encoded_at, facts.outrun_at, rules.persistent_days, rules.both_limits)
        aged = np.where(ages, aged, np.inf)
    instants = np.maximum(np.array([expires_at, faded, culled, aged]), facts.pinned_until)
    return np.where(facts.permanent, np.inf, instants)


def newly_stale(facts: Anchors, faded: Faded) -> Bools:
    """Return which permanent episodes became stale since the last pass."""
    return faded.stale & ~facts.stale


def _staleness(facts: Anchors, now: Each, rules: FadingRules) -> tuple[Bools, Floats]:
    """Return which episodes are stale, and when the others will be (infinite if never)."""
    begins = np.where(facts.branch == Branch.PERMANENT, stale_at(facts.silent_since, rules.stale_days), np.inf)
    stale = begins <= now
    return stale, np.where(stale, np.inf, begins)


def _halvings(facts: Anchors, now: Each) -> tuple[Ints, Floats]:
    """Return the number of halvings by soft decay, and the time of the next one (infinite if none)."""
    confidence, confirmed_at = facts.confidence, facts.confirmed_at
    expires_at = softens_until(facts.branch, facts.expires_at)
    due = soft_decay_halvings(confirmed_at, expires_at, np.minimum(now, expires_at - GUARD))
    halvings = np.maximum(facts.halvings, halvings_applied(confidence, due))
    next_halving = next_halving_at(confidence, confirmed_at, expires_at, halvings)
    return np.where(facts.permanent, 0, halvings), np.where(facts.permanent, np.inf, next_halving)


def _fidelity(facts: Anchors, bends: Curve, age: Floats, rules: FadingRules) -> tuple[Ints, Floats]:
    """Return the fidelity at `age`, and the age at which it next falls (infinite if never)."""
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
    """Yield (age in days, fidelity from then on): hot facts are never pooled, only cold ones lose the vector."""
    for below, bucket in ladder(rules.widest_bucket):
        yield np.maximum(age_at_retention(bends, below), bends.hot_until), bucket
    yield np.maximum(age_at_retention(bends, rules.cold_threshold), bends.cold_from), FINGERPRINT


def _next_tier(bends: Curve, age: Floats) -> Floats:
    """Return the age at which the tier next changes; infinite for cold facts."""
    later = np.where(age < bends.cold_from, bends.cold_from, np.inf)
    return np.where(age < bends.hot_until, bends.hot_until, later)
