"""The recall playground: what a question finds, each score taken apart, and what was left out by which rule."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.problems import status_of
from workers.errors import InvalidInputError

routes = router()

MOST = 100
MOST_TOLD = 50
"""An answer names no more that were left out in one way."""

PARTS = {
    "relevance": ("fit", "a"),
    "contiguity": ("near", "b"),
    "graph": ("links", "f"),
    "named": ("name", "d"),
    "prior": ("alive", "e"),
}
"""What adds up to a score, with the name and the colour by which it is shown."""

RULES = {
    "below the limit": "Found and weighed, but others fit better.",
    "not among the most promising": "Found, but by too little for being weighed.",
    "over the token budget": "It did not fit into the context.",
}
"""What the names of rules leave open."""


@routes.get("/dashboard/recall")
def recall(
    request: Request,
    memory: Reading,
    query: Annotated[str, Query()] = "",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 10,
    tag: Annotated[str, Query()] = "",
    category: Annotated[str, Query()] = "",
    as_of: Annotated[str, Query()] = "",
    why: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """Ask a question without that counting as use; `why` takes one fact apart, whether it was recalled or not."""
    narrowed = {"tag": tag.strip(), "category": category.strip(), "as_of": as_of.strip()}
    asked = {"query": query, "limit": limit, **narrowed}
    if not query.strip():
        said = "Ask a question: why a fact was recalled or not is told of one." if why.strip() else ""
        return page(request, "playground.html", asked=asked, answer=None, said=said, wrong="query")
    given: Any = {name: value for name, value in {**narrowed, "why": why.strip()}.items() if value}
    try:
        found = memory.recall(query, limit=limit, explain=True, touch=False, **given)
    except InvalidInputError as error:
        said, wrong = str(error), str(error).partition(":")[0]
        return page(request, "playground.html", status_of(error), asked=asked, answer=None, said=said, wrong=wrong)
    return page(request, "playground.html", asked=asked, answer=_told(found), said="", wrong="")


def _told(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as the page shows it: bars beside each other on one scale, what was left out by its rule."""
    results, reason = found["results"], found.get("why")
    scores = [one["score"] for one in results] + ([reason["score"]] if reason else [])
    scale = max([*scores, 1e-9])
    return {
        "results": [{**one, "bars": _bars(one["explain"], scale)} for one in results],
        "scaled": any(one["explain"]["factor"] != 1 for one in results),
        "left_out": _by_rule(found.get("left_out") or []),
        "by_meaning": found.get("by_meaning", True),
        "why": reason and {**reason, "bars": _bars(reason["parts"], scale)},
        "parts": PARTS,
    }


def _bars(parts: Mapping[str, float], scale: float) -> list[dict[str, Any]]:
    """Return a score's parts from left to right, in thousandths of the best score of the page."""
    begin, bars = 0.0, []
    for part, (name, tone) in PARTS.items():
        value = parts[part] * parts["factor"]
        width = max(value, 0.0) / scale * 1000
        bars.append({"name": name, "tone": tone, "value": value, "x": round(begin, 2), "width": round(width, 2)})
        begin += width
    return bars


def _by_rule(left_out: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what was left out, by the rule that did it, in the order in which the rules came up."""
    rules: dict[str, list[Mapping[str, Any]]] = {}
    for one in left_out:
        rules.setdefault(one["rule"], []).append(one)
    return [
        {"name": rule, "facts": facts, "many": len(facts) >= MOST_TOLD, "said": RULES.get(rule, "")}
        for rule, facts in rules.items()
    ]
