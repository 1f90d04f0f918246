"""REALTALK: what pairs of real people wrote each other over three weeks (Lee et al., 2025), a file for each pair.

The folder is `data` of the public repository.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.conversations.conversation import MAX_TEXT, Conversation, Turn, in_order, moved, question
from workers.validation.facts import new_fact

TUNING = 5
"""Constants are chosen on the first chats only; the others judge."""

KINDS = {1: "multi-hop", 2: "temporal", 3: "commonsense"}
WRITTEN_AT = "%d.%m.%Y, %H:%M:%S"


def read(folder: Path, *, judging: bool = False) -> list[Conversation]:
    """Return the chats for tuning, or those for judging; each turn is a text that begins with its speaker."""
    files = sorted(folder.glob("Chat_*.json"), key=_number)
    return [moved(_chat(file)) for file in files if (_number(file) > TUNING) == judging]


def _number(file: Path) -> int:
    return int(file.stem.split("_")[1])


def _chat(file: Path) -> Conversation:
    source = json.loads(file.read_text(encoding="utf-8"))
    turns = dict(_turns(source))
    asked = []
    for one in source["qa"]:
        evidence = [turns[id_] for id_ in one.get("evidence", []) if id_ in turns]
        asked.append(question(file.stem, one["question"], evidence, KINDS[one["category"]]))
    speakers = tuple(dict.fromkeys(turn.fact.text.partition(":")[0] for turn in turns.values()))
    return Conversation(file.stem, in_order(turns.values()), [one for one in asked if one.evidence], speakers)


def _turns(source: dict[str, Any]) -> Iterator[tuple[str, Turn]]:
    """Yield the messages that have a text, with their ids."""
    for session in (name for name in source if name.removeprefix("session_").isdecimal()):
        said = [one for one in source[session] if one["clean_text"].strip()]
        for place, one in enumerate(said, start=1):
            text = f"{one['speaker']}: {one['clean_text'].strip()}"
            fact = new_fact({"text": text, "session": session, "turn": place}, MAX_TEXT)
            yield one["dia_id"], Turn(datetime.strptime(one["date_time"], WRITTEN_AT).replace(tzinfo=UTC), fact)
