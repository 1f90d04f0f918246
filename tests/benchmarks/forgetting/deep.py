"""Deep memory: the loss of a year without use if questions include deep memory, and the cost."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from time import perf_counter

import numpy as np

from tests.benchmarks.conversations import Asked, Conversation, sampled
from tests.benchmarks.data import AT
from tests.benchmarks.figures import Answers
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.passes import whole_pass
from tests.benchmarks.quality import measures
from tests.benchmarks.quality.measures import FIRST, Outcome
from workers.admin import purge, search_indexes
from workers.context import Context
from workers.memory import recall, store

DATABASE = "bench_deep"
A_YEAR_LATER = AT + timedelta(days=365)
SUNK = A_YEAR_LATER + timedelta(days=purge.SINKS_AFTER_DAYS + 1)
LEAST_BYTES = "select pg_total_relation_size('deep')::float8 / greatest(count(*), 1), count(*) from deep"
LETTERS = "select coalesce(avg(length(text)), 0)::float8 from facts"


def measure(machine: Machine, answers: Answers, name: str, conversations: Sequence[Conversation]) -> None:
    """Ask a fresh memory, simulate a year without use, and ask again with deep memory."""
    context = machine.create(DATABASE, forget_limit="1", forget_limit_week="1")
    for one in conversations:
        store.store_many(context, one.name, [turn.fact for turn in one.turns], AT)
        search_indexes.count_lexemes(context, one.name, AT)
    asked = sampled(conversations)
    with session(context) as db:
        (letters,) = db.execute(LETTERS).fetchone() or (0.0,)
    fresh, seconds = _asked(context, asked, AT, deep=False)
    _let_a_year_pass(context)
    later, deep_seconds = _asked(context, asked, SUNK, deep=True)
    answers.add_mean(f"recall@10, fresh, {name}", "", fresh)
    answers.add_mean(f"recall@10, after a year without use, deep, {name}", "", later)
    lost = [100 * (before - after) for before, after in zip(fresh, later, strict=True)]
    answers.add_mean(f"points lost by a year without use, deep, {name}", "points", lost, most=3.0)
    answers.add(f"ordinary recall, fresh, {name}", "ms", [1000 * float(np.median(seconds))])
    answers.add(f"deep recall, after a year, {name}", "ms", [1000 * float(np.median(deep_seconds))])
    with session(context) as db:
        db.execute("vacuum full deep")
        size, count = db.execute(LEAST_BYTES).fetchone() or (0.0, 0)
    note = f"{count} facts of {letters:.0f} characters on average"
    answers.add(f"bytes a deep fact, {name}", "bytes", [size], note=note)
    machine.drop(DATABASE)


def _let_a_year_pass(context: Context) -> None:
    """Forget the facts that ended within a year, and move them to deep memory."""
    whole_pass(context, A_YEAR_LATER, force=True)
    _sink(context)


def _sink(context: Context) -> None:
    while purge.demote_batch(context, SUNK, None):
        pass


def _asked(context: Context, asked: Sequence[Asked], at: datetime, *, deep: bool) -> tuple[list[float], list[float]]:
    """Return the recall@10 and the seconds of each question; the memory stays unchanged."""
    shares, seconds = [], []
    for one in asked:
        began = perf_counter()
        found = recall.recall(context, one.namespace, recall.Question(one.text, FIRST, deep=deep), at).results
        seconds.append(perf_counter() - began)
        shares.append(measures.recall(Outcome(one, [result.text for result in found])))
        if deep:
            _sink(context)
    return shares, seconds
