"""Answers of tasks as plain JSON, which every interface passes on unchanged."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from workers.memory.context import Injection, Line
from workers.memory.recall import Recalled, Result
from workers.storage.visible import Place
from workers.validation import cursors

OVER_BUDGET = "over the token budget"


def shown(instant: datetime) -> str:
    """Return an instant as ISO 8601 in UTC."""
    return instant.isoformat().replace("+00:00", "Z")


def fact(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fact in the format of an export."""
    return {name: _plain(value) for name, value in row.items()}


def facts(rows: Sequence[Mapping[str, Any]], rest: Place | None = None) -> dict[str, Any]:
    """Return a page of facts in the format of an export, and the next cursor."""
    return {"facts": [fact(row) for row in rows], "next": cursors.following(rest)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return shown(value)
    return str(value) if isinstance(value, UUID) else value


def recalled(found: Recalled) -> dict[str, Any]:
    """Return the results of a recall, with explanations if requested."""
    results = [_result(result) for result in found.results]
    asked_for = _known(reranked=found.reranked, deep=found.deep, left_out=found.left_out, why=found.why)
    return {"results": results, "by_meaning": found.by_meaning, **asked_for}


def looked_up(found: Sequence[Result]) -> dict[str, Any]:
    """Return the facts of a lookup, with their confidence instead of a score."""
    results = [_result(result) for result in found]
    return {"results": [{"confidence": one.pop("score"), **one} for one in results]}


def injected(done: Injection) -> dict[str, Any]:
    """Return the block for an agent's context with its tokens and facts, and what was left out if requested."""
    left_out = done.recalled.left_out
    cut = [_cut(line, rank) for rank, line in enumerate(done.cut, start=len(done.lines) + 1)]
    return {
        "context": done.text,
        "tokens": done.tokens,
        "facts": [_injected(line) for line in done.lines],
        "by_meaning": done.recalled.by_meaning,
        **_known(reranked=done.recalled.reranked, deep=done.recalled.deep),
        **_known(over_budget=None if done.lines else len(cut) or None),
        **_known(left_out=None if left_out is None else cut + left_out),
    }


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _injected(line: Line) -> dict[str, Any]:
    """Return one injected line, with the parts of its fact's score and the namespace if requested."""
    fact = line.fact
    return {
        **_known(passage=line.passage and asdict(line.passage)),
        "id": str(fact.id),
        "line": line.text,
        "score": fact.score,
        "relevance": fact.relevance,
        "found_by": fact.found_by,
        "summarised": line.summarised,
        "ends_at": None if fact.ends_at is None else shown(fact.ends_at),
        "ends_for": fact.ends_for,
        **_known(explain=fact.explain, namespace=fact.namespace, outdated_by=fact.outdated_by),
    }


def _cut(line: Line, rank: int) -> dict[str, Any]:
    """Return a line over the budget, as an entry of what was left out."""
    fact = line.fact
    origin = _known(namespace=fact.namespace)
    return {"id": str(fact.id), "text": fact.text, "rule": OVER_BUDGET, "score": fact.score, "rank": rank} | origin


NAMES = [one.name for one in fields(Result)]
_fields = attrgetter(*NAMES)


def _result(result: Result) -> dict[str, Any]:
    answer: dict[str, Any] = dict(zip(NAMES, _fields(result), strict=True))
    for name in ("explain", "passage", "relevance", "namespace", "outdated_by"):
        if answer[name] is None:
            del answer[name]
    if result.passage is not None:
        answer["passage"] = asdict(result.passage)
    answer["id"] = str(result.id)
    for name in ("source_date", "created_at", "valid_from", "valid_until", "ends_at"):
        answer[name] = None if answer[name] is None else shown(answer[name])
    if result.kind == "chunk":  # path of the file, and the headings above the chunk
        answer |= {"path": result.source, "section": result.key or ""}
    return answer
