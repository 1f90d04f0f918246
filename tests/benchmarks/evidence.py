"""How much of the evidence for real questions libraries find, with Ebb's own embedder in all of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks import conversations, libraries
from tests.benchmarks.conversations import Conversation
from tests.benchmarks.figures import Answers, console
from tests.benchmarks.libraries import Ebb, Library
from tests.benchmarks.machine import Machine

LIMITS = (5, 10, 20)
NOTE = "each text alone, one namespace a conversation, no LLM, the same embedder in all"
IN_SESSIONS = "told with their sessions and places in them, for which the others have no word"


def measure(machine: Machine, answers: Answers, path: Path | None) -> None:
    """Ask every question of each library that is installed."""
    what, told = conversations.read(path)
    questions = sum(len(one.asked) for one in told)
    answers.details["of"] = {"what": what, "namespaces": len(told), "questions": questions}
    console.print(f"  {what}: {len(told)} namespaces, {questions} questions")
    for name, library in libraries.opened(machine, answers):
        for one in told:
            library.add_many(one.name, list(dict.fromkeys(turn.fact.text for turn in one.turns)))
        _tell(answers, name, library, told, NOTE)
        if isinstance(library, Ebb):
            beside = [Conversation(f"{one.name} in sessions", one.turns, one.asked) for one in told]
            for one in beside:
                library.tell(one.name, one.turns)
            _tell(answers, f"{name}, told in sessions", library, beside, IN_SESSIONS)


def _tell(answers: Answers, name: str, library: Library, told: Sequence[Conversation], note: str) -> None:
    shares = np.array([_shares(library, one.name, question) for one in told for question in one.asked])
    means = dict(zip(LIMITS, shares.mean(axis=0).tolist(), strict=True))
    answers.details[name] = {f"recall@{limit}": round(mean, 4) for limit, mean in means.items()}
    answers.add(f"evidence recall@10, {name}", "", [means[10]], note=note)


def _shares(library: Library, namespace: str, asked: conversations.Asked) -> list[float]:
    found = library.search(namespace, asked.text, max(LIMITS))
    return [len(asked.evidence & set(found[:limit])) / len(asked.evidence) for limit in LIMITS]
