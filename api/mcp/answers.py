"""Answers of tools: what an agent needs of them, for each word costs it tokens."""

import re
from collections.abc import Mapping
from typing import Any

from api.transport import Answer

SHOWN = (
    "id", "text", "passage", "relevance", "confidence", "role", "said", "tags", "category", "entity", "key", "value",
    "session", "source", "valid_from", "valid_until", "ends_at", "ends_for", "reason", "forgotten_at",
    "restorable_until", "run", "ended_at", "pinned", "deep", "tier", "explain",
)  # fmt: skip
"""What an agent sees of a fact, where there is anything to see."""

NOT_IN_ANSWERS_TO_QUESTIONS = ("ends_for", "tier", "session", "confidence")
FIRST = 10
"""How many facts of a subject an agent sees before they are forgotten."""

INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)")
INSTANTS = re.compile(r"at|since|until|.*_(?:at|until|from)")


def whole(answer: Any) -> Any:
    """Return an answer without what it leaves open, with instants in whole seconds."""
    if isinstance(answer, list):
        return [whole(one) for one in answer]
    if isinstance(answer, dict):
        kept = {name: _instant(name, whole(value)) for name, value in answer.items()}
        return {name: value for name, value in kept.items() if value not in (None, [], {})}
    return answer


def facts(answer: Answer, *without: str) -> Answer:
    """Return a page of facts, each with what an agent needs, and what says that there are more."""
    found = answer.get("facts", answer.get("results", answer.get("held")))
    shown = [_fact(one, without) for one in found or ()]
    others = {name: answer.get(name) for name in ("total", "next", "deep", "left_out", "why")}
    words_alone = {"by_meaning": False} if answer.get("by_meaning") is False else {}
    return {"facts": shown, **whole(others), **words_alone}


def recalled(answer: Answer) -> Answer:
    """Return recalled facts, of a long one the passage that fits."""
    return facts(answer, *NOT_IN_ANSWERS_TO_QUESTIONS)


def looked_up(answer: Answer) -> Answer:
    """Return the facts about an entity; how sure they are is said where they are not quite."""
    return facts(answer, "ends_for", "tier", "session")


def injected(answer: Answer) -> Answer:
    """Return the block of text for a prompt."""
    few = {name: answer[name] for name in ("context", "deep") if answer.get(name) not in (None, 0)}
    return {"context": "", **few, "ids": [one["id"] for one in answer.get("facts", ())]}


def stored(answer: Answer) -> Answer:
    """Return what became of a fact; that it has its vector is nothing to know of."""
    kept: Answer = whole({name: value for name, value in answer.items() if (name, value) != ("embedded", True)})
    return kept


def forgot(answer: Answer) -> Answer:
    """Return what became of facts by their ids, or how many fit a subject, the first of them, and how to restore."""
    if answer.get("matching") is None:
        return answer
    receipt = {"restore": {"run": answer["run"], "reason": "asked"}} if answer.get("done") else {}
    counts = {name: answer.get(name) for name in ("matching", "done", "left")}
    kept: Answer = whole({**counts, "facts": answer["results"][:FIRST], **receipt})
    return kept


def remembered(answer: Answer) -> Answer:
    """Return how many turns are new, how many were known, and what was wrong with others."""
    errors = [one["error"] for one in answer["turns"] if "error" in one]
    return {
        "added": answer["added"],
        "known": len(answer["turns"]) - answer["added"] - len(errors),
        **whole({"errors": errors}),
    }


def _fact(fact: Mapping[str, Any], without: tuple[str, ...]) -> Answer:
    """Return what there is to see of a fact, of a long one the passage that fits a question in place of its text."""
    given = {**fact, "said": str(fact.get("source_date") or fact.get("created_at") or "")[:10]}
    if given.get("passage"):
        given["passage"], given["text"] = given["passage"]["text"], None
    if given.get("relevance"):
        given["relevance"] = round(given["relevance"], 2)
    if given.get("confidence") == 1:
        given["confidence"] = None
    kept: Answer = whole({name: given[name] for name in SHOWN if name not in without and given.get(name)})
    return kept


def _instant(name: str, value: Any) -> Any:
    found = INSTANT.fullmatch(value) if isinstance(value, str) and INSTANTS.fullmatch(name) else None
    return f"{found[1]}Z" if found else value
