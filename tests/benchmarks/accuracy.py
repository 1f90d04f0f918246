"""How many of the true nearest facts the signature arm finds in a large namespace."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from pgvector import Bit, HalfVector

from tests.benchmarks.figures import Answers
from tests.benchmarks.machine import session
from workers.context import Context
from workers.core import signature
from workers.core.arrays import Bytes, Vectors
from workers.recall.arms import ARM_SIZE
from workers.storage import signatures
from workers.storage.connection import Connection

if TYPE_CHECKING:
    from tests.benchmarks.recalls import Asked

FIRST = 10

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


def measure(answers: Answers, context: Context, asked: "Sequence[Asked]") -> None:
    """Compare what the arm's index finds with exact searches over the one namespace of the database."""
    with session(context) as db:
        found = [_compare(db, context.queries.embed(one.text)) for one in asked]
    say = dict.fromkeys(found[0], "")
    say["nearest"] = "first 10 by Hamming distance from the index, of the exact 10 nearest; equal distances count as found"
    say["rescored"] = (
        "200 candidates from the index, rescored by the signature's estimate, against the exact 200, rescored alike"
    )
    say["cosine"] = "200 candidates from the index, rescored by the full vectors, against the exact 10 by cosine"
    for name, note in say.items():
        values = [one[name] for one in found]
        least = 0.95 if name == "rescored" else None
        answers.add(f"recall@10 of the signature arm, {name}", "", [float(np.mean(values))], least=least, note=note)


def bit(own: Bytes) -> Bit:
    """Return a (128,) signature as a parameter."""
    return Bit(own.tobytes())


def _compare(db: Connection, query: Vectors) -> dict[str, float]:
    own = signature.encode(query[None, :])[0]
    (tenant,) = db.execute("select min(id) from namespaces").fetchone() or (0,)
    given = {"namespace": tenant, "query": bit(own), "limit": ARM_SIZE}
    near = signatures.nearest(db, tenant, own, ARM_SIZE)
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
    """Run a search without any approximate index: those are the plain index scans."""
    with db.transaction():
        db.execute("set local enable_indexscan = off")
        return db.execute(statement.encode(), given).fetchall()


def _rescored(db: Connection, tenant: int, ids: Sequence[UUID], query: Vectors) -> set[UUID]:
    rows = db.execute(SIGNATURES, {"namespace": tenant, "ids": list(ids)}, binary=True).fetchall()
    cosines = signature.estimate(query, signatures.unpack([bits for _, bits in rows]))
    return {rows[i][0] for i in np.argsort(-cosines, kind="stable")[:FIRST].tolist()}
