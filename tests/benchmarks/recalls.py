"""The cost of a recall: against the bare scan or probe of the same signatures, and by the number of namespaces."""

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg import sql
from psycopg.waiting import Wait

from tests.benchmarks import accuracy, data, naive
from tests.benchmarks.figures import Answers, console, quantile, seconds, split
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.scale import FACTS, Size
from workers.admin import search_indexes
from workers.context import Context
from workers.core import signature
from workers.memory import recall
from workers.memory.recall import answer, arms, pipeline, scoring
from workers.storage import candidates, namespaces, signatures
from workers.storage.connection import Connection, close_pools, connect

SAMPLE = """
    select namespaces.name, text
    from facts tablesample system (%(share)s) repeatable (3)
    join namespaces on namespaces.id = facts.namespace
    limit %(limit)s
"""

STORED = "select greatest(reltuples, 1) from pg_class where oid = 'facts'::regclass"
SAMPLED = 400
"""Facts that are read for each query, since a sample of pages has facts that were stored one after the other."""

STAGES: dict[str, tuple[Any, str]] = {
    "embedding": (pipeline, "_embed"),
    "finding the namespace and the query's words": (pipeline, "_tenants"),
    "searching by words and by meaning": (pipeline, "_search"),
    "— sending the search by meaning": (arms, "vector_arm"),
    "— sending the search by words": (arms, "send_text"),
    "reading and scoring candidates": (pipeline, "together"),
    "— similarities": (scoring, "similarities"),
    "— scoring": (scoring, "score"),
    "ordering": (answer, "order"),
    "describing": (candidates, "describe"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and its namespace."""

    namespace: str
    text: str


FEW = 100
"""Facts in each of very many namespaces."""


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure recall over increasing numbers of facts: in namespaces of one size, in one, and in many small ones.

    The vector index of one namespace of more than a million takes hours to build on few cores; it is left out.
    """
    tables = {facts: _even(machine, size, facts) for facts in size.steps if facts != size.small * 3}
    naive.measure(answers, tables[size.small], questions(tables[size.small], size.queries), size)
    by_stored = {
        facts: _whole(answers, context, size, _where(size, facts), most=5.0 if facts == size.facts else None)
        for facts, context in sorted(tables.items(), reverse=True)
    }
    middle = by_stored[size.facts]
    many = data.prepare(machine, data.even("recalls", size.facts, max(size.facts // FEW, 1)))
    small = _whole(answers, many, size, f"{FEW} facts a namespace", most=None)
    by_size = {str(FEW): small, str(size.each): middle}
    if size.facts <= FACTS:
        by_size[str(size.facts)] = large = _single(machine, size, answers)
        _flat(answers, {"1": large, "100": middle, f"{size.facts // FEW:,}": small})
    growth = [after / before for before, after in zip(by_stored[size.small], middle, strict=True)]
    answers.add(f"recall p50 at {size.times} times the facts, {size.each:,} a namespace", "times", growth, most=1.5)
    answers.details |= {
        "p50_ms_by_namespace_size": by_size,
        "p50_ms_by_stored": {
            f"{size.each:,} facts a namespace": {str(facts): by_stored[facts] for facts in sorted(by_stored)},
            f"{FEW} facts a namespace": {str(size.facts): small},
        },
    }
    close_pools()


def _even(machine: Machine, size: Size, facts: int) -> Context:
    return data.prepare(machine, data.even("recalls", facts, facts // size.each))


def _where(size: Size, facts: int) -> str:
    """Return the name of a table: of the largest by the size of a namespace, of others by their total size."""
    if facts == size.facts:
        return f"{size.each:,} facts a namespace"
    return f"the same {facts:,} in {facts // size.each:,} namespaces"


def _single(machine: Machine, size: Size, answers: Answers) -> list[float]:
    """Measure a single namespace with its vector index, and the share of true neighbours that it finds."""
    single = _indexed(data.prepare(machine, data.even("recalls", size.facts, 1)))
    built = seconds(lambda: search_indexes.index_large_namespaces(single))
    answers.details["hnsw_build_s"] = built
    console.print(f"  the vector index of the one namespace stood after {built:.0f} s")
    large = _whole(answers, single, size, f"{size.facts:,} in one namespace", most=6.0)
    accuracy.measure_texts(answers, single, [one.text for one in questions(single, accuracy.QUERIES)])
    clustered = _indexed(data.prepare(machine, data.even("clustered", size.facts, 1, clustered=True)))
    search_indexes.index_large_namespaces(clustered)
    accuracy.measure_clustered(answers, clustered)
    return large


def _indexed(context: Context) -> Context:
    """Return a context in which the single namespace is large enough for a vector index, also in a quick run."""
    return Context(context.settings.model_copy(update={"ann_threshold": 1_000}))


def questions(context: Context, count: int, seed: int = 1) -> list[Asked]:
    """Return queries of 3 to 8 words of random facts, every third with words of another fact added."""
    return [asked for asked, _ in known_items(context, count, seed)]


def known_items(context: Context, count: int, seed: int = 1) -> list[tuple[Asked, str]]:
    """Return those queries, each with the text of its fact."""
    rng = random.Random(seed)
    with session(context) as db:
        (there,) = db.execute(STORED).fetchone() or (1,)
        given = {"share": min(100.0, 100 * count * SAMPLED / there), "limit": count * SAMPLED}
        sampled = db.execute(SAMPLE, given).fetchall()
    rng.shuffle(sampled)
    return [(_question(rng, sampled[i], sampled[-1 - i][1] if i % 3 == 0 else ""), sampled[i][1]) for i in range(count)]


def _question(rng: random.Random, fact: tuple[str, str], other: str) -> Asked:
    name, text = fact
    words = text.split()
    chosen = rng.sample(words, min(rng.randint(3, 8), len(words)))
    return Asked(name, " ".join(chosen + rng.sample(other.split(), min(2, len(other.split())))))


def ask(context: Context, asked: Asked) -> recall.Recalled:
    """Recall like a task, without the queue."""
    return recall.recall(context, asked.namespace, recall.Question(asked.text), data.AT)


def _whole(answers: Answers, context: Context, size: Size, where: str, most: float | None = 5.0) -> list[float]:
    """Compare recall with the bare search on the same signatures, query by query; return the p50 of each round."""
    asked = questions(context, size.queries)
    p50, p95, bare_p50, ratios = [], [], [], []
    with connect(context.database_url) as db:
        _warm_up(context, db, asked)
        for _ in range(size.rounds):
            bare = [seconds(bare_search(context, db, one)) for one in asked]
            whole = [seconds(lambda one=one: ask(context, one)) for one in asked]  # type: ignore[misc]
            p50.append(quantile(whole, 0.5) * 1000)
            p95.append(quantile(whole, 0.95) * 1000)
            bare_p50.append(quantile(bare, 0.5) * 1000)
            ratios.append(p50[-1] / bare_p50[-1])
        plan = _plan(context, db, asked[0])
    answers.details[f"plan, {where}"] = plan
    answers.add(f"recall p50, {where}", "ms", p50, note=f"{len(asked)} queries a round")
    answers.add(f"recall p95, {where}", "ms", p95)
    waited = [float(waits(lambda one=one: ask(context, one))) for one in asked]  # type: ignore[misc]
    answers.add(f"waits for PostgreSQL in a recall, median, {where}", "", [quantile(waited, 0.5)], most=4)
    answers.add(f"bare signature search p50, {where}", "ms", bare_p50, note=f"by {plan[-1]}" if plan else "")
    answers.add(f"recall ÷ bare search, {where}", "times", ratios, most=most)
    answers.details[f"stages_ms, {where}"] = _stages(context, asked)
    return p50


def waits(act: Callable[[], object]) -> int:
    """Return how often a call waits for PostgreSQL."""
    count = 0
    wait = psycopg.Connection.wait

    def watched(answer: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass on the events that psycopg waits for, and count one wait if they include an answer."""
        nonlocal count
        states = set()
        try:
            states.add(state := next(answer))
            while True:
                states.add(state := answer.send((yield state)))
        except StopIteration as end:
            count += Wait.R in states
            return end.value

    def counting(db: psycopg.Connection[Any], answer: Generator[Any, Any, Any], *rest: Any, **named: Any) -> Any:
        return wait(db, watched(answer), *rest, **named)

    with patch.object(psycopg.Connection, "wait", counting):
        act()
    return count


def _warm_up(context: Context, db: Connection, asked: Sequence[Asked]) -> None:
    for one in asked:
        bare_search(context, db, one)()
        ask(context, one)


def bare_search(context: Context, db: Connection, asked: Asked) -> Callable[[], object]:
    """Return the bare search for the nearest signatures, whose query is embedded and encoded before."""
    tenant = namespaces.find(db, asked.namespace)
    if tenant is None:
        raise AssertionError(f"There is no namespace {asked.namespace}.")
    own = signature.encode(context.queries.embed(asked.text)[None, :])[0]

    def search_() -> object:
        return signatures.ask_nearest(db, tenant.id, own, arms.ARM_SIZE)()

    return search_


def _plan(context: Context, db: Connection, asked: Asked) -> list[str]:
    """Return PostgreSQL's plan of the bare search."""
    tenant = namespaces.find(db, asked.namespace)
    own = signature.encode(context.queries.embed(asked.text)[None, :])[0]
    given = {"namespace": tenant.id if tenant else 0, "query": accuracy.bit(own), "limit": arms.ARM_SIZE}
    explained = sql.SQL("explain (analyze, buffers) " + signatures.NEAREST)
    lines = [line.strip(" ->") for (line,) in db.execute(explained, given)]
    scans = [line.split("  (")[0] for line in lines if "Scan" in line]
    return [*lines, *scans]


def _stages(context: Context, asked: Sequence[Asked]) -> dict[str, float]:
    """Return the mean milliseconds of each part of a recall; parts of a part begin with a dash."""
    with split(STAGES) as spent:
        whole = sum(seconds(lambda one=one: ask(context, one)) for one in asked)  # type: ignore[misc]
    parts = sum(value for stage, value in spent.items() if not stage.startswith("—"))
    stages = {stage: round(value / len(asked) * 1000, 3) for stage, value in spent.items()}
    stages |= {"rest": round((whole - parts) / len(asked) * 1000, 3), "whole": round(whole / len(asked) * 1000, 3)}
    console.print("  " + " · ".join(f"{stage} {value:g}" for stage, value in stages.items()))
    return stages


def _flat(answers: Answers, by_namespaces: dict[str, list[float]]) -> None:
    rounds = list(zip(*by_namespaces.values(), strict=True))
    answers.add(
        f"recall p50, the slowest of {', '.join(by_namespaces)} namespaces ÷ that of 100",
        "times",
        [max(one) / one[1] for one in rounds],
        most=1.5,
        note="one namespace of all facts is probed by HNSW, which takes several times as long as scanning a hundredth "
        "of them; a shorter search list finds fewer of the nearest",
    )
    answers.add("recall p50, the slowest of them ÷ the quickest", "times", [max(one) / min(one) for one in rounds])
