"""Recall against simple alternatives: pgvector's HNSW alone, and with PostgreSQL's text search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pgvector import HalfVector

from tests.benchmarks import accuracy, data, naive, recalls
from tests.benchmarks.figures import Answers, console, quantile, seconds
from tests.benchmarks.libraries import Ebb
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.recalls import Asked
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.memory.recall.arms import ARM_SIZE
from workers.storage import namespaces
from workers.storage.connection import Connection, close_pools

FIRST = 10
RECIPROCAL = 60
"""The constant of reciprocal rank fusion as it is commonly used."""

TEXTS = "select id, text from facts where namespace = %(namespace)s and id = any(%(ids)s)"
DEFAULTS = "reset hnsw.iterative_scan; reset hnsw.ef_search"
ITERATIVE = "set hnsw.iterative_scan = relaxed_order; set hnsw.ef_search = 200"

Way = Callable[[Asked], list[str]]


@dataclass(frozen=True, slots=True)
class Searcher:
    """Hand-written searches over the same tables, on a separate connection; each embeds its question."""

    context: Context
    db: Connection

    def near(self, asked: Asked) -> list[str]:
        """Search by HNSW alone, and return the texts of the first ten."""
        given = self._given(asked)
        return self._texts(given, [fact for (fact,) in self.db.execute(naive.NEAR, given | {"limit": FIRST})])

    def hybrid(self, asked: Asked) -> list[str]:
        """Search by words and by HNSW, fuse by reciprocal ranks, and return the texts of the first ten."""
        given = self._given(asked) | {"words": naive.all_words(self.db, asked.namespace, asked.text)}
        ranks: dict[Any, float] = {}
        for statement in (naive.TEXT, naive.NEAR):
            for rank, (fact,) in enumerate(self.db.execute(statement, given).fetchall(), start=1):
                ranks[fact] = ranks.get(fact, 0.0) + 1 / (RECIPROCAL + rank)
        return self._texts(given, sorted(ranks, key=lambda fact: -ranks[fact])[:FIRST])

    def exact(self, asked: Asked) -> list[str]:
        """Return the texts of the true ten nearest by cosine."""
        with self.db.transaction():
            self.db.execute("set local enable_indexscan = off")
            given = self._given(asked)
            return self._texts(given, [fact for (fact,) in self.db.execute(accuracy.BY_COSINE, given)])

    def _given(self, asked: Asked) -> dict[str, Any]:
        query = HalfVector(self.context.embedder.embed([asked.text])[0])
        return {"namespace": self._tenant(asked), "query": query, "limit": ARM_SIZE}

    def _tenant(self, asked: Asked) -> int:
        tenant = namespaces.find(self.db, asked.namespace)
        return tenant.id if tenant else 0

    def _texts(self, given: dict[str, Any], ids: Sequence[Any]) -> list[str]:
        rows = self.db.execute(TEXTS, {"namespace": given["namespace"], "ids": list(ids)}).fetchall()
        found: dict[Any, str] = dict(rows)
        return [found[id_] for id_ in ids]


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Send the same questions to each search, query by query."""
    context = data.prepare(machine, data.even("recalls", size.small, 10))
    asked = recalls.known_items(context, size.queries)
    where = f"{size.small:,} facts in 10 namespaces"
    with session(context) as db:
        built = seconds(lambda: db.execute(naive.BUILD))
        console.print(f"  the plain HNSW index stood after {built:.0f} s")
        answers.details["plain HNSW, build_s"] = built
        _measure(answers, context, Searcher(context, db), asked, size, where)
        db.execute("drop index naive_near")
    close_pools()


def _measure(
    answers: Answers, context: Context, peer: Searcher, asked: Sequence[tuple[Asked, str]], size: Size, where: str
) -> None:
    own = Ebb(context, floor=0)
    ways: dict[str, tuple[str, Way]] = {
        "Ebb's recall": (DEFAULTS, lambda one: own.search(one.namespace, one.text, FIRST)),
        "plain pgvector HNSW, its defaults": (DEFAULTS, peer.near),
        "plain pgvector HNSW, ef 200, iterative": (ITERATIVE, peer.near),
        "naive hybrid, ef 200, iterative": (ITERATIVE, peer.hybrid),
    }
    took: dict[str, list[list[float]]] = {name: [] for name in ways}
    found: dict[str, list[list[str]]] = {}
    for number in range(size.rounds + 1):
        for name, (settings, way) in ways.items():
            peer.db.execute(settings.encode())
            texts: list[list[str]] = []
            spent = [seconds(lambda one=one: texts.append(way(one))) for one, _ in asked]  # type: ignore[misc]
            found[name] = texts
            if number:  # the first round only warms up
                took[name].append(spent)
    true = [peer.exact(one) for one, _ in asked]
    for name, runs in took.items():
        answers.add(f"p50, {name}, {where}", "ms", [quantile(run, 0.5) * 1000 for run in runs])
        answers.add(f"p95, {name}, {where}", "ms", [quantile(run, 0.95) * 1000 for run in runs])
        known = [text in texts for (_, text), texts in zip(asked, found[name], strict=True)]
        answers.add(f"fact that the words are of among the first 10, {name}", "", [float(np.mean(known))])
        near = [len(set(texts) & set(nearest)) / FIRST for texts, nearest in zip(found[name], true, strict=True)]
        answers.details[name] = {
            "of the 10 nearest by cosine": round(float(np.mean(near)), 4),
            "rows returned of 10, fewest": min(map(len, found[name])),
            "rows returned of 10, mean": round(float(np.mean([len(texts) for texts in found[name]])), 2),
        }
