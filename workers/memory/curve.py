"""The curve of one fact: how it faded and was used, and how it will fade, computed from its closed form."""

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
from workers.core.fading import REASONS, Anchors, FadingRules, ends, fade, sustained
from workers.core.fidelity import FINGERPRINT, FULL, PENDING
from workers.core.tiers import Tier
from workers.errors import NotFoundError
from workers.memory.namespace_settings import rules_for
from workers.storage import activity, namespaces
from workers.storage.connection import transaction

INTERVAL_POINTS, FEWEST = 240, 6
"""At how many instants all decay intervals together are shown, and each of them at least."""

BEFORE = 0.5
"""Seconds from the end of a spell to the use that ends it: a curve has one height at each instant."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A use: when, how well the fact was remembered just before, and how well from then on."""

    at: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Past:
    """Salience at instants (epoch seconds), the uses that raised it, and when each tier began and was over."""

    at: Floats
    salience: Floats
    hits: list[Hit]
    tiers: list[tuple[str, float, float]]


def past(intervals: Sequence[DecayInterval], since: float, strength: float) -> Past:
    """Return how a fact faded in its spells, oldest first, until its last use, which left it at `strength`."""
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
        joined([band for interval, over in each for band in _interval_tiers(interval, over)]),
    )


def joined(bands: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Return tiers one after the other; where the same one goes on it is shown once."""
    whole: list[tuple[str, float, float]] = []
    for name, begins, over in bands:
        if whole and whole[-1][0] == name and whole[-1][2] == begins:
            begins = whole.pop()[1]  # noqa: PLW2901  it goes on
        whole.append((name, begins, over))
    return whole


def _interval_instants(interval: DecayInterval, over: float, whole: float) -> Floats:
    """Return the instants of an interval: evenly spaced, and where the rate changes; none if it was over at once."""
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
    breaks = [interval.begins, *_tier_changes(interval), over]
    for tier in Tier:
        begins, until = max(breaks[tier], interval.begins), min(breaks[tier + 1], over)
        if until > begins:
            yield tier.name.lower(), begins, until


def _tier_changes(interval: DecayInterval) -> tuple[float, float]:
    """Return when a fact would stop being hot, and begin to be cold."""
    bends, seen = _interval_curve(interval), interval.fades_from
    hot_days, cold_days = float(bends.hot_until[0]), float(bends.cold_from[0])
    return seen + hot_days * DAY if hot_days else interval.begins, seen + cold_days * DAY


def _interval_curve(interval: DecayInterval) -> tiers.Curve:
    return tiers.curve(np.array([interval.strength]), np.array([interval.coactivations]))


POINTS = 240
SHORTEST, LONGEST = 7 * DAY, 1_096 * DAY
"""How far a curve is drawn beyond the present, in seconds."""

FAINT = 0.02
"""The share of strength at which there is nothing left to draw."""

MOST_CHANGES = 64
"""A fact changes a dozen times; this only ends what would not end."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a fact by itself, and when, in epoch seconds."""

    at: float
    what: str


def curve(context: Context, namespace: str, id_: UUID, now: datetime) -> dict[str, Any]:
    """Return the forgetting curve of a fact: its past, and its future if it is not used from now on.

    It begins with the oldest interval that is kept, `hits` are the uses since then, and `since` is the last of them.
    Confidence is known from its last confirmation on; before that it is none. All instants are epoch seconds; a fact
    that does not end has none.

    Raises:
        NotFoundError: the namespace has no such fact, or has none any more.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        rows = None if tenant is None else activity.read(db, tenant.id, [id_])
        if tenant is None or rows is None or not len(rows):
            raise NotFoundError(f"id: no fact {id_} is in namespace {namespace!r}: it never was, or it was purged.")
        rules = rules_for(context, db, rows.namespaces)
        intervals = activity.decay_intervals_of(db, tenant.id, id_)
    facts, instant = rows.anchors, now.timestamp()
    ends_at, reason = (column[0] for column in ends(facts, rules))
    since = float(facts.last_seen_at[0])
    until = _horizon(facts, float(ends_at), instant)
    before = past(intervals, since, float(_strength(facts)[0]))
    after = _instants(facts, since, until, instant)
    at = np.concatenate([before.at, after])
    bands = joined([*before.tiers, *_tiers(facts, since, until)])
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
    """Return from when on a fact fades: its last use, or the end of its pin, if that has one."""
    return float(sustained(facts).last_seen_at[0])


def _horizon(facts: Anchors, ends_at: float, now: float) -> float:
    """Return until when there is something to draw: a little past the end, or until next to nothing is left."""
    seen = _seen_at(facts)
    faint = seen + float(tiers.age_at_retention(_retention_curve(facts), FAINT)[0]) * DAY
    over = ends_at + 0.05 * (ends_at - min(seen, now)) if np.isfinite(ends_at) else faint
    return min(max(over if np.isfinite(over) else now, now + SHORTEST), now + LONGEST)


def _instants(facts: Anchors, since: float, until: float, now: float) -> Floats:
    """Return when to look: evenly, and at the present and where the rate changes, so that no bend is rounded off."""
    bends, seen = _retention_curve(facts), _seen_at(facts)
    marks = np.array([now, seen, seen + float(bends.hot_until[0]) * DAY, seen + float(bends.cold_from[0]) * DAY])
    inside = marks[np.isfinite(marks) & (marks > since) & (marks < until)]
    return np.unique(np.concatenate([np.linspace(since, until, POINTS), inside]))


def _salience(facts: Anchors, at: Floats) -> Floats:
    """Return how well a fact is remembered at each instant."""
    age_days = (at - _seen_at(facts)) / DAY
    salience: Floats = _strength(facts)[0] * tiers.retention(_retention_curve(facts), age_days)
    return salience


def _confidence(facts: Anchors, at: Floats, rules: FadingRules) -> Floats:
    """Return the effective confidence of a fact at each instant, as in an export."""
    kept = sustained(facts)
    confirmed_at = np.minimum(np.broadcast_to(kept.confirmed_at, at.shape), at)
    believed = np.broadcast_to(facts.confidence, at.shape)
    expires_at = np.broadcast_to(np.where(kept.permanent, np.inf, facts.expires_at), at.shape)
    due = confidence.soft_decay_halvings(np.broadcast_to(kept.confirmed_at, at.shape), expires_at, at)
    halved = believed * confidence.HALF ** confidence.halvings_applied(believed, due)
    half_life = np.where(facts.branch[0] == 0, rules.half_life, np.inf)
    return confidence.effective_confidence(halved, (at - confirmed_at) / DAY, half_life)


def _since_confirmed(facts: Anchors, at: Floats, believed: Floats) -> list[float | None]:
    """Return belief where it is known: what it was before a confirmation is not kept."""
    known = at >= float(facts.confirmed_at[0]) - 1
    return [value if is_known else None for value, is_known in zip(believed.tolist(), known.tolist(), strict=True)]


def _tiers(facts: Anchors, since: float, until: float) -> Iterator[tuple[str, float, float]]:
    """Yield each tier with when it begins and is over, as far as that is drawn."""
    bends, seen = _retention_curve(facts), _seen_at(facts)
    hot_days, cold_days = float(bends.hot_until[0]), float(bends.cold_from[0])
    breaks = [since, seen + hot_days * DAY if hot_days else since, seen + cold_days * DAY, until]
    for tier in Tier:
        begins, over = max(breaks[tier], since), min(breaks[tier + 1], until)
        if over > begins:
            yield tier.name.lower(), begins, over


def _changes(facts: Anchors, since: float, until: float, rules: FadingRules) -> Iterator[Change]:
    """Yield what becomes of a fact from its last use on, when it had its whole vector, as passes would make it."""
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
