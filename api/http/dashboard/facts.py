"""Pages of facts: the list, the timeline of a property, and one fact with its curve, history and links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Annotated, Any, NamedTuple, get_args
from uuid import UUID

from ebb.contract.values import LONGEST_FIELD, DecayClass
from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.dispatch import Session
from workers.errors import NotFoundError

routes = router()

ROWS = 50
FILTERS = ("tag", "category", "entity", "session", "source", "role", "tier")


@routes.get("/dashboard/facts")
def facts(
    request: Request, memory: Reading, before: UUID | None = None, query: Annotated[str, Query(max_length=8_000)] = ""
) -> HTMLResponse:
    """Show a page of live facts that match the filters or a query; this does not count as use."""
    asked = {name: request.query_params.get(name, "").strip() for name in FILTERS} | {"query": query.strip()}
    given = {name: value for name, value in asked.items() if value}
    if asked["query"]:
        ids = [one["id"] for one in memory.recall(limit=ROWS, touch=False, min_relevance=0, **given)["results"]]
        shown = memory.facts(ids=ids)["facts"] if ids else []
        return page(request, "facts.html", facts=shown, next=None, later=None, asked=asked, given=given)
    found = memory.facts(ROWS + 1, before=None if before is None else str(before), **given)["facts"]
    shown = found[:ROWS]
    next_ = shown[-1]["id"] if len(found) > ROWS else None
    return page(request, "facts.html", facts=shown, next=next_, later=before, asked=asked, given=given)


@routes.get("/dashboard/timeline")
def timeline(
    request: Request,
    memory: Reading,
    entity: Annotated[str, Query(max_length=LONGEST_FIELD)] = "",
    key: Annotated[str, Query(max_length=LONGEST_FIELD)] = "",
    cursor: str = "",
) -> HTMLResponse:
    """Show the values of a property of an entity over time; without one, the properties of the newest facts."""
    asked = {"entity": entity.strip(), "key": key.strip()}
    given = {"cursor": cursor} if cursor else {}
    found = memory.timeline(limit=ROWS, **asked, **given) if all(asked.values()) else None
    offered = [] if found else _properties(memory, asked["entity"])
    return page(request, "timeline.html", asked=asked, found=found, offered=offered, later=bool(cursor))


NEWEST = 200
"""Number of facts whose properties are offered."""


def _properties(memory: Session, entity: str) -> list[dict[str, str]]:
    """Return the distinct properties of the newest facts, or of the newest facts of an entity, in order."""
    newest = memory.facts(NEWEST, **({"entity": entity} if entity else {}))["facts"]
    named = {(one["entity"], one["key"]) for one in newest if one["entity"] and one["key"]}
    return [{"entity": entity, "key": key} for entity, key in sorted(named)]


MOST_NEIGHBOURS = 20
MOST_EVENTS = 100
"""Maximum number of events shown, newest first."""


@routes.get("/dashboard/facts/{id}")
def fact(request: Request, memory: Reading, id: UUID) -> HTMLResponse:  # noqa: A002 - the contract's name
    """Show a fact, live or forgotten, without counting this as use."""
    name = str(id)
    history, curve = memory.history(name, links=False), memory.curve(name)
    events = history["events"]
    return page(
        request,
        "fact.html",
        history=history,
        happened=events[: -MOST_EVENTS - 1 : -1],
        earlier=max(len(events) - MOST_EVENTS, 0),
        fact=_live(memory, name),
        curve=curve,
        before=_part(curve, curve["from"], curve["now"]) if curve["hits"] else None,
        after=_part(curve, curve["since"], curve["until"]),
        classes=get_args(DecayClass),
        drawing=drawing(name, memory.neighbours(name, MOST_NEIGHBOURS)),
    )


def _part(curve: Mapping[str, Any], begins: float, over: float) -> dict[str, Any]:
    """Return the part of a curve between two instants, as past and future are drawn separately."""
    inside = [i for i, at in enumerate(curve["at"]) if begins <= at <= over]
    numbered = [{**one, "number": number} for number, one in enumerate(curve["changes"], start=1)]

    def within(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [one for one in points if begins <= one["at"] <= over]

    return {
        "now": curve["now"],
        **{name: [curve[name][i] for i in inside] for name in ("at", "salience", "confidence")},
        "hits": within(curve["hits"]),
        "changes": within(numbered),
        "tiers": [
            {**band, "from": max(band["from"], begins), "until": min(band["until"], over)}
            for band in curve["tiers"]
            if band["from"] < over and band["until"] > begins
        ],
    }


def _live(memory: Session, name: str) -> dict[str, Any] | None:
    """Return a fact; None if it is not live."""
    try:
        return memory.fact(name)
    except NotFoundError:
        return None


WIDTH, HEIGHT, RADIUS, MIDDLE = 480.0, 320.0, 17.0, 26.0
ROOM = 6.0

SAID = {
    "SUPERSEDES": ("replaces", "was replaced by"),
    "UPDATES": ("makes outdated", "is made outdated by"),
    "CAUSED_BY": ("was caused by", "is the cause of"),
    "PART_OF": ("is part of", "has as a part"),
    "DEPENDS_ON": ("depends on", "is needed by"),
    "RELATED_TO": ("is related to", "is related to"),
}
"""Labels of each type of link, from its source and from its target."""

TONES = {
    "SUPERSEDES": "i", "UPDATES": "e", "CAUSED_BY": "d", "PART_OF": "a", "DEPENDS_ON": "b", "RELATED_TO": "c",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """A neighbour: its number in the list, its position in the drawing, and the beginning of its text."""

    number: int
    id: str
    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A line between two circles; its width shows the strength of the link."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    tone: str
    type: str
    own: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One of the fact's own links in words."""

    node: Node
    said: str
    strength: float
    tone: str


class Place(NamedTuple):
    """A position in the drawing."""

    x: float
    y: float


CENTRE = Place(WIDTH / 2, HEIGHT / 2)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A fact in the middle, its neighbours around it, and its links in words, strongest first."""

    nodes: list[Node]
    edges: list[Edge]
    lines: list[Line]
    left_out: int
    width: float = WIDTH
    middle: Place = CENTRE

    @property
    def top(self) -> float:
        """The upper edge of the drawing."""
        return round(min([node.y - RADIUS for node in self.nodes] + [self.middle.y - MIDDLE]) - ROOM, 1)

    @property
    def height(self) -> float:
        """The height of the drawing."""
        low = max([node.y + RADIUS for node in self.nodes] + [self.middle.y + MIDDLE]) + ROOM
        return round(low - self.top, 1)


def drawing(id_: str, found: Mapping[str, Any]) -> Drawing:
    """Return the drawing of a fact's neighbours from the answer of `memory.neighbours`."""
    links = sorted(found["links"], key=lambda link: -link["strength"])
    own = [link for link in links if id_ in (link["source"], link["target"])]
    order = list(dict.fromkeys(_other(link, id_) for link in own))
    texts = {fact["id"]: fact["text"] for fact in found["facts"]}
    nodes = {
        one: Node(number, one, texts.get(one, ""), *_place(number - 1, len(order)))
        for number, one in enumerate(order, start=1)
    }
    lines = [_line(link, id_, nodes) for link in own]
    return Drawing(list(nodes.values()), _edges(links, id_, nodes), lines, max(found["total"] - len(own), 0))


def _other(link: Mapping[str, Any], id_: str) -> str:
    return str(link["target"] if link["source"] == id_ else link["source"])


def _place(index: int, among: int) -> Place:
    """Return a position on the ellipse, clockwise from its top; with many neighbours every second one is nearer."""
    begin = 0.0 if among <= 2 else -pi / 2  # noqa: PLR2004  two neighbours are drawn in one line, to save height
    angle = 2 * pi * index / among + begin
    reach = 1.0 if among <= 10 or index % 2 == 0 else 0.68  # noqa: PLR2004  more would overlap
    return Place(
        round(WIDTH / 2 + cos(angle) * reach * (WIDTH / 2 - 40), 1),
        round(HEIGHT / 2 + sin(angle) * reach * (HEIGHT / 2 - 30), 1),
    )


def _line(link: Mapping[str, Any], id_: str, nodes: Mapping[str, Node]) -> Line:
    said = SAID[link["type"]][0 if link["source"] == id_ else 1]
    return Line(nodes[_other(link, id_)], said, link["strength"], TONES[link["type"]])


def _edges(links: Sequence[Mapping[str, Any]], id_: str, nodes: Mapping[str, Node]) -> list[Edge]:
    places = {one: (node.x, node.y, RADIUS) for one, node in nodes.items()}
    places[id_] = (WIDTH / 2, HEIGHT / 2, MIDDLE)
    edges = []
    for link in links:
        begins, over = places.get(link["source"]), places.get(link["target"])
        if begins and over:
            own = id_ in (link["source"], link["target"])
            width = round(1 + 3 * link["strength"], 2)
            edges.append(Edge(*_between(begins, over), width, TONES[link["type"]], link["type"], own))
    return edges


def _between(begins: tuple[float, float, float], over: tuple[float, float, float]) -> tuple[float, float, float, float]:
    """Return a line between two circles, with room for an arrow head."""
    (x1, y1, r1), (x2, y2, r2) = begins, over
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
    along, across = (x2 - x1) / length, (y2 - y1) / length
    room = r2 + 7
    return (
        round(x1 + along * r1, 1),
        round(y1 + across * r1, 1),
        round(x2 - along * room, 1),
        round(y2 - across * room, 1),
    )
