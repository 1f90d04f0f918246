"""Confidence in a fact: halves with time, and faster near the end of the fact's lifetime.

The first is the half-life of semantic facts, the second the soft decay of facts with a lifetime; both multiply.
"""

import numpy as np

from workers.core.arrays import Each, Floats, Ints

DAY = 86_400.0
SOFT_DECAY_FROM = 0.75
SOFT_DECAY_STEP = 3_600.0
SOFT_DECAY_FLOOR = 0.1
HALF = 0.5
REINFORCEMENT = 0.05
MOMENT = 1e-6
"""Seconds; PostgreSQL's resolution. A value that sinks to a floor is below it one moment later."""

MOST_HALVINGS = 4
"""Four halvings take 1.0 below the floor, where the fact is removed."""


def effective_confidence(confidence: Floats, days: Floats, half_life: Each) -> Floats:
    """Return confidence after `days` without confirmation; negative days and an infinite half-life change nothing."""
    return confidence * HALF ** (np.maximum(days, 0.0) / half_life)


def reinforced(confidence: Floats, times: Ints) -> Floats:
    """Return confidence after `times` confirmations by other statements, at most 1."""
    return np.minimum(confidence + REINFORCEMENT * times, 1.0)


def soft_decay_starts(confirmed_at: Floats, expires_at: Floats) -> Floats:
    """Return the start of the last quarter of the lifetime, in epoch seconds; infinite without expiry."""
    return confirmed_at + (expires_at - confirmed_at) * SOFT_DECAY_FROM


def soft_decay_halvings(confirmed_at: Floats, expires_at: Floats, now: Each) -> Ints:
    """Return the number of halvings due by `now`: one per hour after 75 % of the lifetime, 0 once it has expired."""
    past = now - soft_decay_starts(confirmed_at, expires_at)
    nears_its_end = (past > 0) & (now < expires_at)
    steps = np.where(nears_its_end, np.floor(np.maximum(past, 0.0) / SOFT_DECAY_STEP) + 1, 0)
    return steps.astype(np.int64)


def halvings_applied(confidence: Floats, due: Ints) -> Ints:
    """Return how many of the due halvings apply: at the floor or below, confidence is not halved again."""
    wanted = np.zeros_like(due)
    for step in range(MOST_HALVINGS):
        wanted += (due > step) & (confidence * HALF**step > SOFT_DECAY_FLOOR)
    return wanted


def softened(confidence: Floats, confirmed_at: Floats, expires_at: Floats, now: Each) -> Floats:
    """Return confidence after soft decay at `now`; all instants are in epoch seconds.

    A fact that stays visible after its expiry keeps the halvings until then.
    """
    due = soft_decay_halvings(confirmed_at, expires_at, np.minimum(now, np.nextafter(expires_at, -np.inf)))
    return confidence * HALF ** halvings_applied(confidence, due)


def next_halving_at(confidence: Floats, confirmed_at: Floats, expires_at: Floats, made: Ints) -> Floats:
    """Return the time of the next halving after `made` ones, in epoch seconds; infinite if there is none."""
    most = halvings_applied(confidence, np.full(confidence.shape, MOST_HALVINGS, dtype=np.int64))
    at = soft_decay_starts(confirmed_at, expires_at) + made * SOFT_DECAY_STEP
    return np.where((made < most) & (at < expires_at), at, np.inf)


def removed_by_soft_decay_at(confidence: Floats, confirmed_at: Floats, expires_at: Floats) -> Floats:
    """Return when a halving takes confidence below 0.1, which removes the fact, in epoch seconds."""
    needed = halvings_applied(confidence, np.full(confidence.shape, MOST_HALVINGS, dtype=np.int64))
    left = confidence * HALF**needed
    at = soft_decay_starts(confirmed_at, expires_at) + np.maximum(needed - 1, 0) * SOFT_DECAY_STEP
    return np.where(left < SOFT_DECAY_FLOOR, at, np.inf)


def culled_at(confidence: Floats, confirmed_at: Floats, expires_at: Floats, half_life: Each, floor: Each) -> Floats:
    """Return when effective confidence, halvings included, falls below `floor`; never for floor 0."""
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite where nothing is culled
        to_floor = np.log2(confidence) - np.log2(floor)
        earliest = _crossed(confirmed_at, confirmed_at + half_life * DAY * to_floor)
        if np.isfinite(expires_at).any():
            starts = soft_decay_starts(confirmed_at, expires_at)
            applied = halvings_applied(confidence, np.full(confidence.shape, MOST_HALVINGS, dtype=np.int64))
            for halvings in range(1, MOST_HALVINGS + 1):
                begins = starts + (halvings - 1) * SOFT_DECAY_STEP
                below = _crossed(begins, confirmed_at + half_life * DAY * (to_floor - halvings))
                earliest = np.where(halvings <= applied, np.minimum(earliest, below), earliest)
    return np.where(np.asarray(floor) > 0, earliest, np.inf)


def _crossed(begins: Floats, crossing: Floats) -> Floats:
    """Return when confidence is below a floor that it crosses at an instant, if that is not before it begins."""
    return np.where(crossing >= begins, crossing + MOMENT, begins)
