"""Endings: prunes, forecast and stats by the number of stored facts, and the cost of counters for writers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

import numpy as np
from ebb.contract.reports import ShowStats

from tests.benchmarks import data, texts
from tests.benchmarks.figures import Answers, console, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.passes import whole_pass
from tests.benchmarks.scale import Size
from workers.admin import stats
from workers.context import Context
from workers.core import lifetime
from workers.core.arrays import Floats
from workers.core.fading import fade
from workers.decay import forecast
from workers.memory import store, touch
from workers.storage import activity
from workers.storage.connection import Connection, close_pools, transaction
from workers.storage.due import Work
from workers.validation.facts import new_fact

OURS, THEIRS = 1, 2
"""A namespace that has as many facts in every database, and one that has all the rest."""

UNUSED_FOR_LONG = 1e9
EXPIRING, NEARING = "session", "stable"
DAYS_AHEAD = 7
TOUCHED = 10
READS = 60

PICK = """
    select fact from activity
    where namespace = %(namespace)s
    order by md5(fact::text) offset %(skipped)s limit %(facts)s
"""

# As a store with that class and that confirmation would write it, and the last pass before would leave it.
GIVE_LIFETIME = """
    update activity
    set decay_class = %(decay_class)s, decay_class_source = 'explicit',
        last_confirmed_at = to_timestamp(new.confirmed_at),
        expires_at = to_timestamp(new.expires_at), ends_at = to_timestamp(new.ends_at),
        due_at = to_timestamp(new.due_at)
    from unnest(%(ids)s::uuid[], %(confirmed_at)s::float8[], %(expires_at)s::float8[], %(ends_at)s::float8[],
        %(due_at)s::float8[]) as new (fact, confirmed_at, expires_at, ends_at, due_at)
    where activity.namespace = %(namespace)s and activity.fact = new.fact
"""

COUNTING = "alter table activity {0} trigger user; alter table facts {0} trigger user"


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure a small and a large table in which equally many facts end, at the same instants."""
    contexts = [_copied(machine, size, facts) for facts in (size.small, size.facts)]
    soon, group = size.due // 10, size.due // 5
    for context in contexts:
        _let_end(context, 0, [(NEARING, 0.75, np.zeros(soon))])
    _reading(answers, contexts, size)
    minutes = [np.repeat(np.arange(1.0, size.rounds + 1) + before, group) * 60.0 for before in (0, size.rounds)]
    for context in contexts:
        _run(context, "soft prune", data.AT, soon)
        _let_end(context, soon, [(EXPIRING, 1.0, minutes[0]), (NEARING, 0.75, minutes[1])])
    _pruning(answers, contexts, size, group)
    _counting(answers, contexts[0], size)
    close_pools()


def _copied(machine: Machine, size: Size, facts: int) -> Context:
    """Return a copy of a database of long unused facts with nothing due."""
    sizes = (size.small // 10, facts - size.small // 10)
    layout = data.Layout(f"lives_{facts}", sizes, mean_idle_days=UNUSED_FOR_LONG)
    data.prepare(machine, layout)
    return machine.copy(f"bench_{layout.name}", f"bench_lives_{facts}_changed")


def _let_end(context: Context, skipped: int, groups: Sequence[tuple[str, float, Floats]]) -> None:
    """Give facts lifetimes: by decay class, the share that ends within a number of seconds."""
    with transaction(context.database_url) as db:
        for decay_class, share, moments in groups:
            given = {"namespace": THEIRS, "skipped": skipped, "facts": len(moments)}
            ids = [id_ for (id_,) in db.execute(PICK, given)]
            _let_live(context, db, ids, moments, decay_class, share)
            skipped += len(moments)
    with session(context) as db:
        db.execute("vacuum (analyze) activity")
        db.execute("checkpoint")


def _let_live(
    context: Context, db: Connection, ids: list[UUID], moments: Floats, decay_class: str, share: float
) -> None:
    rows = activity.lock(db, THEIRS, ids)
    whole = lifetime.lifetime(decay_class).seconds or 0.0
    confirmed = data.AT.timestamp() + moments - whole * share - 1
    anchors = replace(rows.anchors, confirmed_at=confirmed, expires_at=confirmed + whole)
    faded = fade(anchors, data.AT.timestamp(), context.rules)
    before = fade(anchors, float(confirmed.min()), context.rules)
    given = {
        "namespace": THEIRS, "ids": rows.ids, "decay_class": decay_class, "confirmed_at": confirmed.tolist(),
        "expires_at": (confirmed + whole).tolist(), "ends_at": faded.ends_at.tolist(),
        "due_at": before.due_at.tolist(),
    }  # fmt: skip
    db.execute(GIVE_LIFETIME.encode(), given)


def _minute(number: float) -> datetime:
    return data.AT + timedelta(minutes=number)


def _reading(answers: Answers, contexts: Sequence[Context], size: Size) -> None:
    """Run forecast and stats of the namespace where facts end, and of another where none does."""
    for number, whose in ((THEIRS, "where facts end"), (OURS, f"of {size.small // 10:,} facts beside them")):
        name = data.namespace(number - 1)
        _compare(answers, size, f"forecast {whose}", contexts, READS, _forecast(name))
        _compare(answers, size, f"stats {whose}", contexts, READS, _stats(name))


def _forecast(name: str) -> Callable[[Context, int], float]:
    return lambda context, _: seconds(lambda: forecast.forecast(context, name, DAYS_AHEAD, data.AT))


def _stats(name: str) -> Callable[[Context, int], float]:
    return lambda context, _: seconds(lambda: stats.stats(context, ShowStats(namespace=name), data.AT))


def _pruning(answers: Answers, contexts: Sequence[Context], size: Size, group: int) -> None:
    """Prune a group each minute: first expired facts, then those near their end; finally none are left."""
    last = size.rounds * 2
    hard, soft = _prune("hard prune", 1, group), _prune("soft prune", 1 + size.rounds, group)
    _compare(answers, size, f"hard prune of {group:,}", contexts, size.rounds, hard)
    _compare(answers, size, f"soft prune of {group:,}", contexts, size.rounds, soft)
    idle = _prune("prune", last, 0)
    _compare(answers, size, "prune with nothing to do", contexts, READS, lambda context, _: idle(context, 0))


def _prune(work: Work, first: int, expected: int) -> Callable[[Context, int], float]:
    return lambda context, number: _timed(context, work, first + number, expected)


def _timed(context: Context, work: Work, minute: int, expected: int) -> float:
    with session(context) as db:
        db.execute("checkpoint")
    return seconds(lambda: _run(context, work, _minute(minute), expected))


def _run(context: Context, work: Work, at: datetime, expected: int) -> None:
    if (done := whole_pass(context, at, work=work).processed) != expected:
        raise AssertionError(f"The {work} processed {done} facts where {expected} were to end.")


def _compare(
    answers: Answers,
    size: Size,
    name: str,
    contexts: Sequence[Context],
    rounds: int,
    act: Callable[[Context, int], float],
) -> None:
    """Run a function on the small and the large table in turn; record the ratio of their durations."""
    small, large = zip(*[[act(context, number) for context in contexts] for number in range(rounds)], strict=True)
    answers.add(f"{name}, small table", "ms", [one * 1000 for one in small])
    answers.add(f"{name}, {size.times} times the facts", "ms", [one * 1000 for one in large])
    ratios = [after / before for before, after in zip(small, large, strict=True)]
    answers.add(f"{name} at {size.times} times the facts, as many due", "times", ratios, most=1.3)


def _counting(answers: Answers, context: Context, size: Size) -> None:
    """Write with and without the counting triggers, in turn; the counters are wrong afterwards."""
    batch, numbers = min(size.facts // 10, 10_000), count()
    with session(context) as db:
        ids = [id_ for (id_,) in db.execute(PICK, {"namespace": OURS, "skipped": 0, "facts": size.small // 10})]

    def touched() -> float:
        number = next(numbers)
        some = [ids[(number * TOUCHED + i) % len(ids)] for i in range(TOUCHED)]
        return seconds(lambda: touch.touch(context, data.namespace(OURS - 1), [touch.Shown(some, _minute(number))]))

    def stored() -> float:
        number = next(numbers)
        said, _ = texts.write(np.random.default_rng([number, batch]), batch)
        given = [new_fact({"text": text}, 65_536) for text in said]
        return seconds(lambda: store.store_many(context, f"stored {number}", given, data.AT))

    answers.add(f"touch of {TOUCHED} facts, counted ÷ not", "times", _ratios(context, touched, 100), most=1.1)
    answers.add(f"store_many of {batch:,}, counted ÷ not", "times", _ratios(context, stored, size.rounds), most=1.05)
    console.print("  the counters of this copy are spent")


def _ratios(context: Context, act: Callable[[], float], rounds: int) -> list[float]:
    """Return the ratio of durations of each write with and without counting."""
    took: dict[str, list[float]] = {"enable": [], "disable": []}
    for number in range(rounds):
        for way in ("enable", "disable") if number % 2 else ("disable", "enable"):
            with session(context) as db:
                db.execute(COUNTING.format(way).encode())
            took[way].append(act())
    return [counted / bare for counted, bare in zip(took["enable"], took["disable"], strict=True)]
