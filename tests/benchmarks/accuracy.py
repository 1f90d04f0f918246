"""How many of the true nearest facts the signature arm finds in a large namespace."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import Bit, HalfVector

from tests.benchmarks import vectors
from tests.benchmarks.figures import Answers
from tests.benchmarks.machine import session
from workers.context import Context
from workers.core import signature
from workers.core.arrays import Bytes, Vectors
from workers.memory.recall.arms import ARM_SIZE
from workers.storage import signatures
from workers.storage import vectors as vectors_table
from workers.storage.connection import Connection

FIRST = 10

QUERIES = 100

SOME_VECTORS = "select halfvec_send(embedding) from vectors where namespace = 1 order by fact limit %(count)s"

NOTES = {
    "nearest": "first 10 of the index by Hamming distance that are no farther than the exact tenth",
    "rescored": "200 candidates of the index, rescored by the signature's estimate, first 10; against the exact 200 "
    "by Hamming distance, rescored alike, first 10",
    "cosine": "200 candidates of the index, rescored by the full vectors, first 10; against the exact 10 by cosine",
}
FAR = (
    "; of a few random words even the tenth neighbour is far, and hardly nearer than the two-hundredth, "
    "so that a longer search list brings little more"
)

EXACT = """
    select fact, signature <~> %(query)s from signatures
    where namespace = %(namespace)s and live
    order by signature <~> %(query)s limit %(limit)s
"""

DISTANCES = """
    select signature <~> %(query)s from signatures
    where namespace = %(namespace)s and fact = any(%(ids)s)
"""

SIGNATURES = "select fact, bit_send(signature) from signatures where namespace = %(namespace)s and fact = any(%(ids)s)"

COSINES = """
    select fact, 1 - (embedding <=> %(query)s::halfvec) as cosine from vectors
    where namespace = %(namespace)s and fact = any(%(ids)s)
    order by cosine desc limit 10
"""

BY_COSINE = """
    select fact from vectors where namespace = %(namespace)s
    order by embedding <=> %(query)s::halfvec limit 10
"""


def measure_texts(answers: Answers, context: Context, texts: Sequence[str]) -> None:
    """Compare index and exact search over one namespace of texts, with the vectors of the hashing embedder."""
    queries = np.stack([context.queries.embed(text) for text in texts])
    _measure(answers, context, queries, "short queries, hashing embedder", FAR)


def measure_clustered(answers: Answers, context: Context) -> None:
    """Compare index and exact search over one namespace of clustered vectors, with queries near some of them."""
    with session(context) as db:
        rows = db.execute(SOME_VECTORS, {"count": QUERIES}, binary=True).fetchall()
    ((_, near),) = vectors_table.unpack([row[0] for row in rows]).values()
    queries = vectors.queries(np.random.default_rng(5), near)
    _measure(answers, context, queries, "clustered vectors")


def _measure(answers: Answers, context: Context, queries: Vectors, which: str, why: str = "") -> None:
    with session(context) as db:
        found = [_compare(db, query) for query in queries]
    for name, note in NOTES.items():
        values = [one[name] for one in found]
        least = 0.95 if name == "rescored" else None
        figure = f"recall@10 of the signature arm, {name}, {which}"
        answers.add(figure, "", [float(np.mean(values))], least=least, note=note + why)


def bit(own: Bytes) -> Bit:
    """Return a (128,) signature as a parameter."""
    return Bit(own.tobytes())


def _compare(db: Connection, query: Vectors) -> dict[str, float]:
    own = signature.encode(query[None, :])[0]
    (tenant,) = db.execute("select min(id) from namespaces").fetchone() or (0,)
    given = {"namespace": tenant, "query": bit(own), "limit": ARM_SIZE}
    near = list(signatures.nearest(db, tenant, own, ARM_SIZE))
    exact = _exactly(db, EXACT, given)
    distances = [d for (d,) in db.execute(DISTANCES, given | {"ids": near[:FIRST]})]
    rescored, best = (_rescored(db, tenant, ids, query) for ids in (near, [fact for fact, _ in exact]))
    half = {"namespace": tenant, "query": HalfVector(query)}
    by_cosine = [fact for (fact,) in _exactly(db, BY_COSINE, half)]
    among = [fact for fact, _ in db.execute(COSINES, half | {"ids": near})]
    return {
        "nearest": sum(d <= exact[FIRST - 1][1] for d in distances) / FIRST,
        "rescored": len(rescored & best) / FIRST,
        "cosine": len(set(among) & set(by_cosine)) / FIRST,
    }


def _exactly(db: Connection, statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Run a search without approximate indexes, which are the plain index scans."""
    with db.transaction():
        db.execute("set local enable_indexscan = off")
        return db.execute(statement.encode(), given).fetchall()


def _rescored(db: Connection, tenant: int, ids: Sequence[UUID], query: Vectors) -> set[UUID]:
    rows = db.execute(SIGNATURES, {"namespace": tenant, "ids": list(ids)}, binary=True).fetchall()
    cosines = signature.estimate(query, signatures.unpack([bits for _, bits in rows]))
    return {rows[i][0] for i in np.argsort(-cosines, kind="stable")[:FIRST].tolist()}
