"""The picture of relations: a position for each entity, without overlapping names."""

from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np

from workers.core.arrays import Floats

WIDTH, HEIGHT = 720, 560
SMALL_WIDTH, SMALL_HEIGHT = 400, 380
FEW = 8
"""Maximum number of nodes in the small picture, which fits a phone."""

MARGIN = 20
STEPS = 150
ROUNDS = 80
LETTER, LINE = 10.2, 30.0
"""The width of a letter, and the height of a node with its name."""

WIDE = 1.5
"""The width of a wide letter, such as M or one of Chinese, in letters."""

GOLDEN_ANGLE = 2.399963
NEAR = 1e-6
"""Tolerance for positions on one line."""


class Point(NamedTuple):
    """A position in the picture."""

    x: float
    y: float


def size(nodes: int) -> tuple[int, int]:
    """Return width and height of a picture with this many nodes."""
    return (SMALL_WIDTH, SMALL_HEIGHT) if nodes <= FEW else (WIDTH, HEIGHT)


def arranged(names: Sequence[str], edges: Sequence[tuple[int, int]], weights: Sequence[float]) -> list[Point]:
    """Return a position for each node; deterministic.

    Force-directed layout (Fruchterman and Reingold 1991) with gravity towards the centre, which keeps unconnected parts
    together. Overlapping names are moved apart at the end.
    """
    places, pull = _spiral(len(names)), np.zeros((len(names), len(names)))
    for (one, two), weight in zip(edges, weights, strict=True):
        pull[one, two] = pull[two, one] = max(pull[one, two], 0.2 + 0.4 * weight)
    np.fill_diagonal(pull, 0)
    apart = 1 / np.sqrt(max(len(names), 1))
    for heat in np.linspace(0.12, 0.004, STEPS):
        places = places + _step(places, pull, apart, heat)
    halves = np.array([max(_letters(name), 3) * LETTER / 2 for name in names])
    placed = _spread(_fitted(places, halves), halves)
    return [Point(round(float(x), 1), round(float(y), 1)) for x, y in placed]


def _letters(name: str) -> float:
    """Return the width of a name in letters of average width."""
    return sum(WIDE if letter in "mwMW" or east_asian_width(letter) in "WF" else 1 for letter in name)


def _spiral(nodes: int) -> Floats:
    """Return distinct starting positions, evenly around the centre."""
    number = np.arange(nodes)
    far = np.sqrt((number + 0.5) / max(nodes, 1)) / 2
    return np.stack([far * np.cos(number * GOLDEN_ANGLE), far * np.sin(number * GOLDEN_ANGLE)], axis=1)


def _step(places: Floats, pull: Floats, apart: float, heat: float) -> Floats:
    """Return the movement of each node in one step, limited by `heat`."""
    between = places[:, None, :] - places[None, :, :]
    distance = np.maximum(np.linalg.norm(between, axis=2), 1e-3)
    push = apart**2 / distance**2
    np.fill_diagonal(push, 0)
    force = (between * (push - pull * distance / apart)[:, :, None]).sum(axis=1) - places * apart * 5
    length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
    return force / length * np.minimum(length, heat)


def _fitted(places: Floats, halves: Floats) -> Floats:
    """Return positions scaled to the picture; a single node or a line is centred."""
    low, high = places.min(axis=0), places.max(axis=0)
    alone = high - low < NEAR
    share = np.where(alone, 0.5, (places - low) / np.where(alone, 1, high - low))
    return _within(share * size(len(places)), halves)


def _within(places: Floats, halves: Floats) -> Floats:
    """Return positions moved into the picture so that their names fit."""
    width, height = size(len(places))
    sides, top = halves + MARGIN / 2, LINE
    x = np.clip(places[:, 0], sides, np.maximum(width - sides, sides))
    return np.stack([x, np.clip(places[:, 1], top, height - MARGIN)], axis=1)


def _spread(places: Floats, halves: Floats) -> Floats:
    """Return positions with overlapping names moved apart along the shorter axis."""
    room = np.stack([halves[:, None] + halves[None, :], np.full((len(halves), len(halves)), LINE)], axis=2)
    number = np.arange(len(halves))
    otherwise = np.sign(number[:, None] - number[None, :])[:, :, None]
    for _ in range(ROUNDS):
        between = places[:, None, :] - places[None, :, :]
        over = room - np.abs(between)
        upon = np.minimum(over[:, :, 0], over[:, :, 1]) > 0
        upon = upon & (number[:, None] != number[None, :])
        if not upon.any():
            break
        way = np.where(between == 0, otherwise, np.sign(between))
        shorter = over == over.min(axis=2, keepdims=True)
        moves = np.where(shorter & upon[:, :, None], (over + 1) * way, 0)
        places = _within(places + moves.sum(axis=1) * 0.3, halves)
    return places
