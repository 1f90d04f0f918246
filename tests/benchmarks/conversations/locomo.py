"""LoCoMo: long conversations of two people (Maharana et al., 2024), one file of several."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.conversations.conversation import MAX_TEXT, Conversation, Turn, in_order, moved, question
from workers.validation.facts import new_fact

KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
STATED_AT = "%I:%M %p on %d %B, %Y"


def read(path: Path) -> list[Conversation]:
    """Return the conversations of a file; each turn is a text that begins with its speaker."""
    return [moved(_conversation(one)) for one in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(source: dict[str, Any]) -> Conversation:
    name, turns = source["conversation"], _turns(source["turns"])
    asked = [
        question(name, one["question"], [turns[id_] for id_ in _evidence(one) if id_ in turns], KINDS[one["category"]])
        for one in source["questions"]
        if one["category"] in KINDS
    ]
    speakers = tuple(dict.fromkeys(turn["speaker"] for turn in source["turns"]))
    return Conversation(name, in_order(turns.values()), [one for one in asked if one.evidence], speakers)


def _turns(source: list[dict[str, Any]]) -> dict[str, Turn]:
    turns, places = {}, dict[Any, int]()
    for turn in source:
        session = turn["session"]
        places[session] = places.get(session, 0) + 1
        text = f"{turn['speaker']}: {turn['text']}"
        fact = new_fact({"text": text, "session": session, "turn": places[session]}, MAX_TEXT)
        turns[turn["id"]] = Turn(datetime.strptime(turn["time"], STATED_AT).replace(tzinfo=UTC), fact)
    return turns


def _evidence(one: dict[str, Any]) -> list[str]:
    """Return the ids of a question's evidence, which may be joined as in "D8:6; D9:17"."""
    return [id_ for given in one["evidence"] for id_ in re.split(r"[;\s]+", given)]
