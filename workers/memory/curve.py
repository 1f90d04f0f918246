"""The forgetting curve of one fact, past and future, computed in closed form."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
from ebb.contract.reports import ShowCurve

from workers.context import Context
from workers.core import confidence, tiers
from workers.core.arrays import Floats
from workers.core.confidence import DAY
from workers.core.decay_intervals import MOST, DecayInterval
from workers.core.fading import REASONS, Anchors, FadingRules, ends, fade, softens_until, with_pins
from workers.core.fidelity import FINGERPRINT, FULL, PENDING
from workers.core.tiers import Tier
from workers.errors import no_fact
from workers.memory.namespace_settings import rules_for
from workers.memory.unpack import unpack
from workers.storage import activity

INTERVAL_POINTS, FEWEST = 240, 6
"""Number of points of all past decay intervals together, and the minimum of each."""

BEFORE = 0.5
"""Seconds between the last point of an interval and the use that ends it, so that each instant has one value."""

POINTS = 240
SHORTEST, LONGEST = 7 * DAY, 1_096 * DAY
"""Bounds of a curve's length beyond the present, in seconds."""

FAINT = 0.02
"""Retention at which a curve that does not end is cut off."""

MOST_CHANGES = 64
"""Safety limit of the loop: a fact changes a dozen times."""


def curve(context: Context, asked: ShowCurve, now: datetime) -> dict[str, Any]:
    """Return the forgetting curve of a fact: its past, and its future without further use.

    It begins with the oldest stored interval; `hits` are the uses since then, and `since` is the last one. Confidence
    is None before its last confirmation. All instants are epoch seconds; `ends_at` is None for a fact that never ends.

    Raises:
        NotFoundError: the namespace has no such fact, or it was purged.
    """
    with context.namespace(asked.namespace) as (db, tenant):
        unpack(context, db, tenant, [asked.id], waits=False)
        rows = activity.read(db, tenant, [asked.id])
        if not len(rows):
            raise no_fact(asked.id, asked.namespace)
        rules = rules_for(context, db, rows.namespaces)
        found = activity.decay_intervals_of(db, tenant, asked.id)
    facts, instant, own = rows.anchors, now.timestamp(), _open_interval(rows.anchors)
    intervals = [one for one in found if one.begins <= own.begins]  # an archive may have others, with endless points
    ends_at, reason = (column[0] for column in ends(facts, rules))
    until = _horizon(own, float(ends_at), max(instant, own.begins))
    each = [*intervals, own]
    over = [*(one.begins for one in each[1:]), until]
    closed = zip(intervals, over, strict=False)
    points = [_past_instants(one, end, own.begins - each[0].begins) for one, end in closed]
    points.append(_instants(own, until, POINTS, instant))
    at = np.concatenate(points)
    bands = _merged_bands([band for one, end in zip(each, over, strict=True) for band in _tiers(one, end)])
    return {
        "now": instant,
        "from": float(at[0]),
        "since": own.begins,
        "until": until,
        "at": at.tolist(),
        "salience": np.concatenate([_salience(one, when) for one, when in zip(each, points, strict=True)]).tolist(),
        "confidence": _since_confirmed(facts, at, _confidence(facts, at, rules)),
        "hits": [_hit(before, after) for before, after in pairwise(each)],
        "whole": len(intervals) < MOST,
        "tiers": [{"tier": tier, "from": begins, "until": end} for tier, begins, end in bands],
        "changes": [
            {"at": when, "what": what, "past": when <= instant}
            for when, what in _changes(facts, own.begins, until, rules)
        ],
        "ends_at": float(ends_at) if np.isfinite(ends_at) else None,
        "ends_for": REASONS[int(reason)] if np.isfinite(ends_at) else None,
        "strength": own.strength,
        "pinned": bool(facts.pinned_until[0] > instant),
    }


def _open_interval(facts: Anchors) -> DecayInterval:
    """Return the interval since a fact's last use; it fades from then, or from the end of its pin."""
    strength = float(tiers.strength(facts.base, facts.coactivations)[0])
    fades_from = float(with_pins(facts).last_seen_at[0])
    return DecayInterval(float(facts.last_seen_at[0]), fades_from, strength, int(facts.coactivations[0]))


def _hit(before: DecayInterval, after: DecayInterval) -> dict[str, float]:
    """Return a use between two intervals, with the salience just before and just after it."""
    return {
        "at": after.begins,
        "before": float(_salience(before, np.array([after.begins]))[0]),
        "after": after.strength,
    }


def _horizon(own: DecayInterval, ends_at: float, now: float) -> float:
    """Return the end of the drawn curve: a little past the fact's end, or where retention falls to `FAINT`."""
    faint = own.fades_from + float(tiers.age_at_retention(_curve(own), FAINT)[0]) * DAY
    over = ends_at + 0.05 * (ends_at - min(own.fades_from, now)) if np.isfinite(ends_at) else faint
    return min(max(over if np.isfinite(over) else now, now + SHORTEST), now + LONGEST)


def _past_instants(interval: DecayInterval, over: float, whole: float) -> Floats:
    """Return the points of a past interval, as many as its share of the whole past; none if it is too short."""
    last = over - BEFORE
    if last <= interval.begins:
        return np.empty(0)
    return _instants(interval, last, max(FEWEST, round(INTERVAL_POINTS * (over - interval.begins) / whole)))


def _instants(interval: DecayInterval, until: float, count: int, *more: float) -> Floats:
    """Return points of the curve: evenly spaced, where the rate changes, and `more` within the interval."""
    marks = np.array([interval.fades_from, *_changes_of_tier(interval), *more])
    inside = marks[(marks > interval.begins) & (marks < until)]
    return np.unique(np.concatenate([np.linspace(interval.begins, until, count), inside]))


def _salience(interval: DecayInterval, at: Floats) -> Floats:
    return interval.strength * tiers.retention(_curve(interval), (at - interval.fades_from) / DAY)


def _tiers(interval: DecayInterval, until: float) -> Iterator[tuple[str, float, float]]:
    """Yield (tier, begin, end) within an interval."""
    breaks = [interval.begins, *_changes_of_tier(interval), until]
    for tier in Tier:
        begins, over = max(breaks[tier], interval.begins), min(breaks[tier + 1], until)
        if over > begins:
            yield tier.name.lower(), begins, over


def _changes_of_tier(interval: DecayInterval) -> tuple[float, float]:
    """Return when a fact leaves the hot tier, at once if it is not in it, and when it enters the cold tier."""
    bends = _curve(interval)
    hot_days, cold_days = float(bends.hot_until[0]), float(bends.cold_from[0])
    hot_until = interval.fades_from + hot_days * DAY if hot_days else interval.begins
    return hot_until, interval.fades_from + cold_days * DAY


def _curve(interval: DecayInterval) -> tiers.Curve:
    return tiers.curve(np.array([interval.strength]), np.array([interval.coactivations]))


def _merged_bands(bands: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Return the bands with adjacent ones of the same tier merged."""
    whole: list[tuple[str, float, float]] = []
    for name, begins, over in bands:
        if whole and whole[-1][0] == name and whole[-1][2] == begins:
            begins = whole.pop()[1]  # noqa: PLW2901  merged with the previous band
        whole.append((name, begins, over))
    return whole


def _confidence(facts: Anchors, at: Floats, rules: FadingRules) -> Floats:
    """Return the effective confidence of a fact at each instant, as in an export."""
    kept = with_pins(facts)
    since, believed = np.broadcast_to(kept.confirmed_at, at.shape), np.broadcast_to(facts.confidence, at.shape)
    softens = np.where(kept.permanent, np.inf, softens_until(facts.branch, facts.expires_at))
    expires_at = np.broadcast_to(softens, at.shape)
    softened = confidence.softened(believed, since, expires_at, at)
    half_life = np.where(facts.branch[0] == 0, rules.half_life, np.inf)
    pinned_since = np.maximum(since, np.minimum(facts.pinned_until, at))  # a pin without end moves no anchor
    return confidence.effective_confidence(softened, (at - np.minimum(pinned_since, at)) / DAY, half_life)


def _since_confirmed(facts: Anchors, at: Floats, believed: Floats) -> list[float | None]:
    """Return the confidence since the last confirmation, and None before it, where it is not known."""
    known = at >= float(facts.confirmed_at[0]) - 1
    return [value if is_known else None for value, is_known in zip(believed.tolist(), known.tolist(), strict=True)]


def _changes(facts: Anchors, since: float, until: float, rules: FadingRules) -> Iterator[tuple[float, str]]:
    """Yield (instant, change) of passes after the last use, at which the fact had its full vector."""
    vector = np.where(facts.fidelity == PENDING, PENDING, FULL)
    known = replace(facts, fidelity=vector, halvings=np.zeros_like(facts.halvings), stale=np.zeros_like(facts.stale))
    before, at = fade(known, since, rules), since
    for _ in range(MOST_CHANGES):
        at = max(float(before.due_at[0]), since)  # an archive may have an episode that ended before all times
        if not at <= until:
            return
        known = replace(known, fidelity=before.fidelity, halvings=before.halvings, stale=before.stale)
        after = fade(known, at, rules)
        if after.ends_at[0] <= at:
            yield (at, REASONS[int(after.end_reason[0])])
            return
        if after.tier[0] != before.tier[0]:
            yield (at, Tier(int(after.tier[0])).name.lower())
        if after.fidelity[0] != before.fidelity[0]:
            code = int(after.fidelity[0])
            yield (at, "fingerprinted" if code == FINGERPRINT else f"pooled to 1/{code}")
        if after.halvings[0] != before.halvings[0]:
            yield (at, "confidence halved")
        if after.stale[0] and not before.stale[0]:
            yield (at, "stale")
        before = after
