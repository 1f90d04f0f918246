"""Pages of facts: the list, the timeline of a property, and one fact with its curve, history and links."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from math import cos, pi, sin
from typing import Annotated, Any, NamedTuple, get_args
from uuid import UUID

from ebb.contract.values import LONGEST_FIELD, LONGEST_TAG, LONGEST_VALUE, MOST_TAGS, DecayClass
from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http import listings
from api.http.dashboard.rendering import instant, page, router
from api.http.dashboard.visitors import Reading
from api.http.dispatch import Session
from workers.core.lifetime import renewed_by
from workers.errors import NotFoundError

routes = router()

ROWS = 50
FILTERS = ("tag", "category", "entity", "session", "source", "role", "tier")


@routes.get("/dashboard/facts")
def facts(
    request: Request, memory: Reading, cursor: str = "", query: Annotated[str, Query(max_length=8_000)] = ""
) -> HTMLResponse:
    """Show a page of live facts that match the filters or a query; this does not count as use."""
    asked = {name: request.query_params.get(name, "").strip() for name in FILTERS} | {"query": query.strip()}
    given = {name: value for name, value in asked.items() if value}
    if asked["query"]:
        ids = [one["id"] for one in memory.recall(limit=ROWS, touch=False, min_relevance=0, **given)["results"]]
        shown: dict[str, Any] = {"facts": list(listings.each(memory, ids)), "next": None}
    else:
        shown = listings.page(memory, ROWS, **given, **({"cursor": cursor} if cursor else {}))
    following = {"next": shown["next"], "later": bool(cursor)}
    return page(request, "facts.html", facts=shown["facts"], **following, asked=asked, given=given, most=ROWS)


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
    newest = listings.page(memory, NEWEST, **({"entity": entity} if entity else {}))["facts"]
    named = {(one["entity"], one["key"]) for one in newest if one["entity"] and one["key"]}
    return [{"entity": entity, "key": key} for entity, key in sorted(named)]


MOST_NEIGHBOURS = 20
MOST_EVENTS = 100
"""Maximum number of events shown, newest first."""


@routes.get("/dashboard/facts/{id}")
def fact(request: Request, memory: Reading, id: UUID) -> HTMLResponse:
    """Show a fact, live or forgotten, without counting this as use."""
    return fact_page(request, memory, id)


def fact_page(
    request: Request,
    memory: Session,
    id_: UUID,
    status: int = HTTPStatus.OK,
    *,
    typed: Mapping[str, str] | None = None,
    shown: str = "",
    said: str = "",
) -> HTMLResponse:
    """Return the page of a fact; after a refused edit with what was `typed`, and digests of what was `shown` before."""
    name = str(id_)
    address = f"/dashboard/facts/{name}"
    live = _live(memory, name)
    fields = _fields(live) if live else {}
    history, curve = memory.history(name, links=False), memory.curve(name)
    events = history["events"]
    if history["state"] != "live":
        last = _end(history["state"], events) or curve["now"]
        curve["changes"] = [one for one in curve["changes"] if one["at"] <= last]
    return page(
        request,
        "fact.html",
        status,
        history=history,
        happened=events[: -MOST_EVENTS - 1 : -1],
        earlier=max(len(events) - MOST_EVENTS, 0),
        fact=live,
        curve=curve,
        renewed_by=renewed_by(live["decay_class"] if live else None, curve["ends_for"]),
        before=_part(curve, curve["from"], curve["now"]) if curve["hits"] else None,
        after=_part(curve, curve["since"], curve["until"]),
        classes=get_args(DecayClass),
        drawing=drawing(name, memory.neighbours(name, MOST_NEIGHBOURS)),
        filled=typed or fields,
        longest=dict.fromkeys(("category", "entity", "key"), LONGEST_FIELD) | LONGEST,
        shown=shown or json.dumps({name: digest(text) for name, text in fields.items()}),
        said=said,
        wrong=said.partition(":")[0].partition(".")[0],
        **({"path": address, "again": address} if typed else {}),
    )


def _end(state: str, events: Sequence[Mapping[str, Any]]) -> float | None:
    """Return when a fact was forgotten or superseded, in epoch seconds; it has not changed since."""
    what = state.partition(":")[0]
    ended = next((instant(event["at"]) for event in reversed(events) if event["what"] == what), None)
    return ended.timestamp() if ended else None


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


LONGEST = {"value": LONGEST_VALUE, "tags": MOST_TAGS * (LONGEST_TAG + len(", "))}
"""Maximum length of the texts of a form that are not as long as other fields."""


def _fields(fact: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a fact as its form shows them; an empty class stays as it is."""
    texts = {name: fact.get(name) or "" for name in ("category", "entity", "key", "value", "valid_until")}
    return texts | {"tags": ", ".join(fact["tags"]), "importance": str(fact["importance"]), "decay_class": ""}


def digest(text: str) -> str:
    """Return the digest of a field's text without line breaks, which browsers leave out, to see whether it changed."""
    line = text.replace("\r", "").replace("\n", "").strip()
    return hashlib.sha256(line.encode()).hexdigest()


def _live(memory: Session, name: str) -> dict[str, Any] | None:
    try:
        return memory.fact(name)
    except NotFoundError:
        return None


WIDTH, HEIGHT, RADIUS = 480.0, 320.0, 17.0
ROOM = 6.0


class Circle(NamedTuple):
    """A circle in the drawing."""

    x: float
    y: float
    radius: float


CENTRE = Circle(WIDTH / 2, HEIGHT / 2, 26.0)

LINKS = {
    "SUPERSEDES": ("replaces", "was replaced by", "i"),
    "UPDATES": ("makes outdated", "is made outdated by", "e"),
    "CAUSED_BY": ("was caused by", "is the cause of", "d"),
    "PART_OF": ("is part of", "has as a part", "a"),
    "DEPENDS_ON": ("depends on", "is needed by", "b"),
    "RELATED_TO": ("is related to", "is related to", "c"),
}
"""Labels of each type of link, from its source and from its target, and its colour."""


def drawing(id_: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fact in the middle, its neighbours around it, and its links in words, strongest first.

    `found` is the answer of `memory.neighbours`.
    """
    links = sorted(found["links"], key=lambda link: -link["strength"])
    own = [link for link in links if id_ in (link["source"], link["target"])]
    others = list(dict.fromkeys(_other(link, id_) for link in own))
    texts = {fact["id"]: fact["text"] for fact in found["facts"]}
    circles = {one: _circle(index, len(others)) for index, one in enumerate(others)}
    nodes = {
        one: {"number": number, "id": one, "text": texts.get(one, ""), "x": circles[one].x, "y": circles[one].y}
        for number, one in enumerate(others, start=1)
    }
    every = [*circles.values(), CENTRE]
    top = round(min(one.y - one.radius for one in every) - ROOM, 1)
    return {
        "nodes": list(nodes.values()),
        "edges": _edges(links, id_, circles | {id_: CENTRE}),
        "lines": [_line(link, id_) | {"node": nodes[_other(link, id_)]} for link in own],
        "left_out": max(found["total"] - len(own), 0),
        "middle": CENTRE,
        "width": WIDTH,
        "top": top,
        "height": round(max(one.y + one.radius for one in every) + ROOM - top, 1),
    }


def _other(link: Mapping[str, Any], id_: str) -> str:
    return str(link["target"] if link["source"] == id_ else link["source"])


def _circle(index: int, among: int) -> Circle:
    """Return a place on the ellipse, clockwise from its top; with many neighbours every second one is nearer."""
    begin = 0.0 if among <= 2 else -pi / 2  # noqa: PLR2004  two neighbours are drawn in one line, to save height
    angle = 2 * pi * index / among + begin
    reach = 1.0 if among <= 10 or index % 2 == 0 else 0.68  # noqa: PLR2004  more would overlap
    return Circle(
        round(WIDTH / 2 + cos(angle) * reach * (WIDTH / 2 - 40), 1),
        round(HEIGHT / 2 + sin(angle) * reach * (HEIGHT / 2 - 30), 1),
        RADIUS,
    )


def _line(link: Mapping[str, Any], id_: str) -> dict[str, Any]:
    onward, back, tone = LINKS[link["type"]]
    return {"said": onward if link["source"] == id_ else back, "strength": link["strength"], "tone": tone}


def _edges(links: Sequence[Mapping[str, Any]], id_: str, circles: Mapping[str, Circle]) -> list[dict[str, Any]]:
    """Return lines between circles; their width shows the strength of a link."""
    return [
        _between(circles[link["source"]], circles[link["target"]])
        | {"width": round(1 + 3 * link["strength"], 2), "tone": LINKS[link["type"]][-1]}
        | {"own": id_ in (link["source"], link["target"])}
        for link in links
        if link["source"] in circles and link["target"] in circles
    ]


def _between(begins: Circle, over: Circle) -> dict[str, float]:
    """Return a line between two circles, with room for an arrow head."""
    length = max(((over.x - begins.x) ** 2 + (over.y - begins.y) ** 2) ** 0.5, 1.0)
    along, across = (over.x - begins.x) / length, (over.y - begins.y) / length
    room = over.radius + 7
    return {
        "x1": round(begins.x + along * begins.radius, 1),
        "y1": round(begins.y + across * begins.radius, 1),
        "x2": round(over.x - along * room, 1),
        "y2": round(over.y - across * room, 1),
    }
