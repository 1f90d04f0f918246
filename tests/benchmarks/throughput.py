"""Tasks per second: stores, batches and recalls with one, two and four children, and an empty task."""

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from tests.benchmarks import queued, recalls, running, texts
from tests.benchmarks.figures import Answers
from tests.benchmarks.machine import Machine
from tests.benchmarks.queued import NAMESPACE
from tests.benchmarks.recalls import Asked
from tests.benchmarks.running import EMPTY, Call
from tests.benchmarks.scale import Size
from workers.storage.connection import close_pools

NAME = "bench_throughput"
STORED_INTO = "stored"
"""A namespace of its own, so that what is recalled stays as large as it is."""

CHILDREN = (1, 2, 4)
BATCH = 100
BATCHES = 20

Batch = Callable[[], list[Call]]


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Send many tasks at once, and divide by the seconds until the last answer."""
    machine.empty_redis()
    context = queued.filled(machine, NAME, size.queued)
    asked = recalls.questions(context, size.queries * 5)
    batches = _batches(asked)
    rates: dict[str, dict[str, list[float]]] = {name: {} for name in batches}
    for children in CHILDREN:
        with running.workers(machine, context, children):
            for name, batch in batches.items():
                rates[name][str(children)] = _rates(machine, batch, size)
                several = f"{children} child{'ren' if children > 1 else ''}"
                answers.add(f"{name}, {several}", "tasks/s", rates[name][str(children)])
    rounds = zip(rates["recalls"]["2"], rates["empty tasks"]["2"], strict=True)
    answers.add("recalls ÷ empty tasks, 2 children", "times", [one / other for one, other in rounds], least=0.5)
    facts = [one * BATCH for one in rates[f"batches of {BATCH} stores"]["2"]]
    answers.add(f"facts stored in batches of {BATCH}, 2 children", "facts/s", facts)
    machine.drop(NAME)
    close_pools()


def _batches(asked: Sequence[Asked]) -> dict[str, Batch]:
    """Return the tasks to send, by name; stored texts are new each time."""
    seeds = count(1_000)

    def said(facts: int) -> list[str]:
        return texts.write(np.random.default_rng(next(seeds)), facts)[0]

    def many() -> list[Call]:
        new = said(BATCHES * BATCH)
        chunks = [new[start : start + BATCH] for start in range(0, len(new), BATCH)]
        return [("memory.store_many", {"facts": [{"text": text} for text in chunk]}) for chunk in chunks]

    return {
        "empty tasks": lambda: [(EMPTY, {}) for _ in asked],
        "recalls": lambda: [
            ("memory.recall", {"query": one.text, "touch": False, "namespace": NAMESPACE}) for one in asked
        ],
        "recalls with their touch": lambda: [
            ("memory.recall", {"query": one.text, "namespace": NAMESPACE}) for one in asked
        ],
        "stores": lambda: [("memory.store", {"text": text, "namespace": STORED_INTO}) for text in said(len(asked))],
        f"batches of {BATCH} stores": lambda: [
            (task, {**arguments, "namespace": STORED_INTO}) for task, arguments in many()
        ],
    }


def _rates(machine: Machine, batch: Batch, size: Size) -> list[float]:
    running.seconds_until_done(machine, batch()[: size.queries])
    rates = []
    for _ in range(size.rounds):
        calls = batch()
        rates.append(len(calls) / running.seconds_until_done(machine, calls))
    return rates
