"""The page of relations between entities, as a table and as a graph."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router, shortened
from api.http.dashboard.visitors import Reading

if TYPE_CHECKING:
    from api.http.dashboard.drawing import Point

routes = router()

ROWS = 50
DRAWN = 30
"""Maximum number of edges in the picture, the strongest ones."""

LONGEST = 20
"""Maximum characters of a name in the picture."""

TABS = {"all": ("All", None), "used": ("In use", False), "decayed": ("Out of use", True)}
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
    found = memory.relations(decayed=TABS[show][1], entity=name or None, limit=ROWS, cursor=cursor)
    edges = [{"pinned": False, "decayed": show == "decayed", **one} for one in found["edges"]]
    return page(
        request,
        "relations.html",
        edges=edges,
        total=found["total"],
        graph=_graph(edges[:DRAWN], name),
        show=show,
        entity=name,
        tabs={which: (title, _address(which, name)) for which, (title, _) in TABS.items()},
        own=_address(show, name),
        next=found["next"],
        later=cursor is not None,
    )


def _address(show: str, entity: str) -> str:
    return f"/dashboard/relations?{urlencode({'show': show, **({'entity': entity} if entity else {})})}"


def _graph(edges: Sequence[Mapping[str, Any]], entity: str) -> dict[str, Any] | None:
    """Return circles and lines for the edges, ignoring the case of names."""
    from api.http.dashboard import drawing  # noqa: PLC0415  numpy is slow to load

    names: dict[str, str] = {}
    for one in edges:
        for end in (one["from"], one["to"]):
            names.setdefault(end.lower(), end)
    if not names:
        return None
    numbers = dict(zip(names, count(), strict=False))
    ends = [(numbers[one["from"].lower()], numbers[one["to"].lower()]) for one in edges]
    shown = [shortened(name, LONGEST) for name in names.values()]
    places = drawing.arranged(shown, ends, [one["weight"] for one in edges])
    met = Counter(chain.from_iterable(ends))
    circles = [
        {"name": name, "shown": shown[number], "x": place.x, "y": place.y,
         "r": round(4 + 2 * min(met[number], 16) ** 0.5, 1), "own": name.lower() == entity.lower(),
         "address": _address("all", name)}
        for number, (name, place) in enumerate(zip(names.values(), places, strict=True))
    ]  # fmt: skip
    lines = [_line(one, places[begin], places[end]) for one, (begin, end) in zip(edges, ends, strict=True)]
    width, height = drawing.size(len(names))
    return {"width": width, "height": height, "small": len(names) <= drawing.FEW, "circles": circles, "lines": lines}


def _line(edge: Mapping[str, Any], begin: "Point", end: "Point") -> dict[str, Any]:
    """Return the line of an edge; its width shows the weight."""
    ends = {"x1": begin.x, "y1": begin.y, "x2": end.x, "y2": end.y}
    title = f"{edge['from']} {edge['type']} {edge['to']}, weight {edge['weight']:g}"
    return {**ends, "width": round(1.3 + 5 * edge["weight"], 2), "decayed": edge["decayed"], "title": title}
