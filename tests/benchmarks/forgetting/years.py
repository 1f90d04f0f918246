"""What a year of decay costs in recall and saves in bytes, against forgetting as many facts at random."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from os import cpu_count, getpid
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from tests.benchmarks import conversations, data
from tests.benchmarks.conversations import Asked, Conversation
from tests.benchmarks.data import AT
from tests.benchmarks.figures import Answers, console
from tests.benchmarks.forgetting import year
from tests.benchmarks.forgetting.year import Life
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.quality import measures
from tests.benchmarks.quality.measures import FIRST, Outcome
from workers.admin import search_indexes
from workers.context import Context
from workers.memory import forget, recall
from workers.storage.connection import close_pools

WHOLE = "bench_year_whole"
PLACEBOS = 3
OFF, FADING = "decay off", "fading, no recalls"
LIVES: dict[str, Life] = {
    OFF: Life("off"),
    FADING: Life("fading"),
    "lifetimes, no recalls": Life("lifetimes"),
    "lifetimes, words of facts asked once a day": Life("lifetimes", "words of facts", 1.0),
    "lifetimes, other questions asked once a day": Life("lifetimes", "other questions", 1.0),
}
"""The years that are compared, by what they are called; the first one keeps everything."""

LIVE = """
    select namespaces.name, facts.id from facts
    join namespaces on namespaces.id = facts.namespace
    where forgotten_at is null order by 1, 2
"""

FIDELITIES = """
    select case fidelity when 1 then 'full' when 32767 then 'fingerprint' else 'pooled' end, count(*)
    from activity where not retired group by 1
"""

BYTES = """
    select sum(pg_total_relation_size(oid)) from pg_class
    where relname = any(%s) and relnamespace = 'public'::regnamespace
"""

FADING_NOTE = "kept without lifetimes, as `ebb import` does: nothing is forgotten, the vectors of unused facts go"
NOTES = {
    "lifetimes, words of facts": "3 to 8 words of facts, drawn by Zipf and recency without sight of the questions",
    "lifetimes, other questions": "asked every second question during the year, measured by the others, and conversely",
}


@dataclass(frozen=True, slots=True)
class State:
    """The state of a memory after a year: recall@10, facts left, bytes."""

    recall: float
    live: dict[str, int]
    bytes: int
    fidelity: dict[str, int]

    @property
    def facts(self) -> int:
        """Return the number of facts left."""
        return sum(self.live.values())

    def summary(self, without: "State") -> dict[str, Any]:
        """Return the state in words, compared with that without decay."""
        return {
            "recall@10": round(self.recall, 4),
            "facts left": self.facts,
            "facts forgotten, %": round(100 * (1 - self.facts / without.facts), 1),
            "bytes": self.bytes,
            "bytes saved, %": round(saved(without, self), 1),
            "points lost at 10": round(lost(without, self), 2),
            "facts by fidelity": self.fidelity,
        }


def measure(machine: Machine, answers: Answers, path: Path | None) -> None:
    """Simulate the same year with decay off and on, with several kinds of requests; also forget equally many at random.

    Each year has its own database, and one runs per core.
    """
    name, all_conversations = conversations.read(path)
    questions = sum(len(one.asked) for one in all_conversations)
    facts = sum(len(one.turns) for one in all_conversations)
    console.print(
        f"  {name}: {len(all_conversations)} namespaces, {facts} facts, {questions} questions; seed {year.SEED}"
    )
    answers.details["year of"] = {"what": name, "facts": facts, "questions": questions, "seed": year.SEED}
    with ProcessPoolExecutor(cpu_count(), mp_context=get_context("spawn")) as processes:
        running = {what: processes.submit(_lived, machine, all_conversations, life) for what, life in LIVES.items()}
        states = {what: one.result() for what, one in _each(answers, running)}
        chance = {
            what: [
                processes.submit(_placebo, machine, all_conversations, states[what], seed) for seed in range(PLACEBOS)
            ]
            for what, life in LIVES.items()
            if life.asking != "none"
        }
        random = {what: [one.result() for one in seeds] for what, seeds in chance.items()}
    _add_figures(answers, states, random, f"{name}, {questions} questions")
    machine.drop(WHOLE)


def _each(answers: Answers, running: Mapping[str, Future[State]]) -> Iterator[tuple[str, Future[State]]]:
    """Print each state as soon as it is known, compared with the first."""
    off = running[OFF].result()
    for name, one in running.items():
        state = one.result()
        answers.details[name] = state.summary(off)
        console.print(f"  {name}: {state.recall:.4f}; {state.facts} facts, {state.bytes:,} bytes")
        yield name, one


def _add_figures(answers: Answers, states: Mapping[str, State], random: Mapping[str, Sequence[State]], of: str) -> None:
    off, faded = states[OFF], states[FADING]
    answers.add("recall@10 after a year, decay off", "", [off.recall], note=of)
    answers.add(f"points lost, {FADING}", "points", [lost(off, faded)], most=1.0, note=FADING_NOTE)
    answers.add(f"bytes saved, {FADING}", "%", [saved(off, faded)])
    for name, state in states.items():
        if name.startswith("lifetimes"):
            answers.add(f"facts forgotten, {name}", "%", [100 * (1 - state.facts / off.facts)])
            answers.add(f"bytes saved, {name}", "%", [saved(off, state)])
            answers.add(
                f"points lost, {name}", "points", [lost(off, state)], note=NOTES.get(name.split(" asked")[0], "")
            )
        if placebos := random.get(name):
            answers.details[f"as many forgotten at random as by {name}"] = [one.summary(off) for one in placebos]
            chance = [lost(off, one) for one in placebos]
            answers.add(f"points lost, as many facts forgotten at random as by {name}", "points", chance)


def lost(off: State, state: State) -> float:
    """Return the loss of recall@10 in points."""
    return 100 * (off.recall - state.recall)


def saved(off: State, state: State) -> float:
    """Return the share of saved bytes in percent."""
    return 100 * (1 - state.bytes / off.bytes)


def _placebo(machine: Machine, all_conversations: Sequence[Conversation], left: State, seed: int) -> State:
    """Return the state if equally many facts of each namespace are forgotten at random."""
    context = machine.copy(WHOLE, _database())
    rng = np.random.default_rng([year.SEED, seed])
    for one in all_conversations:
        ids = _live(context).get(one.name, [])
        gone = rng.permutation(len(ids))[: max(len(ids) - left.live.get(one.name, 0), 0)]
        forget.forget(context, one.name, [ids[i] for i in gone.tolist()], AT, purge=True)
        search_indexes.count_lexemes(context, one.name, AT)
    return _state(machine, context, _unasked(all_conversations, None))


def _lived(machine: Machine, all_conversations: Sequence[Conversation], life: Life) -> State:
    """Return the state after a year; if half of the questions are asked, the mean of both halves."""
    states = []
    for one in year.halves(life):
        context = _empty(machine)
        year.live(context, all_conversations, one)
        if life == Life("off"):
            machine.copy(_database(), WHOLE)
        states.append(_state(machine, context, _unasked(all_conversations, one.fold)))
    return states[0] if len(states) == 1 else _mean(states)


def _unasked(all_conversations: Sequence[Conversation], fold: int | None) -> list[Asked]:
    """Return the questions that were not asked during the year: all, or every second one."""
    return [
        question for one in all_conversations for question in (one.asked if fold is None else one.asked[1 - fold :: 2])
    ]


def _mean(states: Sequence[State]) -> State:
    """Return the mean of two halves, each of which answers the half of the questions that it was not asked."""
    return State(
        float(np.mean([one.recall for one in states])),
        {name: round(float(np.mean([one.live[name] for one in states]))) for name in states[0].live},
        round(float(np.mean([one.bytes for one in states]))),
        {name: round(float(np.mean([one.fidelity.get(name, 0) for one in states]))) for name in states[0].fidelity},
    )


def _database() -> str:
    """Return the name of this process's database."""
    return f"bench_year_{getpid()}"


def _empty(machine: Machine) -> Context:
    close_pools()
    context = machine.create(_database())
    with session(context) as db:
        # No crash matters here, and no time is measured.
        db.execute(f"alter database {_database()} set synchronous_commit = off".encode())
    return context


def _state(machine: Machine, context: Context, asked: Sequence[Asked]) -> State:
    """Measure the state, and drop the database."""
    with session(context) as db:
        db.execute("vacuum (full, analyze)")
        (size,) = db.execute(BYTES, [[*data.TABLES, "lexemes", "events", "deep"]]).fetchone() or (0,)
        fidelity = {name: int(count) for name, count in db.execute(FIDELITIES)}
    found = float(np.mean([_share(context, one) for one in asked]))
    live = {name: len(ids) for name, ids in _live(context).items()}
    close_pools()
    machine.drop(_database())
    return State(found, live, int(size), fidelity)


def _live(context: Context) -> dict[str, list[UUID]]:
    live: dict[str, list[UUID]] = {}
    with session(context) as db:
        for name, id_ in db.execute(LIVE):
            live.setdefault(name, []).append(id_)
    return live


def _share(context: Context, asked: Asked) -> float:
    """Return the share of a question's evidence among the first ten results."""
    found = recall.recall(context, asked.namespace, recall.Question(asked.text, FIRST), AT).results
    return measures.recall(Outcome(asked, [result.text for result in found]))
