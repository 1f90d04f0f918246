"""Conversations with questions whose evidence is known: those of a file, else the shipped sample year.

Each is moved in time so that it begins a year before the present of all generated data.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ebb.contract.facts import NewFact

from tests.benchmarks.data import AT
from tests.benchmarks.machine import CHECKOUT
from workers import validation

SAMPLE = CHECKOUT / "api" / "sample" / "year.jsonl"
SAMPLE_QUESTIONS = CHECKOUT / "tests" / "acceptance" / "sample_questions.json"
CATEGORIES = (1, 2, 3, 4)
TOLD_AT = "%I:%M %p on %d %B, %Y"
MAX_TEXT = 65_536
BEGIN = AT - timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was told, and when."""

    at: datetime
    fact: NewFact


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a conversation, the texts that answer it, and when the last of them was told."""

    namespace: str
    text: str
    evidence: frozenset[str]
    answerable_since: datetime


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was told in one namespace, oldest first, and what is asked about it."""

    name: str
    turns: list[Turn]
    asked: list[Asked]


def read(path: Path | None) -> tuple[str, list[Conversation]]:
    """Return the conversations of a file in LoCoMo's form, or the shipped sample, and what they are called."""
    if path is None:
        return "the shipped sample year", [_moved(_sample())]
    told = json.loads(path.read_text(encoding="utf-8"))
    return path.name, [_moved(_conversation(one)) for one in told]


def _moved(one: Conversation) -> Conversation:
    by = BEGIN - one.turns[0].at
    turns = [replace(turn, at=turn.at + by) for turn in one.turns]
    asked = [replace(question, answerable_since=question.answerable_since + by) for question in one.asked]
    return Conversation(one.name, turns, asked)


def _conversation(told: dict[str, Any]) -> Conversation:
    turns, places = {}, dict[Any, int]()
    for turn in told["turns"]:
        session = turn["session"]
        places[session] = places.get(session, 0) + 1
        said = {"text": f"{turn['speaker']}: {turn['text']}", "session": session, "turn": places[session]}
        at = datetime.strptime(turn["time"], TOLD_AT).replace(tzinfo=UTC)
        turns[turn["id"]] = Turn(at, validation.new_fact(said, MAX_TEXT))
    name = told["conversation"]
    questions = [one for one in told["questions"] if one["category"] in CATEGORIES]
    asked = [_asked(name, one["question"], turns, _names(one)) for one in questions]
    return Conversation(name, _in_order(turns.values()), [one for one in asked if one])


def _names(question: dict[str, Any]) -> list[str]:
    return [name for given in question["evidence"] for name in re.split(r"[;\s]+", given)]


def _asked(namespace: str, text: str, turns: dict[str, Turn], names: Sequence[str]) -> Any:
    evidence = [turns[name] for name in names if name in turns]
    if not evidence:
        return None
    texts = frozenset(turn.fact.text for turn in evidence)
    return Asked(namespace, text, texts, max(turn.at for turn in evidence))


def _sample() -> Conversation:
    lines = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    turns = {
        line["text"]: Turn(datetime.fromisoformat(line["source_date"]), validation.new_fact(line, MAX_TEXT))
        for line in lines
    }
    questions = json.loads(SAMPLE_QUESTIONS.read_text(encoding="utf-8"))
    asked = [_asked("sample", one["question"], turns, [one["text"]]) for one in questions]
    return Conversation("sample", _in_order(turns.values()), asked)


def _in_order(turns: Any) -> list[Turn]:
    return sorted(turns, key=lambda turn: turn.at)
