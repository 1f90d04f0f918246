"""Past: how a fact faded and was used again before its last use, as far back as its spells are kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from workers.core import tiers
from workers.core.arrays import Floats
from workers.core.confidence import DAY
from workers.core.decay_intervals import Spell
from workers.core.tiers import Tier

POINTS, FEWEST = 240, 6
"""At how many instants all spells together are told, and each of them at least."""

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


def past(spells: Sequence[Spell], since: float, strength: float) -> Past:
    """Return how a fact faded in its spells, oldest first, until its last use, which left it at `strength`."""
    begins = [spell.begins for spell in spells]
    each = list(zip(spells, [*begins[1:], since], strict=False))
    after = [*(spell.strength for spell in spells[1:]), strength]
    at = [_instants(spell, over, since - begins[0]) for spell, over in each]
    nothing = np.empty(0)
    return Past(
        np.concatenate([nothing, *at]),
        np.concatenate([nothing, *(_salience(spell, when) for spell, when in zip(spells, at, strict=True))]),
        [Hit(over, _height(spell, over), high) for (spell, over), high in zip(each, after, strict=False)],
        joined([band for spell, over in each for band in _tiers(spell, over)]),
    )


def joined(bands: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Return tiers one after the other; where the same one goes on it is told once."""
    whole: list[tuple[str, float, float]] = []
    for name, begins, over in bands:
        if whole and whole[-1][0] == name and whole[-1][2] == begins:
            begins = whole.pop()[1]  # noqa: PLW2901  it goes on
        whole.append((name, begins, over))
    return whole


def _instants(spell: Spell, over: float, whole: float) -> Floats:
    """Return when to look at a spell: evenly, and where the rate changes; nowhere if it was over at once."""
    last = over - BEFORE
    if last <= spell.begins:
        return np.empty(0)
    points = max(FEWEST, round(POINTS * (over - spell.begins) / whole))
    marks = np.array([spell.fades_from, *_breaks(spell)])
    inside = marks[(marks > spell.begins) & (marks < last)]
    return np.unique(np.concatenate([np.linspace(spell.begins, last, points), inside]))


def _salience(spell: Spell, at: Floats) -> Floats:
    told: Floats = spell.strength * tiers.retention(_bends(spell), (at - spell.fades_from) / DAY)
    return told


def _height(spell: Spell, at: float) -> float:
    return float(_salience(spell, np.array([at]))[0])


def _tiers(spell: Spell, over: float) -> Iterator[tuple[str, float, float]]:
    breaks = [spell.begins, *_breaks(spell), over]
    for tier in Tier:
        begins, until = max(breaks[tier], spell.begins), min(breaks[tier + 1], over)
        if until > begins:
            yield tier.name.lower(), begins, until


def _breaks(spell: Spell) -> tuple[float, float]:
    """Return when a fact would stop being hot, and begin to be cold."""
    bends, seen = _bends(spell), spell.fades_from
    hot_days, cold_days = float(bends.hot_until[0]), float(bends.cold_from[0])
    return seen + hot_days * DAY if hot_days else spell.begins, seen + cold_days * DAY


def _bends(spell: Spell) -> tiers.Curve:
    return tiers.curve(np.array([spell.strength]), np.array([spell.coactivations]))
