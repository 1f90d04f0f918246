"""The gain from each part of a recall on the conversations of each set, and the loss from each kind of fading."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.benchmarks.conversations import Conversation
from tests.benchmarks.data import AT
from tests.benchmarks.figures import Answers
from tests.benchmarks.libraries import EBB, Ebb, fingerprint
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.passes import let_a_year_pass
from tests.benchmarks.quality.measures import FIRST, Outcome
from tests.benchmarks.quality.measures import recall as share_found
from workers.context import Context
from workers.core import ranking
from workers.core.fidelity import pool
from workers.core.ranking import Vitality
from workers.memory import recall
from workers.memory.recall import arms, pipeline
from workers.memory.recall.arms import TextArm
from workers.storage import vectors
from workers.storage.connection import close_pools


def _no_words(*_: Any, **__: Any) -> Callable[[], TextArm]:
    return TextArm


def _no_meaning(_: Context, questions: Sequence[recall.Question]) -> list[None]:
    return [None] * len(questions)


def _nothing(first: Any, *_: Any) -> Any:
    return np.zeros(len(first))


def _no_prior(vitality: Vitality) -> Any:
    return np.zeros(len(vitality.salience))


PARTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "words": (arms, "send_text", _no_words),
    "meaning": (pipeline, "_embed", _no_meaning),
    "neighbours in the conversation": (ranking, "contiguity", _nothing),
    "beginning with a name in the question": (ranking, "begins_with_name", _nothing),
    "salience, freshness, confidence and importance": (ranking, "prior", _no_prior),
}
"""The parts of a recall, and what stands in for each where it is taken out."""


def measure(machine: Machine, answers: Answers, sets: dict[str, list[Conversation]], model: Path | None) -> None:
    """Measure each set with the default embedder, and with a model if one is given."""
    embedders: dict[str, dict[str, str]] = {"default": {}} | (
        {"local": {"embedder": "local", "embedding_model": str(model)}} if model else {}
    )
    for name, conversations in sets.items():
        for embedder, settings in embedders.items():
            _set(machine, answers, conversations, settings, f"{embedder}, {name}")


def _set(
    machine: Machine, answers: Answers, conversations: Sequence[Conversation], settings: dict[str, str], of: str
) -> None:
    memory = Ebb(machine.create(EBB, **settings))
    for one in conversations:
        memory.fill(one.name, one.turns)
    whole = _shares(memory.context, conversations)
    answers.add_mean(f"recall@10, {of}", "", whole)
    documented = machine.context(EBB, ranking="documented", **settings)
    documented.__dict__["embedder"] = memory.context.embedder  # a model is loaded once
    answers.add_mean(f"recall@10, EBB_RANKING=documented, {of}", "", _shares(documented, conversations))
    for part, (module, name, instead) in PARTS.items():
        with patch.object(module, name, side_effect=instead) as called:
            without = _shares(memory.context, conversations)
        if not called.called:
            raise LookupError(f"A recall does not call {module.__name__}.{name}: {part!r} were not taken out.")
        _compare(answers, f"points that {part} add", without, whole, of)
    changes: dict[str, tuple[Callable[[Context], None], float]] = {
        "a year of decay without use": (let_a_year_pass, 365.0),
        "pooled vectors": (_pool_all, 0.0),
        "signatures only": (fingerprint, 0.0),
    }
    for name, (change, days) in changes.items():
        changed = _copy(machine, memory.context, settings)
        change(changed)
        _compare(answers, f"points that {name} cost", _shares(changed, conversations, days), whole, of)
        close_pools()
    machine.drop("bench_parts_changed")
    machine.drop(EBB)


def _copy(machine: Machine, context: Context, settings: dict[str, str]) -> Context:
    machine.copy(EBB, "bench_parts_changed")
    copied = machine.context("bench_parts_changed", **settings)
    copied.__dict__["embedder"] = context.embedder
    return copied


def _compare(answers: Answers, name: str, changed: Sequence[float], whole: Sequence[float], of: str) -> None:
    """Record the loss of recall@10 in points on the same questions."""
    answers.add_mean(f"{name}, {of}", "points", (100 * (np.array(whole) - np.array(changed))).tolist())


def _shares(context: Context, conversations: Sequence[Conversation], days: float = 0.0) -> list[float]:
    """Return recall@10 of each question."""
    return [
        share_found(Outcome(one, _found(context, one.namespace, one.text, days)))
        for conversation in conversations
        for one in conversation.answerable
    ]


def _found(context: Context, namespace: str, text: str, days: float) -> list[str]:
    results = recall.recall(context, namespace, recall.Question(text, FIRST), AT + timedelta(days=days)).results
    return [result.text for result in results]


def _pool_all(context: Context) -> None:
    """Pool every vector to the smallest size that fading uses."""
    bucket = context.rules.widest_bucket
    with session(context) as db, db.transaction():
        keys = db.execute("select namespace, fact from vectors").fetchall()
        tenants, ids = [key[0] for key in keys], [key[1] for key in keys]
        for places, stored in vectors.read(db, tenants, ids).values():
            there = [(tenants[i], ids[i]) for i in places.tolist()]
            vectors.shrink(db, [one for one, _ in there], [one for _, one in there], [pool(stored, bucket)])
        db.execute("update activity set fidelity = %s", [bucket])
