"""Answers of tools, shortened to save an agent's tokens."""

import re
from collections.abc import Mapping
from typing import Any

from api.transport import Answer

SHOWN = (
    "id", "text", "passage", "outdated_by", "relevance", "confidence", "role", "said", "tags", "category", "entity",
    "key", "value", "session", "source", "valid_from", "valid_until", "ends_at", "ends_for", "reason", "forgotten_at",
    "restorable_until", "run", "ended_at", "pinned", "deep", "tier",
)  # fmt: skip
"""Fields of a fact that agents see, if they are not empty."""

NOT_IN_ANSWERS_TO_QUESTIONS = ("ends_for", "tier", "session")
MOST_EVENTS = 100
"""Maximum number of events of a fact, which may have thousands."""

FIRST = 10
"""Number of facts in the preview of forgetting by subject."""

INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)")
INSTANTS = re.compile(r"at|since|until|.*_(?:at|until|from)")


def whole(answer: Answer) -> Answer:
    """Return an answer without empty values, with instants in whole seconds."""
    kept = {name: _instant(name, _whole(value)) for name, value in answer.items()}
    return {name: value for name, value in kept.items() if value not in (None, [], {})}


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return whole(value) if isinstance(value, dict) else value


def facts(answer: Answer, without: tuple[str, ...] = ()) -> Answer:
    """Return a page of shortened facts, with total and cursor."""
    listed = answer.get("facts", answer.get("results", answer.get("held")))
    shown = [_fact(one, without) for one in listed or ()]
    others = {name: answer.get(name) for name in ("total", "next", "deep", "why")}
    words_alone = {"by_meaning": False} if answer.get("by_meaning") is False else {}
    return {"facts": shown, **whole(others), **words_alone}


def found(answer: Answer) -> Answer:
    """Return the facts that answer a question, long ones by their passage, with a confidence that is below 1."""
    return facts(answer, NOT_IN_ANSWERS_TO_QUESTIONS)


def injected(answer: Answer) -> Answer:
    """Return the block of text for a prompt."""
    few = {name: answer[name] for name in ("context", "deep", "over_budget") if answer.get(name) not in (None, 0)}
    return {"context": "", **few, "ids": [one["id"] for one in answer.get("facts", ())]}


def stored(answer: Answer) -> Answer:
    """Return the outcome of a fact; `embedded` only if it is false."""
    return whole({name: value for name, value in answer.items() if (name, value) != ("embedded", True)})


def history(answer: Answer) -> Answer:
    """Return the first and the newest events of a fact, and how many between them are left out."""
    first, *later = answer["events"]
    newest = later[1 - MOST_EVENTS :]
    shown = whole({**answer, "events": [first, *newest]})
    return shown | ({"left_out": len(later) - len(newest)} if len(later) > len(newest) else {})


def forgot(answer: Answer) -> Answer:
    """Return the outcomes by ids, or the number of facts of a subject, the first ones, and how to restore them."""
    if answer.get("matching") is None:
        return whole(answer)
    receipt = {"restore": {"run": answer["run"], "reason": "asked"}} if answer.get("done") else {}
    counts = {name: answer.get(name) for name in ("matching", "done", "kept", "left")}
    return whole({**counts, "facts": answer["results"][:FIRST], **receipt})


def remembered(answer: Answer) -> Answer:
    """Return the numbers of new and known turns, the messages with nothing to store, and the errors."""
    errors = [one["error"] for one in answer["turns"] if "error" in one]
    return {
        "added": answer["added"],
        "known": len(answer["turns"]) - answer["added"] - len(errors),
        **whole({"nothing to store in": answer.get("left_out"), "errors": errors}),
    }


def _fact(fact: Mapping[str, Any], without: tuple[str, ...]) -> Answer:
    """Return a shortened fact, with its passage in place of a long text."""
    given = {**fact, "said": str(fact.get("source_date") or fact.get("created_at") or "")[:10]}
    if given.get("passage"):
        given["passage"], given["text"] = given["passage"]["text"], None
    if given.get("relevance"):
        given["relevance"] = round(given["relevance"], 2)
    if given.get("confidence") == 1:
        given["confidence"] = None
    shown = [name for name in SHOWN if name not in without and given.get(name) not in ("", None)]
    return whole({name: given[name] for name in shown if given[name] is not False})


def _instant(name: str, value: Any) -> Any:
    found = INSTANT.fullmatch(value) if isinstance(value, str) and INSTANTS.fullmatch(name) else None
    return f"{found[1]}Z" if found else value
