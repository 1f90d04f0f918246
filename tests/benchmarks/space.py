"""The bytes of a fact: by table, by fidelity, and before and after a year without recalls."""

from uuid import uuid4

import numpy as np

from tests.benchmarks import data, texts
from tests.benchmarks.figures import Answers
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.passes import let_a_year_pass
from tests.benchmarks.scale import Size
from workers.core import fidelity
from workers.memory import store
from workers.memory.forget import forget_within
from workers.storage import deep
from workers.storage.connection import Connection, close_pools
from workers.validation.facts import new_fact

SINK, SUNK = 1_000, 5_000
LETTERS = 200

BY_TABLE = """
    select relname, pg_relation_size(oid) as heap, pg_indexes_size(oid) as indexes,
        coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0) as toast
    from pg_class where relname = any(%s) and relnamespace = 'public'::regnamespace
    order by relname
"""

BY_FIDELITY = """
    select fidelity, count(*), avg(pg_column_size(facts.*)), avg(pg_column_size(activity.*)),
        coalesce(avg(pg_column_size(vectors.*)), 0), avg(pg_column_size(signatures.*))
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    join signatures on signatures.namespace = facts.namespace and signatures.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace and vectors.fact = facts.id
    group by fidelity order by fidelity
"""

TEXT = "select avg(octet_length(text)) from facts"


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure a database of full vectors, and a copy of it after a simulated year."""
    original = data.even("recalls", size.small, 10)
    data.prepare(machine, original)
    context = machine.copy(f"bench_{original.name}", "bench_year")
    with session(context) as db:
        before = _bytes_by_table(db, size.small)
        (text,) = db.execute(TEXT).fetchone() or (0,)
    let_a_year_pass(context)
    close_pools()
    with session(context) as db:
        db.execute("vacuum (analyze)")
        after = _bytes_by_table(db, size.small)
        db.execute("vacuum full")
        packed = _bytes_by_table(db, size.small)
    close_pools()
    machine.drop("bench_year")
    answers.add(f"bytes a fact, deep, texts of {LETTERS} characters", "bytes", [_deep(machine)], most=450.0)
    states = {"all full": before, "after a year": after, "after a year and VACUUM FULL": packed}
    answers.details["bytes a fact by table"] = states
    for state, tables in states.items():
        each = sum(sum(parts.values()) for parts in tables.values())
        answers.add(f"bytes a fact, {state}", "bytes", [each], most=1_900.0 if state == "all full" else 1_000.0)
    answers.details["mean bytes of text"] = float(text)
    answers.details["bytes of a fact's rows by fidelity"] = _rows(machine, size)


def _bytes_by_table(db: Connection, facts: int) -> dict[str, dict[str, float]]:
    rows = db.execute(BY_TABLE, [[*data.TABLES, "lexemes"]]).fetchall()
    return {
        table: {part: round(value / facts, 1) for part, value in zip(("heap", "indexes", "toast"), sizes, strict=True)}
        for table, *sizes in rows
    }


def _rows(machine: Machine, size: Size) -> dict[str, dict[str, float]]:
    """Return the mean size of the rows of facts of each fidelity, without indexes and page overhead."""
    context = data.prepare(machine, data.even("space", size.small, 10, mean_idle_days=20.0))
    with session(context) as db:
        rows = db.execute(BY_FIDELITY).fetchall()
    columns = ("facts", *data.TABLES)
    return {
        f"{fidelity.name(code)} {code}" if code not in {fidelity.FULL, fidelity.FINGERPRINT} else fidelity.name(code): {
            name: round(float(value), 1) for name, value in zip(("count", *columns[1:]), rest, strict=True)
        }
        for code, *rest in rows
    }


def _deep(machine: Machine) -> float:
    """Return the bytes of a fact with a text of `LETTERS` in deep memory, indexes included."""
    context = machine.create("bench_deep_bytes", embedder="hashing")
    said, _ = texts.write(np.random.default_rng(LETTERS), 4 * SUNK)
    for begin in range(0, len(said), 4 * SINK):
        joined = [" ".join(said[place : place + 4])[:LETTERS] for place in range(begin, begin + 4 * SINK, 4)]
        store.store_many(context, "deep", [new_fact({"text": text}, LETTERS) for text in joined], data.AT)
    with session(context) as db:
        return _sunk(db)


def _sunk(db: Connection) -> float:
    """Move every fact into deep memory; return the bytes of each there, indexes included."""
    facts = db.execute("select namespace, id from facts order by created_at").fetchall()
    for begin in range(0, len(facts), SINK):
        tenants, ids = map(list, zip(*facts[begin : begin + SINK], strict=True))
        forget_within(db, tenants, ids, ["faded"] * len(ids), data.AT, uuid4())
        deep.demote(db, tenants, ids)
    db.execute("vacuum (analyze) deep")
    (size,) = db.execute("select pg_total_relation_size('deep')").fetchone() or (0,)
    return float(size) / len(facts)
