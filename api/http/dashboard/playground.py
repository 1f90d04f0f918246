"""The recall page: the results of a query, the parts of each score, and what was left out."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BeforeValidator

from api.http.dashboard.rendering import page, router, typed_share
from api.http.dashboard.visitors import Reading
from workers.errors import InvalidInputError

routes = router()

FEW, MOST = 10, 100
"""Number of results where none is typed, and the maximum."""

MOST_LISTED = 50
"""Maximum number of listed facts that one rule left out."""

PARTS = {
    "fit": ("fit", "a"),
    "contiguity": ("near", "b"),
    "graph": ("links", "f"),
    "named": ("name", "d"),
    "prior": ("strength", "e"),
    "outstanding": ("stands out", "g"),
    "newer": ("newer", "c"),
    "reranked": ("reranked", "h"),
}
"""The parts of a score, each with its label and colour."""

OF_CONTENT = ("fit", "contiguity", "graph", "named")
"""Those that count as much as the fact's speaker and content do."""

RULES = {
    "below the limit": "Scored, but others score higher.",
    "not relevant enough": "Scored, but it hardly answers the question, or nothing does.",
    "not among the most promising": "Found, but too low in the search results to be scored.",
    "over the token budget": "It does not fit into the token budget.",
}
"""Explanations of rules."""


@routes.get("/dashboard/recall")
def recall(
    request: Request,
    memory: Reading,
    query: str = "",
    limit: Annotated[int, BeforeValidator(lambda typed: typed or FEW), Query(ge=1, le=MOST)] = FEW,
    tag: str = "",
    category: str = "",
    role: str = "",
    as_of: str = "",
    min_relevance: str = "",
    deep: str = "",
    why: str = "",
) -> HTMLResponse:
    """Run a query that does not count as use; `why` explains the score of one fact, recalled or not."""
    texts = {"tag": tag, "category": category, "role": role, "as_of": as_of, "min_relevance": min_relevance}
    narrowed: dict[str, Any] = {name: text.strip() for name, text in texts.items()} | {"deep": bool(deep.strip())}
    asked = {"query": query, "limit": limit, **narrowed, "deep": "true" if narrowed["deep"] else ""}
    if not query.strip():
        said = "Give a query: the explanation of a fact needs one." if why.strip() else ""
        return page(request, "playground.html", asked=asked, answer=None, said=said, wrong="query")
    given: Any = {name: value for name, value in {**narrowed, "why": why.strip()}.items() if value}
    try:
        if min_relevance.strip():
            given["min_relevance"] = typed_share("min_relevance", min_relevance)
        found = memory.recall(query, limit=limit, explain=True, touch=False, **given)
    except InvalidInputError as error:
        said, wrong = str(error), str(error).partition(":")[0]
        return page(request, "playground.html", error.status, asked=asked, answer=None, said=said, wrong=wrong)
    return page(request, "playground.html", asked=asked, answer=_shown(found), said="", wrong="")


def _shown(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer for the template: bars on one scale, and left-out facts by rule."""
    results, reason = found["results"], found.get("why")
    scores = [one["score"] for one in results] + ([reason["score"]] if reason else [])
    scale = max([*scores, 1e-9])
    return {
        "results": [{**one, "bars": _bars(one["explain"], scale)} for one in results],
        "left_out": _by_rule(found.get("left_out") or []),
        "by_meaning": found.get("by_meaning", True),
        "reranked": found.get("reranked"),
        "deep": found.get("deep"),
        "why": reason and {**reason, "bars": _bars(reason["parts"], scale)},
        "parts": PARTS,
    }


def _bars(parts: Mapping[str, float], scale: float) -> list[dict[str, Any]]:
    """Return the parts of a score from left to right, in thousandths of the best score of the page."""
    begin, bars = 0.0, []
    content = parts.get("role", 1) * (1 + parts.get("salience", 0))
    said = {
        "fit": parts.get("relevance", 0.0),
        "outstanding": 0.0,
        "newer": 0.0,
        "reranked": 0.0,
        **parts,
    }  # defaults for answers of older workers
    for part, (name, tone) in PARTS.items():
        value = said[part] * (content if part in OF_CONTENT else 1)
        width = max(value, 0.0) / scale * 1000
        bars.append({"name": name, "tone": tone, "value": value, "x": round(begin, 2), "width": round(width, 2)})
        begin += width
    return bars


def _by_rule(left_out: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return left-out facts grouped by rule, in order of appearance."""
    rules: dict[str, list[Mapping[str, Any]]] = {}
    for one in left_out:
        rules.setdefault(one["rule"], []).append(one)
    return [
        {"name": rule, "facts": facts, "many": len(facts) >= MOST_LISTED, "said": RULES.get(rule, "")}
        for rule, facts in rules.items()
    ]
