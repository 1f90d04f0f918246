"""A simple alternative: words OR-ed and ranked by PostgreSQL, and HNSW on vectors with a filter."""

from typing import TYPE_CHECKING, Any

from pgvector import HalfVector

from tests.benchmarks.figures import Answers, console, quantile, seconds
from tests.benchmarks.machine import session
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.memory.recall.arms import ARM_SIZE
from workers.storage import namespaces, words
from workers.storage.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.recalls import Asked

BUILD = """
    create index if not exists naive_near on vectors
    using hnsw ((embedding::halfvec(256)) halfvec_cosine_ops)
"""

TEXT = """
    select id from facts
    where namespace = %(namespace)s and search @@ %(words)s::tsquery
    order by ts_rank_cd(search, %(words)s::tsquery) desc limit %(limit)s
"""

NEAR = """
    select fact from vectors
    where namespace = %(namespace)s
    order by embedding::halfvec(256) <=> %(query)s::halfvec(256) limit %(limit)s
"""


def measure(answers: Answers, context: Context, asked: "Sequence[Asked]", size: Size) -> None:
    """Measure both searches in sequence, as a hybrid would run them; the index is dropped afterwards."""
    with session(context) as db:
        built = seconds(lambda: db.execute(BUILD))
        console.print(f"  the naive vector index stood after {built:.0f} s")
        answers.details["naive_build_s"] = built
        db.execute("set hnsw.iterative_scan = relaxed_order; set hnsw.ef_search = 200")
        runs = [[_both(context, db, one) for one in asked] for _ in range(size.rounds)]
        db.execute("drop index naive_near")
    for place, name in enumerate(("text", "vectors", "both")):
        p50 = [quantile([one[place] for one in run], 0.5) * 1000 for run in runs]
        answers.add(f"naive hybrid p50, {size.small:,} facts in 10 namespaces, {name}", "ms", p50)


def all_words(db: Connection, namespace: str, text: str) -> str:
    """Return all words of a question, OR-ed."""
    return " | ".join(f"'{term.lexeme}'" for term in words.of_query(db, namespace, text) if term.stem)


def _both(context: Context, db: Connection, asked: "Asked") -> tuple[float, float, float]:
    tenant = namespaces.find(db, asked.namespace)
    given: dict[str, Any] = {"namespace": tenant.id if tenant else 0, "limit": ARM_SIZE}
    given |= {"words": all_words(db, asked.namespace, asked.text)}
    text = seconds(lambda: db.execute(TEXT, given).fetchall())
    query = HalfVector(context.queries.embed(asked.text))
    near = seconds(lambda: db.execute(NEAR, given | {"query": query}).fetchall())
    return text, near, text + near
