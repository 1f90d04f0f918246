"""How well recall finds the evidence in real conversations, with every kind of forgetting.

One namespace a conversation, one fact a turn. Of the constants, three were chosen on these conversations: how much a
word as it is written weighs, the share of the hashing embedder's similarity, and what a name gains. Figures without
each conversation in turn show how much hangs on a single one. Chosen on four and tried on the fifth, each in turn, the
last two find 0.725 of the evidence among the first ten with hashing, and 0.750 with MiniLM.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import numpy as np

from tests.benchmarks.data import AT
from tests.benchmarks.figures import Answers, console
from tests.benchmarks.machine import CHECKOUT, Machine, session
from workers import validation
from workers.admin import search_indexes
from workers.context import Context
from workers.core import graph, ranking
from workers.core.fidelity import FINGERPRINT, pool
from workers.core.ranking import Vitality
from workers.decay import passes
from workers.memory import add, embed, recall, store
from workers.memory.recall import arms, pipeline
from workers.memory.recall.arms import TextArm
from workers.storage import vectors
from workers.storage.connection import close_pools, transaction

CONVERSATIONS = CHECKOUT.parent / "shared" / "data" / "locomo-dev.json"
CATEGORIES = (1, 2, 3, 4)
LIMITS = (5, 10, 20)
MONTHS = 12
TARGETS = {"hashing": 0.66, "local": 0.70}


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and the facts that answer it."""

    namespace: str
    text: str
    category: int
    evidence: frozenset[UUID]


def _no_words(*_: Any) -> TextArm:
    return TextArm()


def _no_meaning(*_: Any) -> None:
    return None


def _nothing(first: Any, *_: Any) -> Any:
    return np.zeros(len(first))


def _no_prior(vitality: Vitality) -> Any:
    return np.zeros(len(vitality.salience))


PARTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "words": (arms, "text_arm", _no_words),
    "meaning": (pipeline, "_embed", _no_meaning),
    "what was told beside": (ranking, "contiguity", _nothing),
    "beginning with a name in the question": (graph, "begin_with", _nothing),
    "salience, freshness, belief and importance": (ranking, "prior", _no_prior),
}
"""The parts of a recall, and what stands in for each where it is taken out."""

Found = dict[int, list[float]]
"""By limit: of each question, what share of its evidence was among the first so many results."""


def measure(machine: Machine, answers: Answers, conversations: Path | None, model: Path | None) -> None:
    """Measure with each embedder that can run here; say which cannot, and why."""
    path = conversations or CONVERSATIONS
    if not path.exists():
        console.print(f"  not measured: there are no conversations at {path}; give a file with --conversations")
        answers.details["skipped"] = "no conversations"
        return
    told = json.loads(path.read_text(encoding="utf-8"))
    _embedder(machine, answers, told, "hashing", {})
    if model is None or find_spec("sentence_transformers") is None:
        console.print("  not measured with a model: give its folder with --model, and install ebb-server[local]")
        answers.details["local skipped"] = "no model"
        return
    _embedder(machine, answers, told, "local", {"embedder": "local", "embedding_model": str(model)})


def _embedder(
    machine: Machine, answers: Answers, told: list[dict[str, Any]], embedder: str, settings: dict[str, str]
) -> None:
    original = f"bench_quality_{embedder}"
    asked = _filled(machine.create(original, **settings), told)
    shared = machine.context(original, **settings).embedder
    full = _row(answers, machine.context(original, **settings), asked, f"{embedder}, decay off", shared)
    documented = machine.context(original, ranking="documented", **settings)
    _row(answers, documented, asked, f"{embedder}, ranking=documented", shared)
    answers.add(f"recall@10, {embedder}", "", [full], least=TARGETS[embedder])
    _without_each_part(answers, machine.context(original, **settings), asked, embedder, shared, full)
    _entities(machine, answers, told, embedder, settings, shared)
    changes: dict[str, tuple[Callable[[Context], None], float]] = {
        "every fact pooled": (_pool_all, 0.0),
        "every fact fingerprinted": (_fingerprint_all, 0.0),
        "a year of decay without hits": (_let_a_year_pass, 365.0),
    }
    for name, (change, days) in changes.items():
        machine.copy(original, f"{original}_changed")
        context = machine.context(f"{original}_changed", **settings)
        change(context)
        found = _row(answers, context, asked, f"{embedder}, {name}", shared, days)
        if name != "every fact pooled":
            answers.add(f"points lost, {embedder}, {name}", "points", [(full - found) * 100], most=1.0)
        close_pools()
    machine.drop(f"{original}_changed")
    machine.drop(original)


def _without_each_part(
    answers: Answers, context: Context, asked: Sequence[Query], embedder: str, shared: Any, full: float
) -> None:
    """Measure what each part of a recall wins: the same questions with that part taken out."""
    for part, (module, name, instead) in PARTS.items():
        with patch.object(module, name, instead):
            found = _row(answers, context, asked, f"{embedder}, without {part}", shared)
        answers.add(f"points won by {part}, {embedder}", "points", [(full - found) * 100])


def _entities(
    machine: Machine,
    answers: Answers,
    told: list[dict[str, Any]],
    embedder: str,
    settings: dict[str, str],
    shared: Any,
) -> None:
    """Measure with each turn's speaker as its entity, whom most questions name, with the entities known and not."""
    name = f"bench_quality_{embedder}_entities"
    asked = _filled(machine.create(name, **settings), told, speakers=True)
    known = machine.context(name, **settings)
    unknown = machine.context(name, graph_in_recall="false", **settings)
    found = _row(answers, known, asked, f"{embedder}, speakers as entities", shared)
    without = _row(answers, unknown, asked, f"{embedder}, speakers as entities, graph_in_recall=false", shared)
    answers.add(f"points won by knowing entities, {embedder}", "points", [(found - without) * 100], least=-0.5)
    close_pools()
    machine.drop(name)


def _filled(context: Context, told: list[dict[str, Any]], *, speakers: bool = False) -> list[Query]:
    """Store all conversations, with the speakers as entities or none; return their questions that have evidence."""
    asked = []
    for one in told:
        name, places, places_of = one["conversation"], _places(one["turns"]), {}
        facts = [
            validation.new_fact(
                {"text": f"{turn['speaker']}: {turn['text']}", "session": turn["session"], "turn": place}
                | ({"entity": turn["speaker"]} if speakers else {}),
                65_536,
            )
            for turn, place in zip(one["turns"], places, strict=True)
        ]
        stored = store.store_many(context, name, facts, AT, touch=False, classify=False)
        _embed_the_rest(context)
        for turn, became in zip(one["turns"], stored, strict=True):
            if isinstance(became, add.Stored):
                places_of[turn["id"]] = became.id
        search_indexes.count_lexemes(context, name, AT)
        asked += [_query(name, question, places_of) for question in one["questions"]]
    return [query for query in asked if query.evidence]


def _embed_the_rest(context: Context) -> None:
    """Make the vectors for which a slow embedder had no time while facts were stored."""
    place: embed.Position | None = embed.START
    while place is not None:
        place = embed.embed_pending(context, place, AT)


def _places(turns: Sequence[dict[str, Any]]) -> list[int]:
    """Return each turn's place in its session, from 1."""
    said: dict[Any, int] = {}
    places = []
    for turn in turns:
        said[turn["session"]] = said.get(turn["session"], 0) + 1
        places.append(said[turn["session"]])
    return places


def _query(namespace: str, question: dict[str, Any], ids: dict[str, UUID]) -> Query:
    names = [name for given in question["evidence"] for name in re.split(r"[;\s]+", given)]
    evidence = frozenset(ids[name] for name in names if name in ids)
    return Query(namespace, question["question"], question["category"], evidence)


def _row(
    answers: Answers, context: Context, asked: Sequence[Query], name: str, embedder: Any, days: float = 0.0
) -> float:
    """Measure one state of the memory; return recall@10 over the four categories."""
    context.__dict__["embedder"] = embedder  # a model is loaded once
    at = AT + timedelta(days=days)
    kept = [query for query in asked if query.category in CATEGORIES]
    every = [_shares(context, query, at) for query in asked]
    chosen = [shares for shares, query in zip(every, asked, strict=True) if query.category in CATEGORIES]
    means = {limit: float(np.mean([one[i] for one in chosen])) for i, limit in enumerate(LIMITS)}
    by_conversation = _by_conversation([one[LIMITS.index(10)] for one in chosen], kept)
    answers.details[name] = {
        **{f"recall@{limit}": round(mean, 4) for limit, mean in means.items()},
        "recall@10, all categories": round(float(np.mean([one[LIMITS.index(10)] for one in every])), 4),
        "recall@10 by category": _by_category(every, asked),
        "questions": len(kept),
        **by_conversation,
    }
    shown = ", ".join(f"@{limit} {mean:.4f}" for limit, mean in means.items())
    without = by_conversation["without each conversation"].values()
    console.print(f"  {name}: {shown}; without one conversation {min(without):.4f} to {max(without):.4f}")
    return means[10]


def _shares(context: Context, query: Query, at: Any) -> tuple[float, ...]:
    results = recall.recall(context, query.namespace, recall.Question(query.text, max(LIMITS)), at).results
    found = [result.id for result in results]
    return tuple(len(query.evidence & set(found[:limit])) / len(query.evidence) for limit in LIMITS)


def _by_conversation(shares: Sequence[float], asked: Sequence[Query]) -> dict[str, dict[str, float]]:
    values, names = np.array(shares), np.array([query.namespace for query in asked])
    different = sorted(set(names.tolist()))
    return {
        "recall@10 by conversation": {name: round(float(values[names == name].mean()), 4) for name in different},
        "without each conversation": {name: round(float(values[names != name].mean()), 4) for name in different},
    }


def _by_category(every: Sequence[tuple[float, ...]], asked: Sequence[Query]) -> dict[str, float]:
    categories = sorted({query.category for query in asked})
    at_ten = np.array([one[LIMITS.index(10)] for one in every])
    of = np.array([query.category for query in asked])
    return {str(category): round(float(at_ten[of == category].mean()), 4) for category in categories}


def _pool_all(context: Context) -> None:
    """Pool every vector as far as fading ever does."""
    bucket = context.rules.widest_bucket
    with transaction(context.database_url) as db:
        keys = db.execute("select namespace, fact from vectors").fetchall()
        tenants, ids = [key[0] for key in keys], [key[1] for key in keys]
        for dims, (places, stored) in vectors.read(db, tenants, ids).items():
            there = [(tenants[i], ids[i]) for i in places.tolist()]
            pooled = list(pool(stored, bucket))
            vectors.write(db, [one for one, _ in there], [one for _, one in there], [dims] * len(there), pooled)
        db.execute("update activity set fidelity = %s", [bucket])


def _fingerprint_all(context: Context) -> None:
    with session(context) as db:
        db.execute("truncate vectors")
        db.execute("update activity set fidelity = %s", [FINGERPRINT])


def _let_a_year_pass(context: Context) -> None:
    """Run a pass a month; nobody recalls anything meanwhile."""
    for month in range(1, MONTHS + 1):
        run = uuid4()
        for part in passes.plan(context, run, AT + timedelta(days=365 * month / MONTHS)):
            passes.apply(context, part, lambda: None)
        passes.finish(context, run)
