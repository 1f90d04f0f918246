"""The project's own conversations: the shipped sample year, and three made for measuring recall."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.conversations.conversation import (
    BEGIN,
    MAX_TEXT,
    Change,
    Conversation,
    Turn,
    in_order,
    moved,
    question,
    texts,
)
from tests.benchmarks.machine import CHECKOUT
from workers.validation.facts import new_fact

SAMPLE = CHECKOUT / "api" / "sample" / "year.jsonl"
SAMPLE_QUESTIONS = CHECKOUT / "tests" / "acceptance" / "sample_questions.json"
SMALL = Path(__file__).with_name("small.json")


def year() -> Conversation:
    """Return the shipped sample year with its questions."""
    lines = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    turns = {
        line["text"]: Turn(datetime.fromisoformat(line["source_date"]), new_fact(line, MAX_TEXT)) for line in lines
    }
    questions = json.loads(SAMPLE_QUESTIONS.read_text(encoding="utf-8"))
    asked = [question("sample", one["question"], [turns[one["text"]]]) for one in questions]
    return moved(Conversation("sample", in_order(turns.values()), asked))


def small() -> list[Conversation]:
    """Return three short conversations of different kinds: two people, a user with an assistant, a user's notes."""
    return [_conversation(one) for one in json.loads(SMALL.read_text(encoding="utf-8"))]


def _conversation(source: dict[str, Any]) -> Conversation:
    turns = {}
    for number, (id_, session, role, text) in enumerate(source["turns"]):
        fact = new_fact({"text": text, "role": role, "session": session, "turn": number}, MAX_TEXT)
        turns[id_] = Turn(BEGIN + timedelta(days=7 * session, minutes=number), fact, role)
    asked = []
    for one in source["questions"]:
        newer, older = (texts(turns[id_] for id_ in one.get(name, [])) for name in ("newer", "older"))
        changes = [Change(newer, older)] if newer else []
        evidence = [turns[id_] for id_ in one["evidence"]]
        asked.append(question(source["name"], one["question"], evidence, one["kind"], changes))
    return Conversation(source["name"], list(turns.values()), asked, tuple(source.get("speakers", ())))
