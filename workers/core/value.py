"""Value of keeping a fact: where space is limited, the least valuable fact goes first.

It is the log odds that the fact will be asked for: those of its content (`core.salience`), plus uses, links,
importance, and its strength when last seen. All facts fade at the same rate here, so the order of two facts never
changes by itself: it can be indexed and compared across instants.
"""

from dataclasses import dataclass

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.confidence import DAY

UNKNOWN = 0.5
"""Salience of content that is not estimated yet, and ordinary importance."""

LEAST_DOUBT = 0.01
"""Distance of salience from 0 and 1, where log odds are infinite."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Inputs to the value of n facts, one array each.

    Salience of content, importance, and strength at the last access are in [0, 1]. `seen_at` is that access, or the end
    of a pin, in epoch seconds, infinite for a pin without end. `shown` counts recalls that returned the fact, `used`
    uses by an agent and confirmations.
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
    """Contribution to the log odds: per unit of log odds (content), of range, or of ln(1 + n) for counts."""

    content: float = 1.0
    importance: float = 2.0
    strength: float = 0.5
    shown: float = 0.1
    used: float = 0.5
    links: float = 0.2
    a_day: float = 0.0005
    """Loss per day without access."""


WEIGHTS = Weights()
"""Strength, uses and days are chosen to keep the most on conversations whose other questions were asked, at a small
cost where use does not predict later questions (`python -m tests.benchmarks forgetting`). Importance is the owner's
statement, which no conversation has, and is bounded: full importance weighs as much as a salience of 0.73 in place of
0.5. Ten links weigh half as much. Of automatic links (up to three a fact) this weight costs or wins about a point of
the evidence that is kept; four times as much costs up to five."""


def rank(facts: Standing, weights: Weights = WEIGHTS) -> Floats:
    """Return n numbers in the order of the facts' values at any instant: their log odds at the epoch."""
    content = np.clip(facts.content, LEAST_DOUBT, 1 - LEAST_DOUBT)
    return (
        weights.content * np.log(content / (1 - content))
        + weights.importance * (facts.importance - UNKNOWN)
        + weights.strength * facts.strength
        + weights.shown * np.log1p(facts.shown)
        + weights.used * np.log1p(facts.used)
        + weights.links * np.log1p(facts.links)
        + weights.a_day * facts.seen_at / DAY
    )


def value(ranks: Floats, now: float) -> Floats:
    """Return the values in [0, 1] of facts with these ranks at `now` (epoch seconds)."""
    odds = ranks - WEIGHTS.a_day * now / DAY
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), np.float64)
