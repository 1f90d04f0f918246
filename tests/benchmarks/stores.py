"""The cost of storing: `store_many` against a bare COPY of the same rows into the same tables."""

from functools import partial
from typing import Any

import numpy as np
from psycopg import sql

from tests.benchmarks import data, recalls, texts
from tests.benchmarks.figures import Answers, console, seconds, split, spread
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.memory import add, store
from workers.storage import activity, facts, signatures, statements, vectors
from workers.storage.connection import Connection, close_pools, connect
from workers.validation.facts import new_fact

COLUMNS = """
    select column_name from information_schema.columns
    where table_name = %s and table_schema = 'public' and is_generated = 'NEVER' order by ordinal_position
"""

WARMING = 20
"""Single stores after which every statement is prepared."""

EMBEDDING_NOTE = "store_many also checks, estimates and embeds the texts, and computes their signatures"

STAGES: dict[str, tuple[Any, str]] = {
    "checking and hashing": (store, "_row"),
    "known by hash": (statements, "ask"),
    "known by id": (facts, "ask_known_by_id"),
    "embedding": (store, "vectors_of"),
    "facts": (facts, "ask_add"),
    "activity": (activity, "add"),
    "vectors": (vectors, "write"),
    "encoding signatures": (add, "encode"),
    "signatures": (signatures, "add"),
}


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Store batches into a database with facts, and copy the rows of each into another namespace."""
    context = data.prepare(machine, data.even("recalls", size.small, 10))
    count = min(size.facts // 10, 10_000)
    rounds = [_round(context, number, count) for number in range(size.rounds)]
    stored, copied = [count / one[0] for one in rounds], [count / one[1] for one in rounds]
    answers.add(f"store_many of {count:,} facts", "rows/s", stored)
    answers.add("bare COPY of the same rows, four tables and their indexes", "rows/s", copied)
    shares = [one / other for one, other in zip(stored, copied, strict=True)]
    answers.add("store_many ÷ bare COPY", "times", shares, least=0.5, note=EMBEDDING_NOTE)
    answers.add("waits for PostgreSQL in a single store", "", [float(_waits(context, count))])
    split_ms = {stage: round(spread([one[2][stage] for one in rounds]).median * 1000, 1) for stage in rounds[0][2]}
    answers.details["stages_ms"] = split_ms
    console.print("  " + " · ".join(f"{stage} {value:g}" for stage, value in split_ms.items()))
    close_pools()


def _round(context: Context, number: int, count: int) -> tuple[float, float, dict[str, float]]:
    """Return the seconds of storing, of copying the same rows, and of the parts of storing; all is deleted again."""
    said, _ = texts.write(np.random.default_rng([number, count]), count)
    given = [new_fact({"text": text, "session": i // 25, "turn": i % 25}, 65_536) for i, text in enumerate(said)]
    with session(context) as db:
        db.execute("checkpoint")
    with split(STAGES) as spent:
        stored = seconds(lambda: store.store_many(context, "stored", given, data.AT))
    with session(context) as db:
        source, target = _number(db, "stored"), _number(db, "copied")
        rows = {table: _read(db, table, source, target) for table in data.TABLES}
        db.execute("checkpoint")
    with connect(context.database_url) as db:
        db.execute("set plan_cache_mode = auto")  # as any plain session has it
        copied = seconds(lambda: _copy(db, rows))
        _check(db, source, target)
    _clear(context, source, target)
    return stored, copied, spent | {"whole": stored, "rest": stored - sum(spent.values())}


def _waits(context: Context, seed: int) -> int:
    """Return how often a store of one new fact waits for PostgreSQL, when its statements are prepared."""
    said, _ = texts.write(np.random.default_rng(seed), WARMING + 1)
    stores = [partial(store.store_many, context, "one", [new_fact({"text": text}, 65_536)], data.AT) for text in said]
    for act in stores[:WARMING]:
        act()
    return recalls.waits(stores[WARMING])


def _number(db: Connection, name: str) -> int:
    db.execute("insert into namespaces (name) values (%s) on conflict do nothing", [name])
    (number,) = db.execute("select id from namespaces where name = %s", [name]).fetchone() or (0,)
    return int(number)


def _columns(db: Connection, table: str) -> sql.Composed:
    names = [name for (name,) in db.execute(COLUMNS, [table])]
    return sql.SQL(", ").join(sql.Identifier(name) for name in names if name != "namespace")


def _read(db: Connection, table: str, source: int, target: int) -> tuple[sql.Composed, list[bytes]]:
    """Return the statement that copies a table's rows into another namespace, and its input."""
    columns, name = _columns(db, table), sql.Identifier(table)
    out = sql.SQL("copy (select {}::int, {} from {} where namespace = {}) to stdout (format binary)")
    statement = out.format(sql.Literal(target), columns, name, sql.Literal(source))
    with db.cursor() as cursor, cursor.copy(statement) as copy:
        rows = [bytes(block) for block in copy]
    return sql.SQL("copy {} (namespace, {}) from stdin (format binary)").format(name, columns), rows


def _copy(db: Connection, rows: dict[str, tuple[sql.Composed, list[bytes]]]) -> None:
    for statement, blocks in rows.values():
        with db.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(b"".join(blocks))
    db.commit()


def _check(db: Connection, source: int, target: int) -> None:
    for table in data.TABLES:
        counted = sql.SQL("select count(*) from {} where namespace = %s").format(sql.Identifier(table))
        counts = {db.execute(counted, [tenant]).fetchone() for tenant in (source, target)}
        if len(counts) != 1:
            raise AssertionError(f"The copy of {table} has not as many rows as were stored: {counts}.")


def _clear(context: Context, *tenants: int) -> None:
    with session(context) as db:
        for tenant in tenants:
            db.execute("delete from facts where namespace = %s", [tenant])
        db.execute("vacuum (analyze) facts, activity, vectors, signatures")
