"""Value: what keeping a fact is worth. Where not everything can stay, the least valuable goes first.

It is the log odds that a fact will be asked for, as far as Ebb knows: those of its content (`core.salience`), what
uses, links and importance add, and how strong it was when it was last seen. Everything fades here at the same rate, so
the order of two facts never changes by itself: it can stand in an index and be compared across instants.
"""

from dataclasses import dataclass

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.confidence import DAY

UNKNOWN = 0.5
"""The salience of content that is not estimated yet, and an ordinary importance."""

LEAST_DOUBT = 0.01
"""A salience of 0 or 1 counts as that far from it, for log odds are infinite there."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What n facts have going for them, one array each.

    Salience of content, importance, and strength at the last access are in [0, 1]; that access, or the end of a pin,
    is in epoch seconds, infinite for a pin without end. `shown` counts recalls that returned the fact, `used` uses by
    an agent and confirmations.
    """

    content: Floats
    importance: Floats
    strength: Floats
    seen_at: Floats
    shown: Ints
    used: Ints
    links: Ints


@dataclass(frozen=True, slots=True)
class Weights:
    """What each adds to the log odds: per unit of log odds (content), of its range, or of ln(1 + n) for counts."""

    content: float = 1.0
    importance: float = 2.0
    strength: float = 0.5
    shown: float = 0.1
    used: float = 0.5
    links: float = 0.2
    a_day: float = 0.0005
    """What a day without access takes."""


WEIGHTS = Weights()
"""Those of strength, uses and days are what keeps most on conversations whose other questions were asked, at a small
cost where use says nothing about what is asked later (`python -m tests.benchmarks forgetting`)."""


def rank(facts: Standing, weights: Weights = WEIGHTS) -> Floats:
    """Return n numbers in the order of the facts' values, whatever the instant: their log odds at the epoch."""
    content = np.clip(facts.content, LEAST_DOUBT, 1 - LEAST_DOUBT)
    odds: Floats = (
        weights.content * np.log(content / (1 - content))
        + weights.importance * (facts.importance - UNKNOWN)
        + weights.strength * facts.strength
        + weights.shown * np.log1p(facts.shown)
        + weights.used * np.log1p(facts.used)
        + weights.links * np.log1p(facts.links)
        + weights.a_day * facts.seen_at / DAY
    )
    return odds


def value(ranks: Floats, now: float, weights: Weights = WEIGHTS) -> Floats:
    """Return the values in [0, 1] at `now` (epoch seconds) of facts with these ranks."""
    odds = ranks - weights.a_day * now / DAY
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), np.float64)
