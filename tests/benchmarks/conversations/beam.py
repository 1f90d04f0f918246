"""BEAM: long chats with an assistant, and questions of ten abilities with the messages that answer them.

The folder is that of the chats of one size, such as `chats/100K` of the public repository.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.conversations.conversation import MAX_TEXT, Change, Conversation, Turn, moved, question, texts
from workers.validation.facts import new_fact

TUNING = 10
"""Constants are chosen on the first chats only; the others judge."""

LEFT_OUT = "summarization"
UNANSWERABLE = "abstention"
LABEL = re.compile(r"\s*->->[\s\d,.]*$")
"""What the generator left at the end of a message."""

ANCHOR = "%B-%d-%Y"
MINUTE = timedelta(minutes=1)


def read(folder: Path, *, judging: bool = False) -> list[Conversation]:
    """Return the chats for tuning, or those for judging."""
    numbers = sorted(int(one.name) for one in folder.iterdir() if one.name.isdecimal())
    chosen = [number for number in numbers if (number > TUNING) == judging]
    return [moved(_chat(folder / str(number), f"{folder.name} {number}")) for number in chosen]


def _chat(folder: Path, name: str) -> Conversation:
    turns = _turns(json.loads((folder / "chat.json").read_text(encoding="utf-8")))
    probing = json.loads((folder / "probing_questions" / "probing_questions.json").read_text(encoding="utf-8"))
    asked = []
    for kind, questions in probing.items():
        for one in questions:
            evidence = [turns[id_] for id_ in dict.fromkeys(_numbers(one.get("source_chat_ids"))) if id_ in turns]
            if kind == UNANSWERABLE or (kind != LEFT_OUT and evidence):
                asked.append(question(name, one["question"], evidence, kind, _changes(one, turns)))
    return Conversation(name, list(turns.values()), asked, ())


def _turns(batches: Sequence[dict[str, Any]]) -> dict[int, Turn]:
    """Return the messages by their ids; one without a date is dated a minute after the previous one.

    One of them has a few words and hundreds of thousands of blanks: it is cut to the limit of a fact.
    """
    turns: dict[int, Turn] = {}
    at = datetime.min.replace(tzinfo=UTC)
    for batch in batches:
        for number, messages in enumerate(batch["turns"]):
            for message in messages:
                at = max(at + MINUTE, _date(message) or at)
                text = LABEL.sub("", message["content"]).encode()[:MAX_TEXT].decode(errors="ignore").strip()
                place = {"session": f"{batch['batch_number']}.{number}", "turn": message["id"]}
                fact = new_fact({"text": text, "role": message["role"], **place}, MAX_TEXT)
                turns[message["id"]] = Turn(at, fact, message["role"])
    return turns


def _date(message: dict[str, Any]) -> datetime | None:
    try:
        return datetime.strptime(message.get("time_anchor") or "", ANCHOR).replace(tzinfo=UTC)
    except ValueError:
        return None


def _numbers(value: Any) -> Iterator[int]:
    """Yield every number in nested lists and objects."""
    match value:
        case int():
            yield value
        case dict():
            for one in value.values():
                yield from _numbers(one)
        case list():
            for one in value:
                yield from _numbers(one)


def _changes(one: dict[str, Any], turns: dict[int, Turn]) -> list[Change]:
    """Return which messages update which earlier ones."""
    sources = one.get("source_chat_ids")
    if not isinstance(sources, dict) or "updated_info" not in sources:
        return []
    newer, older = (
        texts(turns[id_] for id_ in _numbers(sources[name]) if id_ in turns)
        for name in ("updated_info", "original_info")
    )
    return [Change(newer - older, older - newer)] if newer - older and older - newer else []
