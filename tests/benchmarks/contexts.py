"""The cost of a context: `memory.context` against recall of the same questions, also with named entities."""

from collections.abc import Sequence
from dataclasses import replace

from tests.benchmarks import data, graphs, recalls
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.graphs import ENTITIES
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.recalls import Asked
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.memory import context as inject
from workers.memory.recall import Question
from workers.storage.connection import close_pools

NAME = "bench_contexts"
NAMESPACES = 10
TOKENIZER = "o200k_base"


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure on facts without and with entities, and with another tokenizer."""
    layout = data.even("recalls", size.small, NAMESPACES)
    bare = data.prepare(machine, layout)
    asked = recalls.questions(bare, size.queries)
    _compare(answers, bare, asked, size, "of facts without entities")
    own = f"bench_{layout.name}"
    _compare(answers, machine.context(own, tokenizer=TOKENIZER), asked, size, f"counted by {TOKENIZER}")
    linked = machine.copy(own, NAME)
    with session(linked) as db:
        db.execute(graphs.FILL)
        db.execute("vacuum analyze")
    naming = [replace(one, text=f"{one.text} Person {i % ENTITIES}") for i, one in enumerate(asked)]
    _compare(answers, linked, naming, size, "of facts with entities, one named")
    close_pools()
    machine.drop(NAME)


def _compare(answers: Answers, context: Context, asked: Sequence[Asked], size: Size, where: str) -> None:
    """Run the context and the recall of each question in turn, so that both have the same noise."""
    ratios, p50 = [], []
    for round_ in range(size.rounds + 1):
        filled, recalled = [], []
        for one in asked:
            filled.append(seconds(lambda one=one: _fill(context, one)))  # type: ignore[misc]
            recalled.append(seconds(lambda one=one: recalls.ask(context, one)))  # type: ignore[misc]
        if round_:  # the first one warms up
            p50.append(quantile(filled, 0.5) * 1000)
            ratios.append(p50[-1] / (quantile(recalled, 0.5) * 1000))
    answers.add(f"context p50, {where}", "ms", p50, note=f"{size.small:,} facts in {NAMESPACES} namespaces")
    answers.add(f"context ÷ recall, {where}", "times", ratios, most=1.2)


def _fill(context: Context, one: Asked) -> inject.Injection:
    return inject.inject(context, one.namespace, Question(one.text), inject.Shape(), data.AT)
