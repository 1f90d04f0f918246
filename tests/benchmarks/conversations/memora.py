"""Memora: months of short sessions in which a user adds, changes and withdraws information (Apache-2.0).

The folder is one of the periods, such as `data/weekly` of the public repository. A question names the sessions that
hold its evidence, and those that withdrew or replaced something; within a session, what the user wanted remembered is
marked.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.conversations.conversation import MAX_TEXT, Change, Conversation, Turn, moved, question, texts
from workers.validation.facts import new_fact

TUNING = 5
"""Constants are chosen on the first personas by name only; the others judge."""

ROLES = {"user_agent": "user", "ai_agent": "assistant"}
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Session:
    """The turns of a session, and those that the user wants to be remembered."""

    turns: list[Turn]
    marked: list[Turn]


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of evidence: its sessions, and its values."""

    sessions: list[int]
    values: list[str]


def read(folder: Path, *, judging: bool = False) -> list[Conversation]:
    """Return the personas for tuning, or those for judging."""
    personas = sorted(one for one in folder.iterdir() if (one / "conversations").is_dir())
    chosen = personas[TUNING:] if judging else personas[:TUNING]
    return [moved(_persona(one, f"{folder.name} {one.name}")) for one in chosen]


def _persona(folder: Path, name: str) -> Conversation:
    sessions = {
        source["session_id"]: _session(source)
        for source in (
            json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "conversations").glob("*.json"))
        )
    }
    asked = []
    (path,) = folder.glob("evaluation_questions_*.json")
    for kind, questions in json.loads(path.read_text(encoding="utf-8"))["questions"].items():
        for one in questions:
            evidence = [turn for item in _items(one["memory_evidence"]) for turn in _turns_of(item, sessions)]
            changes = [
                change
                for item in _items(one.get("forgetting_evidence", {}))
                if (change := _change(item, sessions)) is not None
            ]
            if evidence:
                asked.append(question(name, one["question"], evidence, kind, changes))
    return Conversation(name, [turn for session in sessions.values() for turn in session.turns], asked)


def _session(source: dict[str, Any]) -> Session:
    begin = datetime.fromisoformat(source["date"]).replace(tzinfo=UTC) + source["session_id"] % 100 * 10 * MINUTE
    turns, marked = [], []
    for place, message in enumerate(source["conversation"], start=1):
        role = ROLES[message["speaker"]]
        given = {"text": message["message"], "role": role, "session": source["session_id"], "turn": place}
        if not message["message"].strip():
            continue
        turns.append(Turn(begin + place * MINUTE / 10, new_fact(given, MAX_TEXT), role))
        if message["share_memory"]:
            marked.append(turns[-1])
    return Session(turns, marked)


def _items(value: Any) -> Iterator[Item]:
    """Yield every piece of evidence in nested lists and objects: objects that name sessions."""
    match value:
        case {"session_id": int() as session}:
            yield Item([session], list(_values({name: one for name, one in value.items() if name != "session_id"})))
        case {"session_history": list() as sessions}:
            yield Item(sessions, list(_values({name: one for name, one in value.items() if name != "session_history"})))
        case dict():
            for one in value.values():
                yield from _items(one)
        case list():
            for one in value:
                yield from _items(one)


def _values(value: Any) -> Iterator[str]:
    """Yield the values of a piece of evidence, numbers as people write them."""
    match value:
        case bool() | None:
            return
        case int() | float():
            yield f"{value:,}"
            yield str(value)
        case str():
            yield value
        case dict() | list():
            for one in value.values() if isinstance(value, dict) else value:
                yield from _values(one)


def _turns_of(item: Item, sessions: dict[int, Session]) -> list[Turn]:
    """Return the marked turns with most of an item's values; all of them if none has any."""
    marked = [turn for number in item.sessions if number in sessions for turn in sessions[number].marked]
    said = [_said(turn, item.values) for turn in marked]
    if len(item.sessions) > 1:
        return [turn for turn, count in zip(marked, said, strict=True) if count] or marked
    return [turn for turn, count in zip(marked, said, strict=True) if count == max(said)]


def _said(turn: Turn, values: Sequence[str]) -> int:
    text = turn.fact.text.lower()
    return sum(value.lower().strip(" .") in text for value in values)


def _change(item: Item, sessions: dict[int, Session]) -> Change | None:
    """Return the turns that withdraw or replace something, and the earlier statements; empty without such turns."""
    (number,) = item.sessions
    newer = texts(_turns_of(item, sessions))
    earlier = [turn for other, session in sessions.items() if other < number for turn in session.marked]
    stated = [turn for turn in earlier if _said(turn, item.values)]
    older = texts(stated[-1:]) - newer
    return Change(newer, older) if newer and older else None
