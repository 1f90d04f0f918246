"""The cost of a pass: by the number of stored facts, against a full update, and in memory."""

import multiprocessing
import resource
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from tests.benchmarks import data
from tests.benchmarks.figures import Answers, quantile, seconds, split
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.decay import passes
from workers.settings import Settings
from workers.storage import due as due_facts
from workers.storage import runs, vectors
from workers.storage.connection import close_pools
from workers.storage.runs import Counters

NOTHING_DUE_SINCE = data.AT - timedelta(days=11)

WAL_STATES = {"between checkpoints": False, "right after a checkpoint": True}
WAL_NOTE = (
    "what is due lies scattered over the whole table; between checkpoints its pages stand in the log already, right "
    "after one each of them is logged as a whole, and the larger table has more of them"
)

KEEP_DUE = """
    create table if not exists bench_activity as select * from activity where due_at <= %(now)s;
    create table if not exists bench_vectors as
    select vectors.* from vectors join bench_activity using (namespace, fact)
"""

# Of fewer than all those from anywhere in the table are taken, the same ones each time.
RESTORE_ACTIVITY = """
    update activity
    set tier = kept.tier, fidelity = kept.fidelity, ends_at = kept.ends_at, due_at = kept.due_at, held = kept.held
    from (select * from bench_activity order by md5(fact::text) limit %(most)s) as kept
    where activity.namespace = kept.namespace and activity.fact = kept.fact
"""

RESTORE_VECTORS = """
    insert into vectors
    select bench_vectors.* from bench_vectors
    join (select * from bench_activity order by md5(fact::text) limit %(most)s) as kept using (namespace, fact)
    on conflict (namespace, fact) do update set full_dims = excluded.full_dims, embedding = excluded.embedding
"""

FULL_UPDATE = "update activity set tier = tier"

# The sources' tick as one statement: every row is read and its tier computed, and those that differ are written.
FULL_SCAN = """
    update activity set tier = new.tier
    from (
        select namespace, fact,
            case
                when age < 6 and (strength * exp(-0.005 * age / (strength + 0.1)) > 0.7 or coactivations > 5) then 0
                when age < 6 or strength * exp(-0.02 * age / (strength + 0.1)) > 0.4 then 1
                else 2
            end as tier
        from (
            select namespace, fact, coactivations, least(base * (1 + ln(1 + coactivations)), 1) as strength,
                extract(epoch from %(now)s - last_seen_at)::float8 / 86400 as age
            from activity
        ) as aged
    ) as new
    where activity.namespace = new.namespace and activity.fact = new.fact and activity.tier <> new.tier
"""

READ_ALL = "select count(*), sum(base * exp(-extract(epoch from %(now)s - last_seen_at)::float8 / 1e7)) from activity"

STAGES = {
    "claim": (due_facts, "claim"),
    "compute": (passes, "fade"),
    "read vectors": (vectors, "read"),
    "write vectors": (vectors, "shrink"),
    "drop vectors": (vectors, "drop"),
    "write activity": (due_facts, "write_faded"),
    "lock part": (runs, "lock_part"),
    "count": (runs, "count"),
    "finish part": (runs, "finish_part"),
    "plan": (passes, "plan"),
}


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure passes over tables of different sizes with equally many facts due, then with fewer."""
    sizes = size.steps
    contexts = [data.prepare(machine, layout(size, facts)) for facts in sizes]
    for context in contexts:
        with session(context) as db:
            db.execute(literal(KEEP_DUE, data.AT))
    for state, checkpoint in WAL_STATES.items():
        rounds = [[_due_pass(context, size.due, checkpoint) for context in contexts] for _ in range(size.rounds)]
        _tell_growth(answers, size, rounds, state)
    answers.details["stages_ms"] = {
        str(facts): _stages(context, size.due) for facts, context in zip(sizes, contexts, strict=True)
    }
    _fewer_due(answers, contexts[-1], size)
    _nothing_due(answers, contexts[-1], size)
    _memory(answers, [contexts[0], contexts[-1]], size)
    close_pools()


def layout(size: Size, facts: int) -> data.Layout:
    """Return a layout in which equally many facts are due at every size."""
    return data.even("passes", facts, max(facts // size.each, 1), mean_idle_days=20.0, due=size.due)


def _tell_growth(answers: Answers, size: Size, rounds: Sequence[Sequence[float]], state: str) -> None:
    sizes = size.steps
    small, large = [one[0] for one in rounds], [one[-1] for one in rounds]
    curve = {str(facts): [one[i] for one in rounds] for i, facts in enumerate(sizes)}
    answers.details.setdefault("pass_seconds", {})[state] = curve
    answers.add(f"pass, {sizes[0]:,} facts, {state}", "s", small)
    answers.add(f"pass, {sizes[-1]:,} facts, as many due, {state}", "s", large)
    ratios = [after / before for before, after in zip(small, large, strict=True)]
    answers.add(f"pass at {size.times} times the facts, as many due, {state}", "times", ratios, most=1.3, note=WAL_NOTE)


def _due_pass(context: Context, due: int, checkpoint: bool) -> float:
    """Return the seconds of a pass over the due facts, which are made due again before."""
    restore(context, due, checkpoint=checkpoint)
    return seconds(lambda: run_pass(context, data.AT, due))


def _fewer_due(answers: Answers, context: Context, size: Size) -> None:
    """Measure passes over one table with increasing numbers of due facts; the last pass left nothing due."""
    counts = [size.due // 10, size.due * 3 // 10, size.due]
    rounds = [[_due_pass(context, due, checkpoint=False) for due in counts] for _ in range(size.rounds)]
    curve = {str(due): [one[i] for one in rounds] for i, due in enumerate(counts)}
    answers.details["pass_seconds_by_due"] = curve
    for due, took in curve.items():
        answers.add(f"pass, {size.facts:,} facts, {int(due):,} due", "s", took)
    growth = [one[-1] / one[0] for one in rounds]
    answers.add("pass with ten times as many due", "times", growth, most=13.0)


def restore(context: Context, most: int | None = None, *, checkpoint: bool = True) -> None:
    """Make the facts of a pass, or a number of them, due again, and leave no dead rows to the next.

    After a checkpoint PostgreSQL logs each page as a whole at its first change.
    """
    with session(context) as db:
        db.execute(RESTORE_ACTIVITY, {"most": most})
        db.execute(RESTORE_VECTORS, {"most": most})
        db.execute("vacuum (analyze) activity, vectors, decay_parts, decay_runs")
        if checkpoint:
            db.execute("checkpoint")


def run_pass(context: Context, at: datetime, expected: int) -> None:
    """Run a whole pass, and verify its result."""
    if (done := whole_pass(context, at).processed) != expected:
        raise AssertionError(f"The pass processed {done} facts where {expected} were due.")


def whole_pass(context: Context, at: datetime, **how: Any) -> Counters:
    """Run a whole pass in this process; return its counts."""
    run = uuid4()
    for part in passes.plan(context, run, at, **how):
        passes.apply(context, part, lambda: None)
    return passes.finish(context, run).counters


def let_a_year_pass(context: Context) -> None:
    """Run a monthly pass for a year without recalls."""
    for month in range(1, 13):
        whole_pass(context, data.AT + timedelta(days=365 * month / 12))


def _stages(context: Context, due: int) -> dict[str, float]:
    restore(context)
    with split(STAGES) as spent:
        whole = seconds(lambda: run_pass(context, data.AT, due))
    stages = {stage: round(value * 1000, 1) for stage, value in spent.items()}
    return stages | {"rest": round((whole - sum(spent.values())) * 1000, 1), "whole": round(whole * 1000, 1)}


def _nothing_due(answers: Answers, context: Context, size: Size) -> None:
    restore(context)
    idle = [seconds(lambda: run_pass(context, NOTHING_DUE_SINCE, 0)) for _ in range(20)]
    run_pass(context, data.AT, size.due)
    idle_after = [seconds(lambda: run_pass(context, data.AT, 0)) for _ in range(20)]
    updates = [_rolled_back(context, FULL_UPDATE) for _ in range(max(size.rounds // 2, 1))]
    scans = [_rolled_back(context, FULL_SCAN) for _ in range(max(size.rounds // 2, 1))]
    with session(context) as db:
        reads = [seconds(lambda: db.execute(READ_ALL, {"now": data.AT}).fetchall()) for _ in range(size.rounds)]
        db.execute("vacuum full activity")
        db.execute("analyze activity")
    answers.add("pass with nothing due", "ms", [one * 1000 for one in idle], note="median of 20 passes")
    answers.add("pass with nothing due, right after one with", "ms", [one * 1000 for one in idle_after])
    full = answers.add("full-table update of the same rows", "s", updates)
    answers.add("pass with nothing due ÷ full update", "%", [one / full.median * 100 for one in idle], most=1.0)
    answers.add("the sources' full scan, set-based", "s", scans)
    answers.add("reading every row once", "s", reads)
    answers.details["nothing_due_p95_ms"] = quantile(idle, 0.95) * 1000


def _rolled_back(context: Context, statement: str) -> float:
    """Return the seconds of a statement over the whole table, which is rolled back and vacuumed.

    Its changes are not counted by triggers, as they would not be in a design with such statements.
    """
    with session(context) as db:
        db.execute("set session_replication_role = replica")
        db.execute("vacuum activity")
        db.execute("checkpoint")
        with db.transaction(force_rollback=True):
            took = seconds(lambda: db.execute(statement.encode(), {"now": data.AT} if "%(now)s" in statement else None))
        db.execute("vacuum activity")
    return took


def _memory(answers: Answers, contexts: Sequence[Context], size: Size) -> None:
    """Compare the peak memory of processes that only run a pass."""
    peaks = []
    for context in contexts:
        restore(context)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
            peaks.append(processes.submit(_peak_mib, context.settings, size.due).result())
    answers.add("peak memory of a pass, small table", "MiB", [peaks[0]])
    answers.add("peak memory of a pass, large table", "MiB", [peaks[1]])
    answers.add(f"peak memory at {size.times} times the facts", "times", [peaks[1] / peaks[0]], most=1.05)


def _peak_mib(settings: Settings, due: int) -> float:
    run_pass(Context(settings), data.AT, due)
    close_pools()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def literal(statement: str, now: datetime) -> bytes:
    """Return a statement without parameters, since it is two."""
    return statement.replace("%(now)s", f"'{now.isoformat()}'").encode()
