"""The forgetting curve of one fact, past and future, computed in closed form."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import confidence, tiers
from workers.core.arrays import Floats
from workers.core.confidence import DAY
from workers.core.decay_intervals import MOST, DecayInterval
from workers.core.fading import REASONS, Anchors, FadingRules, ends, fade, with_pins
from workers.core.fidelity import FINGERPRINT, FULL, PENDING
from workers.core.tiers import Tier
from workers.errors import NotFoundError
from workers.memory.namespace_settings import rules_for
from workers.storage import activity, namespaces
from workers.storage.connection import transaction

INTERVAL_POINTS, FEWEST = 240, 6
"""Number of points of all past decay intervals together, and the minimum of each."""

BEFORE = 0.5
"""Seconds between the last point of an interval and the use that ends it, so that each instant has one value."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A use, with the salience just before and just after it."""

    at: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Past:
    """Salience at instants (epoch seconds), the uses that raised it, and (tier, begin, end)."""

    at: Floats
    salience: Floats
    hits: list[Hit]
    tiers: list[tuple[str, float, float]]


def past(intervals: Sequence[DecayInterval], since: float, strength: float) -> Past:
    """Return the curve over past intervals, oldest first, until the last use at `since`, which left `strength`."""
    begins = [interval.begins for interval in intervals]
    each = list(zip(intervals, [*begins[1:], since], strict=False))
    after = [*(interval.strength for interval in intervals[1:]), strength]
    at = [_interval_instants(interval, over, since - begins[0]) for interval, over in each]
    nothing = np.empty(0)
    return Past(
        np.concatenate([nothing, *at]),
        np.concatenate(
            [nothing, *(_interval_salience(interval, when) for interval, when in zip(intervals, at, strict=True))]
        ),
        [
            Hit(over, _interval_salience_at(interval, over), high)
            for (interval, over), high in zip(each, after, strict=False)
        ],
        merged_bands([band for interval, over in each for band in _interval_tiers(interval, over)]),
    )


def merged_bands(bands: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Return the bands with adjacent ones of the same tier merged."""
    whole: list[tuple[str, float, float]] = []
    for name, begins, over in bands:
        if whole and whole[-1][0] == name and whole[-1][2] == begins:
            begins = whole.pop()[1]  # noqa: PLW2901  merged with the previous band
        whole.append((name, begins, over))
    return whole


def _interval_instants(interval: DecayInterval, over: float, whole: float) -> Floats:
    """Return the points of an interval: evenly spaced, and where the rate changes; none if it is too short."""
    last = over - BEFORE
    if last <= interval.begins:
        return np.empty(0)
    points = max(FEWEST, round(INTERVAL_POINTS * (over - interval.begins) / whole))
    marks = np.array([interval.fades_from, *_tier_changes(interval)])
    inside = marks[(marks > interval.begins) & (marks < last)]
    return np.unique(np.concatenate([np.linspace(interval.begins, last, points), inside]))


def _interval_salience(interval: DecayInterval, at: Floats) -> Floats:
    salience: Floats = interval.strength * tiers.retention(_interval_curve(interval), (at - interval.fades_from) / DAY)
    return salience


def _interval_salience_at(interval: DecayInterval, at: float) -> float:
    return float(_interval_salience(interval, np.array([at]))[0])


def _interval_tiers(interval: DecayInterval, over: float) -> Iterator[tuple[str, float, float]]:
    return _tiers(interval.begins, *_tier_changes(interval), over)


def _tier_changes(interval: DecayInterval) -> tuple[float, float]:
    return _changes_of_tier(_interval_curve(interval), interval.fades_from, interval.begins)


def _changes_of_tier(bends: tiers.Curve, seen: float, begins: float) -> tuple[float, float]:
    """Return when a fact leaves the hot tier, at once if it is not in it, and when it enters the cold tier."""
    hot_days, cold_days = float(bends.hot_until[0]), float(bends.cold_from[0])
    return seen + hot_days * DAY if hot_days else begins, seen + cold_days * DAY


def _tiers(since: float, hot_until: float, cold_from: float, until: float) -> Iterator[tuple[str, float, float]]:
    """Yield (tier, begin, end) within a period."""
    breaks = [since, hot_until, cold_from, until]
    for tier in Tier:
        begins, over = max(breaks[tier], since), min(breaks[tier + 1], until)
        if over > begins:
            yield tier.name.lower(), begins, over


def _interval_curve(interval: DecayInterval) -> tiers.Curve:
    return tiers.curve(np.array([interval.strength]), np.array([interval.coactivations]))


POINTS = 240
SHORTEST, LONGEST = 7 * DAY, 1_096 * DAY
"""Bounds of a curve's length beyond the present, in seconds."""

FAINT = 0.02
"""Retention at which a curve that does not end is cut off."""

MOST_CHANGES = 64
"""Safety limit of the loop: a fact changes a dozen times."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a fact's decay state, at an instant in epoch seconds."""

    at: float
    what: str


def curve(context: Context, namespace: str, id_: UUID, now: datetime) -> dict[str, Any]:
    """Return the forgetting curve of a fact: its past, and its future without further use.

    It begins with the oldest stored interval; `hits` are the uses since then, and `since` is the last one. Confidence
    is None before its last confirmation. All instants are epoch seconds; `ends_at` is None for a fact that never ends.

    Raises:
        NotFoundError: the namespace has no such fact, or it was purged.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.id_of(db, namespace)
        rows = activity.read(db, tenant, [id_])
        if not len(rows):
            raise NotFoundError(f"id: no fact {id_} is in namespace {namespace!r}: it never was, or it was purged.")
        rules = rules_for(context, db, rows.namespaces)
        intervals = activity.decay_intervals_of(db, tenant, id_)
    facts, instant = rows.anchors, now.timestamp()
    ends_at, reason = (column[0] for column in ends(facts, rules))
    since = float(facts.last_seen_at[0])
    until = _horizon(facts, float(ends_at), instant)
    before = past(intervals, since, float(_strength(facts)[0]))
    after = _instants(facts, since, until, instant)
    at = np.concatenate([before.at, after])
    changes = _changes_of_tier(_retention_curve(facts), _seen_at(facts), since)
    bands = merged_bands([*before.tiers, *_tiers(since, *changes, until)])
    return {
        "now": instant,
        "from": float(at[0]),
        "since": since,
        "until": until,
        "at": at.tolist(),
        "salience": np.concatenate([before.salience, _salience(facts, after)]).tolist(),
        "confidence": _since_confirmed(facts, at, _confidence(facts, at, rules)),
        "hits": [asdict(hit) for hit in before.hits],
        "whole": len(intervals) < MOST,
        "tiers": [{"tier": tier, "from": begins, "until": over} for tier, begins, over in bands],
        "changes": [
            {"at": one.at, "what": one.what, "past": one.at <= instant} for one in _changes(facts, since, until, rules)
        ],
        "ends_at": float(ends_at) if np.isfinite(ends_at) else None,
        "ends_for": REASONS[int(reason)] if np.isfinite(ends_at) else None,
        "strength": float(_strength(facts)[0]),
        "pinned": bool(facts.pinned_until[0] > instant),
    }


def _strength(facts: Anchors) -> Floats:
    return tiers.strength(facts.base, facts.coactivations)


def _retention_curve(facts: Anchors) -> tiers.Curve:
    return tiers.curve(_strength(facts), facts.coactivations)


def _seen_at(facts: Anchors) -> float:
    """Return when a fact's decay starts: its last use, or the end of its pin."""
    return float(with_pins(facts).last_seen_at[0])


def _horizon(facts: Anchors, ends_at: float, now: float) -> float:
    """Return the end of the drawn curve: a little past the fact's end, or where retention falls to `FAINT`."""
    seen = _seen_at(facts)
    faint = seen + float(tiers.age_at_retention(_retention_curve(facts), FAINT)[0]) * DAY
    over = ends_at + 0.05 * (ends_at - min(seen, now)) if np.isfinite(ends_at) else faint
    return min(max(over if np.isfinite(over) else now, now + SHORTEST), now + LONGEST)


def _instants(facts: Anchors, since: float, until: float, now: float) -> Floats:
    """Return the points of the future curve: evenly spaced, at the present, and where the rate changes."""
    bends, seen = _retention_curve(facts), _seen_at(facts)
    marks = np.array([now, seen, seen + float(bends.hot_until[0]) * DAY, seen + float(bends.cold_from[0]) * DAY])
    inside = marks[np.isfinite(marks) & (marks > since) & (marks < until)]
    return np.unique(np.concatenate([np.linspace(since, until, POINTS), inside]))


def _salience(facts: Anchors, at: Floats) -> Floats:
    """Return the salience of a fact at each instant."""
    age_days = (at - _seen_at(facts)) / DAY
    salience: Floats = _strength(facts)[0] * tiers.retention(_retention_curve(facts), age_days)
    return salience


def _confidence(facts: Anchors, at: Floats, rules: FadingRules) -> Floats:
    """Return the effective confidence of a fact at each instant, as in an export."""
    kept = with_pins(facts)
    confirmed_at = np.minimum(np.broadcast_to(kept.confirmed_at, at.shape), at)
    believed = np.broadcast_to(facts.confidence, at.shape)
    expires_at = np.broadcast_to(np.where(kept.permanent, np.inf, facts.expires_at), at.shape)
    due = confidence.soft_decay_halvings(np.broadcast_to(kept.confirmed_at, at.shape), expires_at, at)
    halved = believed * confidence.HALF ** confidence.halvings_applied(believed, due)
    half_life = np.where(facts.branch[0] == 0, rules.half_life, np.inf)
    return confidence.effective_confidence(halved, (at - confirmed_at) / DAY, half_life)


def _since_confirmed(facts: Anchors, at: Floats, believed: Floats) -> list[float | None]:
    """Return the confidence since the last confirmation, and None before it, where it is not known."""
    known = at >= float(facts.confirmed_at[0]) - 1
    return [value if is_known else None for value, is_known in zip(believed.tolist(), known.tolist(), strict=True)]


def _changes(facts: Anchors, since: float, until: float, rules: FadingRules) -> Iterator[Change]:
    """Yield the changes that passes would make after the last use, at which the fact had its full vector."""
    vector = np.where(facts.fidelity == PENDING, PENDING, FULL)
    known = replace(facts, fidelity=vector, halvings=np.zeros_like(facts.halvings), stale=np.zeros_like(facts.stale))
    before, at = fade(known, since, rules), since
    for _ in range(MOST_CHANGES):
        at = float(before.due_at[0])
        if not at <= until:
            return
        known = replace(known, fidelity=before.fidelity, halvings=before.halvings, stale=before.stale)
        after = fade(known, at, rules)
        if after.ends_at[0] <= at:
            yield Change(at, REASONS[int(after.end_reason[0])])
            return
        if after.tier[0] != before.tier[0]:
            yield Change(at, Tier(int(after.tier[0])).name.lower())
        if after.fidelity[0] != before.fidelity[0]:
            code = int(after.fidelity[0])
            yield Change(at, "fingerprinted" if code == FINGERPRINT else f"pooled to 1/{code}")
        if after.halvings[0] != before.halvings[0]:
            yield Change(at, "confidence halved")
        if after.stale[0] and not before.stale[0]:
            yield Change(at, "stale")
        before = after
