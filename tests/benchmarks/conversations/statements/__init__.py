"""Single statements of a person, or notes about a person, a project or customers, with questions that paraphrase them.

Each file has its facts, and questions as (kind, question, indexes of the facts that answer it); one of the kind
`nothing` has none. Files of the part `tuning` may be used to choose parameters, those of `judging` only to check them.
"""

import json
from datetime import timedelta
from pathlib import Path

from tests.benchmarks.conversations.conversation import BEGIN, MAX_TEXT, Conversation, Turn, question
from workers.validation.facts import new_fact

FOLDER = Path(__file__).parent


def read(*, judging: bool) -> list[Conversation]:
    """Return the namespaces of one part."""
    part = "judging" if judging else "tuning"
    sources = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return [_conversation(one["name"], one["facts"], one["questions"]) for one in sources if one["part"] == part]


def _conversation(name: str, facts: list[str], questions: list[tuple[str, str, list[int]]]) -> Conversation:
    turns = [
        Turn(BEGIN + timedelta(days=place), new_fact({"text": text}, MAX_TEXT)) for place, text in enumerate(facts)
    ]
    namespace = f"statements-{name}"
    asked = [question(namespace, text, [turns[place] for place in answers], kind) for kind, text, answers in questions]
    return Conversation(namespace, turns, asked)
