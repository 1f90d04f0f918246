"""The page of relations between entities, as a table and as a graph without overlapping names."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

import numpy as np
from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
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

GOLDEN_ANGLE = 2.399963
NEAR = 1e-6
"""Tolerance for positions on one line."""


class Point(NamedTuple):
    """A position in the picture."""

    x: float
    y: float


class Size(NamedTuple):
    """Width and height of a picture."""

    width: float
    height: float


def size(nodes: int) -> Size:
    """Return the size of a picture with this many nodes."""
    return Size(SMALL_WIDTH, SMALL_HEIGHT) if nodes <= FEW else Size(WIDTH, HEIGHT)


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
    halves = np.array([max(len(name), 3) * LETTER / 2 for name in names])
    placed = _spread(_fitted(places, halves), halves)
    return [Point(round(float(x), 1), round(float(y), 1)) for x, y in placed]


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
    moved: Floats = force / length * np.minimum(length, heat)
    return moved


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


routes = router()

ROWS = 50
DRAWN = 30
"""Maximum number of edges in the picture, the strongest ones."""

LONGEST = 20
"""Maximum characters of a name in the picture."""

SHOWN = {"all": None, "used": False, "decayed": True}
TABS = {"all": "All", "used": "In use", "decayed": "Out of use"}
Which = Literal["all", "used", "decayed"]


@routes.get("/dashboard/relations")
def relations(
    request: Request,
    memory: Reading,
    show: Which = "all",
    entity: Annotated[str, Query(max_length=1024)] = "",
    cursor: str | None = None,
) -> HTMLResponse:
    """Show a page of relations, strongest first: all of them, or those of one entity."""
    name = " ".join(entity.split())
    found = memory.relations(decayed=SHOWN[show], entity=name or None, limit=ROWS, cursor=cursor)
    edges = [{"pinned": False, "decayed": show == "decayed", **one} for one in found["edges"]]
    return page(
        request,
        "relations.html",
        edges=edges,
        total=found["total"],
        graph=_graph(edges[:DRAWN], name),
        show=show,
        entity=name,
        tabs={which: (title, _address(which, name)) for which, title in TABS.items()},
        own=_address(show, name),
        next=found["next"],
        later=cursor is not None,
    )


def _address(show: str, entity: str, **more: str) -> str:
    return f"/dashboard/relations?{urlencode({'show': show, **({'entity': entity} if entity else {}), **more})}"


def _graph(edges: Sequence[Mapping[str, Any]], entity: str) -> dict[str, Any] | None:
    """Return circles and lines for the edges, ignoring the case of names."""
    names: dict[str, str] = {}
    for one in edges:
        for end in (one["from"], one["to"]):
            names.setdefault(end.lower(), end)
    if not names:
        return None
    numbers = dict(zip(names, count(), strict=False))
    ends = [(numbers[one["from"].lower()], numbers[one["to"].lower()]) for one in edges]
    shown = [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in names.values()]
    places = arranged(shown, ends, [one["weight"] for one in edges])
    met = Counter(chain.from_iterable(ends))
    circles = [
        {"name": name, "shown": shown[number], "x": place.x, "y": place.y,
         "r": round(4 + 2 * min(met[number], 16) ** 0.5, 1), "own": name.lower() == entity.lower(),
         "address": _address("all", name)}
        for number, (name, place) in enumerate(zip(names.values(), places, strict=True))
    ]  # fmt: skip
    lines = [_line(one, places[begin], places[end]) for one, (begin, end) in zip(edges, ends, strict=True)]
    width, height = size(len(names))
    return {"width": width, "height": height, "small": len(names) <= FEW, "circles": circles, "lines": lines}


def _line(edge: Mapping[str, Any], begin: Point, end: Point) -> dict[str, Any]:
    """Return the line of an edge; its width shows the weight."""
    ends = {"x1": begin.x, "y1": begin.y, "x2": end.x, "y2": end.y}
    title = f"{edge['from']} {edge['type']} {edge['to']}, weight {edge['weight']:g}"
    return {**ends, "width": round(1.3 + 5 * edge["weight"], 2), "decayed": edge["decayed"], "title": title}
