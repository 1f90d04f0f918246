"""Retention of a memory: tier-dependent exponential forgetting, in closed form.

The forgetting rate depends on the tier, and the tier on the remaining strength. Integrating the rate piecewise gives
retention as a function of age alone, independent of how often it is computed. Source: the tiered decay of OpenMemory,
integrated instead of applied step by step.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from workers.core.arrays import Floats, Ints


class Tier(IntEnum):
    """Tier of a fact by recency and strength; a higher number is colder."""

    HOT = 0
    WARM = 1
    COLD = 2


@dataclass(frozen=True, slots=True)
class TierRules:
    """The documented constants: rates per day and tier boundaries."""

    hot_rate: float = 0.005
    warm_rate: float = 0.02
    cold_rate: float = 0.05
    recent_days: float = 6.0
    hot_above_salience: float = 0.7
    hot_above_coactivations: int = 5
    warm_above_salience: float = 0.4
    slack: float = 0.1


RULES = TierRules()


@dataclass(frozen=True, slots=True)
class Curve:
    """Forgetting curves of n facts: hot rate until `hot_until`, warm until `cold_from`, then cold (ages in days)."""

    scale: Floats
    hot_until: Floats
    cold_from: Floats


def strength(base: Floats, coactivations: Ints) -> Floats:
    """Return salience at the last access, in [0, 1]: `clamp(base * (1 + ln(1 + coactivations)))`."""
    return np.clip(base * (1 + np.log1p(np.maximum(coactivations, 0))), 0.0, 1.0)


def base_for(wanted: Floats, coactivations: Ints) -> Floats:
    """Return the base whose strength is `wanted` at that many coactivations: the inverse of `strength`."""
    return np.clip(wanted, 0.0, 1.0) / (1 + np.log1p(np.maximum(coactivations, 0)))


def curve(strength: Floats, coactivations: Ints) -> Curve:
    """Return the forgetting curves of facts with that strength and number of coactivations."""
    scale = strength + RULES.slack
    hot_days = _log_ratio(strength, RULES.hot_above_salience) * scale / RULES.hot_rate
    hot_days = np.where(coactivations > RULES.hot_above_coactivations, np.inf, hot_days)
    hot_until = np.clip(hot_days, 0.0, RULES.recent_days)
    warm_loss = _log_ratio(strength, RULES.warm_above_salience) * scale - RULES.hot_rate * hot_until
    cold_from = np.maximum(RULES.recent_days, hot_until + warm_loss / RULES.warm_rate)
    return Curve(scale, hot_until, cold_from)


def _log_ratio(strength: Floats, level: float) -> Floats:
    """Return the exponent at which salience has fallen to `level`; negative where it starts below."""
    with np.errstate(divide="ignore"):
        return np.log(strength / level)


def retention(curve: Curve, age_days: Floats) -> Floats:
    """Return the fraction of strength left after `age_days` without access, in [0, 1]; negative ages count as 0."""
    age = np.maximum(age_days, 0.0)
    hot = RULES.hot_rate * np.minimum(age, curve.hot_until)
    warm = RULES.warm_rate * np.clip(age - curve.hot_until, 0.0, curve.cold_from - curve.hot_until)
    cold = RULES.cold_rate * np.maximum(age - curve.cold_from, 0.0)
    return np.exp(-(hot + warm + cold) / curve.scale)


def tier(curve: Curve, age_days: Floats) -> Ints:
    """Return each fact's `Tier` after `age_days` without access."""
    age = np.maximum(age_days, 0.0)
    return (age >= curve.hot_until).astype(np.int64) + (age >= curve.cold_from)


def age_at_retention(curve: Curve, fraction: Floats | float) -> Floats:
    """Return the age in days at which retention has fallen to `fraction`: 0 for 1 and above, infinite for 0."""
    with np.errstate(divide="ignore"):
        loss = -np.log(np.minimum(fraction, 1.0)) * curve.scale
    hot = RULES.hot_rate * curve.hot_until
    warm = hot + RULES.warm_rate * (curve.cold_from - curve.hot_until)
    in_hot = loss / RULES.hot_rate
    in_warm = curve.hot_until + (loss - hot) / RULES.warm_rate
    in_cold = curve.cold_from + (loss - warm) / RULES.cold_rate
    return np.where(loss <= hot, in_hot, np.where(loss <= warm, in_warm, in_cold))
