"""The forgetting curve: the evidence of later questions that is left if only a share of a conversation is kept.

Facts are selected without knowing the questions. Each selection is an order of a conversation's facts, best first; the
last of that order are erased from a copy of the stored facts step by step, and each time the questions are sent.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

import numpy as np
from psycopg.rows import class_row

from tests.benchmarks.conversations import Asked, Conversation, sampled
from tests.benchmarks.data import AT
from tests.benchmarks.figures import Answers, interval
from tests.benchmarks.forgetting import year
from tests.benchmarks.forgetting.year import Life
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.quality import measures
from tests.benchmarks.quality.measures import FIRST, Outcome
from workers.admin import search_indexes
from workers.context import Context
from workers.core import tiers
from workers.core.arrays import Floats
from workers.core.value import WEIGHTS, Standing, rank
from workers.memory import forget, recall

SHARES = (0.8, 0.5, 0.35, 0.2, 0.1)
SHOWN = (0.5, 0.2)
"""The shares that the table has; the plot has all."""

SEEDS = 5

GROWTH, MOST_GROWING = 2.5, 8
"""Growth of a life by a use, as in SM-2 (Wozniak 1990), and the most uses that prolong it: of a day to four years."""

FRESH, USED, LEFT = "bench_forgetting", "bench_forgetting_used", "bench_forgetting_left"
LIVES = {FRESH: Life("off"), USED: Life("off", "words of facts", 1.0)}
"""A year in which nothing is recalled, and one in which each conversation is asked once a day by words of its facts."""

FACTS = """
    select facts.id, text, facts.created_at, coalesce(content_salience, 0.5)::float8 as content, importance, base,
        coactivations, last_seen_at, recall_count as shown, confirmations as used,
        (
            select count(*) from links
            where links.namespace = facts.namespace and (source = facts.id or target = facts.id)
        ) as links
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    join namespaces on namespaces.id = facts.namespace
    where name = %s and forgotten_at is null and superseded_at is null
    order by facts.created_at, facts.id
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as the selection sees it, and its last use or, without any, its statement."""

    id: UUID
    text: str
    created_at: datetime
    content: float
    importance: float
    base: float
    coactivations: int
    last_seen_at: datetime
    shown: int
    used: int
    links: int


Choice: TypeAlias = Callable[[Sequence[Fact], frozenset[str]], Floats]
"""Of facts and the texts that are evidence: numbers, of which the greatest stay."""


@dataclass(frozen=True, slots=True)
class Point:
    """The results at one share: of each question the share of its evidence that is kept, of those asked recall@10.

    `outdated` has, of each question asked about something that was withdrawn or replaced, the share of that among the
    first ten.
    """

    recall: list[float]
    kept: list[float]
    outdated: list[float]


Curve: TypeAlias = dict[float, Point]


def measure(machine: Machine, answers: Answers, name: str, conversations: Sequence[Conversation]) -> None:
    """Measure the curves of all selections on one set."""
    curves: dict[str, list[Curve]] = {}
    for database, life in LIVES.items():
        context = machine.create(database)
        year.live(context, conversations, life)
        if database == FRESH:
            whole = _asked(context, conversations)
            answers.add_mean(f"recall@10, all kept, {name}", "", whole.recall)
            _deleted(machine, answers, name, context, conversations, whole)
        for choice, orders in _choices(context, conversations, used=database == USED):
            curves.setdefault(choice, []).append(_curve(machine, database, context, conversations, orders))
    _report(answers, name, curves)
    for database in (FRESH, USED, LEFT):
        machine.drop(database)


Orders: TypeAlias = Mapping[str, Sequence[UUID]]
"""The facts of each namespace, first what is kept longest."""


def _choices(context: Context, conversations: Sequence[Conversation], *, used: bool) -> Iterator[tuple[str, Orders]]:
    """Yield each selection with its orders; those that do not depend on use are tried without it."""
    if used:
        yield "Ebb, with use", _orders(context, conversations, _by_value)
        yield "least recently used", _orders(context, conversations, _by_use)
        yield "spaced repetition", _orders(context, conversations, _by_spacing)
        yield "Ebb, with use and spacing", _orders(context, conversations, _by_value_and_spacing)
        return
    yield "Ebb", _orders(context, conversations, _by_value)
    yield "newest", _orders(context, conversations, lambda facts, _: _instants(one.created_at for one in facts))
    yield "longest", _orders(context, conversations, lambda facts, _: np.array([len(one.text) for one in facts], float))
    yield "oracle", _orders(context, conversations, _by_evidence)
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        yield "random", {one.name: _shuffled(context, one.name, rng) for one in conversations}


def _orders(context: Context, conversations: Sequence[Conversation], choice: Choice) -> Orders:
    found = {}
    for one in conversations:
        facts = facts_of(context, one.name)
        evidence = frozenset[str]().union(*(question.evidence for question in one.asked))
        best = np.argsort(-choice(facts, evidence), kind="stable")
        found[one.name] = [facts[place].id for place in best.tolist()]
    return found


def _shuffled(context: Context, namespace: str, rng: np.random.Generator) -> list[UUID]:
    facts = facts_of(context, namespace)
    return [facts[place].id for place in rng.permutation(len(facts)).tolist()]


def facts_of(context: Context, namespace: str) -> list[Fact]:
    """Return the facts of a namespace, oldest first."""
    with session(context) as db, db.cursor(row_factory=class_row(Fact)) as cursor:
        return cursor.execute(FACTS, [namespace]).fetchall()


def standing(facts: Sequence[Fact]) -> Standing:
    """Return the features of facts."""
    base, coactivations = np.array([one.base for one in facts]), np.array([one.coactivations for one in facts])
    return Standing(
        content=np.array([one.content for one in facts]),
        importance=np.array([one.importance for one in facts]),
        strength=tiers.strength(base, coactivations),
        seen_at=_instants(one.last_seen_at for one in facts),
        shown=np.array([one.shown for one in facts]),
        used=np.array([one.used for one in facts]),
        links=np.array([one.links for one in facts]),
    )


def _by_value(facts: Sequence[Fact], _: frozenset[str]) -> Floats:
    return rank(standing(facts))


def _by_use(facts: Sequence[Fact], _: frozenset[str]) -> Floats:
    return _instants(one.last_seen_at for one in facts)


def _by_spacing(facts: Sequence[Fact], _: frozenset[str]) -> Floats:
    """Return the retrievability in log odds: its half-life grows with each use, as in spaced repetition."""
    return -_ages(facts) / _growth(facts)


def _by_value_and_spacing(facts: Sequence[Fact], _: frozenset[str]) -> Floats:
    """Return the value if the days since the last use count less after each use."""
    return rank(standing(facts)) + WEIGHTS.a_day * _ages(facts) * (1 - 1 / _growth(facts))


def _ages(facts: Sequence[Fact]) -> Floats:
    """Return the days since the last use of each fact."""
    return (AT.timestamp() - _instants(one.last_seen_at for one in facts)) / 86_400


def _growth(facts: Sequence[Fact]) -> Floats:
    """Return the factor by which the uses of each fact have prolonged its life."""
    uses = np.array([one.shown + one.used for one in facts], np.float64)
    return np.power(GROWTH, np.minimum(uses, MOST_GROWING))


def _by_evidence(facts: Sequence[Fact], evidence: frozenset[str]) -> Floats:
    return np.array([one.text in evidence for one in facts], np.float64)


def _instants(instants: Iterable[datetime]) -> Floats:
    return np.array([one.timestamp() for one in instants])


def _curve(
    machine: Machine, database: str, context: Context, conversations: Sequence[Conversation], orders: Orders
) -> Curve:
    """Erase increasing shares of a copy, the last in order first, and send the questions."""
    left = machine.copy(database, LEFT)
    left.__dict__["embedder"] = context.embedder
    texts = {one.id: one.text for name in orders for one in facts_of(left, name)}
    curve, before = {}, dict.fromkeys(orders, 1.0)
    for share in SHARES:
        kept = {name: {texts[id_] for id_ in order[: _count(order, share)]} for name, order in orders.items()}
        for name, order in orders.items():
            _erase(left, name, order[_count(order, share) : _count(order, before[name])])
            before[name] = share
        curve[share] = replace(_asked(left, conversations), kept=_kept(conversations, kept))
    return curve


def _count(order: Sequence[UUID], share: float) -> int:
    return round(len(order) * share)


def _erase(context: Context, namespace: str, ids: Sequence[UUID]) -> None:
    forget.forget(context, namespace, ids, AT, purge=True)
    search_indexes.count_lexemes(context, namespace, AT)


def _asked(context: Context, conversations: Sequence[Conversation]) -> Point:
    outcomes = [Outcome(one, _found(context, one)) for one in sampled(conversations)]
    outdated = [measures.outdated(one) for one in outcomes if one.asked.changes]
    return Point([measures.recall(one) for one in outcomes], [], outdated)


def _kept(conversations: Sequence[Conversation], kept: Mapping[str, set[str]]) -> list[float]:
    """Return for each question the share of its evidence among the texts kept of its namespace."""
    asked = [one for every in conversations for one in every.answerable]
    return [len(one.evidence & kept[one.namespace]) / len(one.evidence) for one in asked]


def _found(context: Context, asked: Asked) -> list[str]:
    results = recall.recall(context, asked.namespace, recall.Question(asked.text, FIRST), AT).results
    return [one.text for one in results]


def _report(answers: Answers, name: str, curves: Mapping[str, Sequence[Curve]]) -> None:
    """Add the figures of the table, and all points of the plot with intervals; each is a mean over seeds."""
    drawn = answers.details.setdefault("curves", {}).setdefault(name, {})
    for choice, seeds in curves.items():
        for share in SHARES:
            points = [seed[share] for seed in seeds]
            for what, values in _columns(points).items():
                drawn.setdefault(what, {}).setdefault(choice, {})[f"{share:g}"] = interval(values)
                if share in SHOWN:
                    answers.add_mean(f"{what}, {100 * share:g} % kept, {choice}, {name}", "", values)


def _columns(points: Sequence[Point]) -> dict[str, list[float]]:
    """Return the measures of one share by name, for each question the mean over seeds."""
    columns = {
        "evidence kept": [one.kept for one in points],
        "recall@10": [one.recall for one in points],
        "outdated among the first ten": [one.outdated for one in points],
    }
    return {what: np.mean(values, axis=0).tolist() for what, values in columns.items() if values[0]}


def _deleted(
    machine: Machine, answers: Answers, name: str, context: Context, conversations: Sequence[Conversation], whole: Point
) -> None:
    """Measure withdrawn or replaced statements: among the results of a whole memory, and after a deletion request."""
    if not whole.outdated:
        return
    left = machine.copy(FRESH, LEFT)
    left.__dict__["embedder"] = context.embedder
    for one in conversations:
        older = {text for question in one.asked for change in question.changes for text in change.older}
        _erase(left, one.name, [fact.id for fact in facts_of(left, one.name) if fact.text in older])
    deleted = _asked(left, conversations)
    answers.add_mean(f"outdated among the first ten, all kept, {name}", "", whole.outdated)
    answers.add_mean(f"outdated among the first ten, deletes given, {name}", "", deleted.outdated)
    answers.add_mean(f"recall@10, deletes given, {name}", "", deleted.recall)
