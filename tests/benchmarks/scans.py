"""Decay as the sources describe it, by scans of all facts, against passes over due facts, in turn.

The scans have a copy of the tables for themselves, with no other index than the primary key, no trigger and no log of
what they did. They compute what Ebb computes, by the same closed form, so that both change the very same facts.
"""

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from psycopg import sql

from tests.benchmarks import data, passes
from tests.benchmarks.figures import Answers, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.core.arrays import Ints
from workers.core.fidelity import FINGERPRINT, pool
from workers.storage import vectors
from workers.storage.connection import Connection, close_pools

MIB = 1024 * 1024
BATCH = 1000

COPY = """
    drop table if exists peer_activity, peer_vectors;
    create table peer_activity with (fillfactor = 70) as
    select namespace, fact, segment, least(base * (1 + ln(1 + coactivations)), 1)::float8 as strength,
        least(base * (1 + ln(1 + coactivations)), 1)::float8 as salience, coactivations, last_seen_at, tier, fidelity
    from activity order by namespace, fact;
    create table peer_vectors as select namespace, fact, embedding from vectors order by namespace, fact;
    alter table peer_activity add primary key (namespace, fact);
    alter table peer_vectors add primary key (namespace, fact)
"""

# Passes and restoring move what is due to the same pages, which the scans' tables have scattered.
ARRANGE = """
    cluster activity using activity_pkey;
    cluster vectors using vectors_pkey;
    vacuum (analyze) activity;
    vacuum (analyze) vectors;
    checkpoint
"""

# Retention in closed form of every row, tier by tier, and what follows from it.
CHANGED = """
    create temporary table changed on commit drop as
    with aged as (
        select namespace, fact, strength, tier, fidelity, strength + 0.1 as scale,
            extract(epoch from {now} - last_seen_at)::float8 / 86400 as age,
            case when coactivations > 5 then 6.0
                else least(greatest(ln(strength / 0.7) * (strength + 0.1) / 0.005, 0), 6) end as hot_until
        from {source}
    ),
    bent as (
        select *, greatest(6.0,
            hot_until + (ln(strength / 0.4) * scale - 0.005 * hot_until) / 0.02) as cold_from
        from aged
    ),
    kept as (
        select *, exp(-(0.005 * least(age, hot_until) + 0.02 * greatest(least(age, cold_from) - hot_until, 0)
            + 0.05 * greatest(age - cold_from, 0)) / scale) as retention
        from bent
    ),
    now as (
        select namespace, fact, strength * retention as salience, tier, fidelity,
            (age >= hot_until)::int + (age >= cold_from)::int as new_tier,
            greatest(fidelity, case
                when age >= cold_from and retention < 0.25 then 32767
                when age >= hot_until and retention < 0.5 then 4
                when age >= hot_until and retention < 0.7 then 2
                else 1 end) as new_fidelity
        from kept
    )
    select * from now where {everything} or tier <> new_tier or fidelity <> new_fidelity
"""

SLICES = """
    (
        select picked.*
        from unnest({segments}::int[], {skipped}::int[], {taken}::int[]) as slice (segment, skipped, taken),
            lateral (
                select * from peer_activity where peer_activity.segment = slice.segment
                order by segment, namespace, fact offset slice.skipped limit slice.taken
            ) as picked
    ) as sliced
"""

WRITE = """
    update peer_activity
    set salience = changed.salience, tier = changed.new_tier, fidelity = changed.new_fidelity
    from changed
    where peer_activity.namespace = changed.namespace and peer_activity.fact = changed.fact
"""

DROP = """
    delete from peer_vectors using changed
    where peer_vectors.namespace = changed.namespace and peer_vectors.fact = changed.fact
        and new_fidelity = 32767 and fidelity <> new_fidelity
"""

POOL = """
    update peer_vectors
    set embedding = (
        select l2_normalize(array_agg(mean order by place)::vector)::halfvec
        from (
            select (number - 1) / (changed.new_fidelity / changed.fidelity) as place, avg(part) as mean
            from unnest(embedding::vector::real[]) with ordinality as parts (part, number)
            group by 1
        ) as means
    )
    from changed
    where peer_vectors.namespace = changed.namespace and peer_vectors.fact = changed.fact
        and new_fidelity < 32767 and fidelity <> new_fidelity
"""

COUNT = "select count(*) from changed where tier <> new_tier or fidelity <> new_fidelity"

READ = """
    select namespace, fact, strength, coactivations, extract(epoch from %(now)s - last_seen_at)::float8 / 86400 as age,
        tier, fidelity
    from peer_activity
"""
WRITE_ONE = """
    update peer_activity set salience = %s, tier = %s, fidelity = %s where namespace = %s and fact = %s
"""
READ_ONE = "select halfvec_send(embedding) from peer_vectors where namespace = %s and fact = %s"
POOL_ONE = "update peer_vectors set embedding = %s::vector::halfvec where namespace = %s and fact = %s"
DROP_ONE = "delete from peer_vectors where namespace = %s and fact = %s"

Ways = dict[str, Callable[[Connection], int]]


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure a small and the large table, with equally many facts due."""
    for facts in (size.small, size.facts):
        context = prepared(machine, size, facts)
        ebb = [_pass(context, size.due) for _ in range(size.rounds)]
        seconds = _tell(answers, f"Ebb's pass, {facts:,} facts, {size.due:,} due", ebb)
        for name, way in _ways().items():
            rounds = 1 if name == ROW_BY_ROW else max(size.rounds // 2, 1)
            runs = [_rolled_back(context, way, size.due) for _ in range(rounds)]
            _tell(answers, f"{name}, {facts:,} facts", runs)
            ratios = [took / seconds for took, _ in runs]
            answers.add(f"{name} ÷ Ebb's pass, {facts:,} facts, {size.due:,} to change in both", "times", ratios)
        close_pools()


def prepared(machine: Machine, size: Size, facts: int) -> Context:
    """Return a database with that many due facts, and a copy for the scans."""
    context = data.prepare(machine, passes.layout(size, facts))
    with session(context) as db:
        db.execute(passes.literal(passes.KEEP_DUE, data.AT))
    passes.restore(context)
    with session(context) as db:
        db.execute(COPY)
        db.execute("vacuum (analyze) peer_activity, peer_vectors")
        db.execute("checkpoint")
    return context


def _tell(answers: Answers, name: str, runs: Sequence[tuple[float, float]]) -> float:
    """Record the seconds and the log of runs; return the median seconds."""
    answers.add(f"{name}, log written", "MiB", [logged for _, logged in runs])
    return answers.add(name, "s", [took for took, _ in runs]).median


def _pass(context: Context, due: int) -> tuple[float, float]:
    passes.restore(context, checkpoint=False)
    with session(context) as db:
        for statement in ARRANGE.split(";"):
            db.execute(statement.encode())
        before = _log_position(db)
        took = seconds(lambda: passes.run_pass(context, data.AT, due))
        return took, (_log_position(db) - before) / MIB


SET_BASED = "scan in one statement a table, what changes is written"
DOCUMENTED = "the same as documented, every row's salience is written"
ROW_BY_ROW = "row by row as documented: read, computed in Python, every row written back"


def _ways() -> Ways:
    return {
        SET_BASED: lambda db: scan(db, data.AT, everything=False),
        DOCUMENTED: lambda db: scan(db, data.AT, everything=True),
        ROW_BY_ROW: lambda db: _row_by_row(db, data.AT),
    }


def _rolled_back(context: Context, way: Callable[[Connection], int], due: int) -> tuple[float, float]:
    """Return the seconds of a scan and the MiB of log that it writes; it is rolled back and vacuumed."""
    changed: list[int] = []
    with session(context) as db:
        db.execute("checkpoint")
        before = _log_position(db)
        with db.transaction(force_rollback=True):
            took = seconds(lambda: changed.append(way(db)))
        logged = (_log_position(db) - before) / MIB
        db.execute("vacuum peer_activity, peer_vectors")
    if changed != [due]:
        raise AssertionError(f"The scan changed {changed} facts where {due} were to change.")
    return took, logged


def _log_position(db: Connection) -> int:
    (position,) = db.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone() or (0,)
    return int(position)


def scan(db: Connection, now: datetime, *, everything: bool) -> int:
    """Compute every row, and write all or the changed ones; return the number of changes."""
    return _write(db, now, sql.SQL("peer_activity"), everything=everything)


def take_slices(db: Connection, now: datetime, segments: Ints, skipped: Ints, taken: Ints) -> int:
    """Compute a slice of each segment at once, given by offset and length, and write the changes."""
    slices = {"segments": segments, "skipped": skipped, "taken": taken}
    source = sql.SQL(SLICES).format(**{name: sql.Literal(values.tolist()) for name, values in slices.items()})
    return _write(db, now, source, everything=False)


def _write(db: Connection, now: datetime, source: sql.Composable, *, everything: bool) -> int:
    # What makes a table takes no parameters.
    db.execute(sql.SQL(CHANGED).format(source=source, now=sql.Literal(now), everything=sql.Literal(everything)))
    db.execute("analyze changed")
    (changed,) = db.execute(COUNT).fetchone() or (0,)
    db.execute(WRITE)
    db.execute(POOL)
    db.execute(DROP)
    db.execute("drop table changed")
    return int(changed)


def _row_by_row(db: Connection, now: datetime) -> int:
    changed = 0
    with db.cursor("all rows") as rows:
        rows.itersize = BATCH
        rows.execute(READ, {"now": now})
        while batch := rows.fetchmany(BATCH):
            became = [(_became(*row[2:]), row) for row in batch]
            with db.cursor() as writing:
                writing.executemany(WRITE_ONE, [(*new, *row[:2]) for new, row in became])
            for (_, tier, fidelity), row in became:
                changed += (tier, fidelity) != row[5:]
                if fidelity != row[6]:
                    _shrink(db, row, fidelity)
    return changed


def _became(strength: float, coactivations: int, age: float, _: int, fidelity: int) -> tuple[float, int, int]:
    """Return the current salience, tier and fidelity: the same closed form, one fact at a time."""
    scale = strength + 0.1
    hot_until = 6.0 if coactivations > 5 else min(max(math.log(strength / 0.7) * scale / 0.005, 0.0), 6.0)
    cold_from = max(6.0, hot_until + (math.log(strength / 0.4) * scale - 0.005 * hot_until) / 0.02)
    lost = 0.005 * min(age, hot_until) + 0.02 * max(min(age, cold_from) - hot_until, 0.0)
    retention = math.exp(-(lost + 0.05 * max(age - cold_from, 0.0)) / scale)
    reached = 1
    if age >= hot_until and retention < 0.7:
        reached = 4 if retention < 0.5 else 2
    if age >= cold_from and retention < 0.25:
        reached = FINGERPRINT
    return strength * retention, (age >= hot_until) + (age >= cold_from), max(fidelity, reached)


def _shrink(db: Connection, row: tuple[Any, ...], fidelity: int) -> None:
    key = row[:2]
    if fidelity == FINGERPRINT:
        db.execute(DROP_ONE, key)
        return
    found = db.execute(READ_ONE, key, binary=True).fetchall()
    ((_, stored),) = vectors.unpack([one[0] for one in found]).values()
    smaller = pool(stored, fidelity // row[6])[0]
    db.execute(POOL_ONE, (np.asarray(smaller).tolist(), *key))
