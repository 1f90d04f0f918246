"""Evaluation: what still grows in the second half of a run, after caches have filled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.benchmarks.figures import Answers, quantile
from tests.soak.bloat import MIB, Sizes
from tests.soak.load import User
from tests.soak.sampling import Samples
from tests.soak.system import System

HOUR = 3_600.0
PROGRAMS = ("worker", "maintenance", "beat", "flower", "api", "postgres", "supervisor", "redis")

MOST_GROWTH = 10.0
"""Limit of a process's growth in percent of its size per hour, in the second half of the run."""

LEAST_JUDGED_MIB = 100.0
"""Smaller processes count as if they had this size: memory is allocated in steps of a MiB or two, and one step in a
quarter of an hour is up to 8 MiB per hour. PostgreSQL's backends end with their connection, after an hour at most."""

MOST_WAITING = 200
MOST_INDEX_RATIO = 2.5
LEAST_INDEX_MIB = 1.0
CONNECTIONS_EACH = 2
MAINTENANCE_CHILDREN = 2
"""Each may have one more connection, outside the pool, while it builds indexes."""

MOST_MISSED = 5
POINTS = 120


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory of a process in the second half: mean in MiB, slope in MiB per hour."""

    program: str
    mean: float
    slope: float

    @property
    def percent(self) -> float:
        """Return the growth per hour in percent of the size."""
        return 100 * self.slope / max(self.mean, LEAST_JUDGED_MIB)


def second_half(samples: Samples) -> int:
    """Return the number of the first sample of the second half."""
    return int(np.searchsorted(samples.times, samples.times[-1] / 2))


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Return the growth of values per hour: the median slope of all pairs, which is robust against single steps."""
    from scipy.stats import theilslopes  # takes a second to import, in each process that collects tests

    return float(theilslopes(np.array(values), np.array(times) / HOUR)[0])


def growths(samples: Samples) -> dict[int, Growth]:
    """Return the growth of each process that ran during the whole second half."""
    first = second_half(samples)
    times, taken = samples.times[first:], samples.processes[first:]
    throughout = set.intersection(*(set(one) for one in taken))
    grown = {}
    for pid in throughout:
        own = [one[pid].own for one in taken]
        grown[pid] = Growth(taken[0][pid].program, float(np.mean(own)), slope(times, own))
    return grown


def judge(answers: Answers, samples: Samples, workers: int) -> None:
    """Record growth, queues and leaks."""
    _memory(answers, samples)
    _files(answers, samples)
    _servers(answers, samples, workers)
    last = samples.servers[-1]
    answers.add("facts stored at the end, live and forgotten", "", [last["live facts"], last["facts"]])
    answers.add("samples that could not be taken", "", [len(samples.missed)], most=MOST_MISSED)
    answers.details |= {"series": _series(samples), "missed": samples.missed[:50]}


def judge_bloat(answers: Answers, indexes: Mapping[str, Sizes], tables: Mapping[str, Sizes]) -> None:
    """Record the bloat of indexes and tables."""
    large = {name: sizes for name, sizes in indexes.items() if sizes.now >= LEAST_INDEX_MIB * MIB}
    whole = sum(one.now for one in indexes.values()) / max(sum(one.fresh for one in indexes.values()), 1)
    answers.add("all indexes ÷ the same rebuilt", "times", [whole], most=MOST_INDEX_RATIO)
    if large:
        worst = max(large, key=lambda name: large[name].ratio)
        answers.add(
            f"the most bloated index above {LEAST_INDEX_MIB:g} MiB ÷ rebuilt",
            "times",
            [large[worst].ratio],
            most=MOST_INDEX_RATIO,
            note=worst,
        )
    packed = sum(one.now for one in tables.values()) / max(sum(one.fresh for one in tables.values()), 1)
    answers.add("all tables ÷ the same rebuilt", "times", [packed])
    answers.details["bytes of indexes, now and rebuilt"] = {name: [one.now, one.fresh] for name, one in indexes.items()}
    answers.details["bytes of tables, now and rebuilt"] = {name: [one.now, one.fresh] for name, one in tables.items()}


def _memory(answers: Answers, samples: Samples) -> None:
    grown = growths(samples)
    for program in PROGRAMS[:-1]:  # the memory of Redis is evaluated below
        own = [one for one in grown.values() if one.program.split()[0] == program]
        if own:
            worst = max(own, key=lambda one: one.percent)
            note = (
                f"{len(own)} processes of {sum(one.mean for one in own):.0f} MiB, the steepest {worst.slope:+.2f} MiB/h"
            )
            name = f"growth of the steepest process of {program}, second half"
            answers.add(name, "% an hour", [worst.percent], most=MOST_GROWTH, note=note)
    answers.details["growth"] = [
        {"program": one.program, "mean_mib": round(one.mean, 2), "slope_mib_an_hour": round(one.slope, 3)}
        for one in sorted(grown.values(), key=lambda one: -one.percent)
    ]
    _shares(answers, samples)
    redis = [one["redis MiB without keys that expire"] for one in samples.servers[second_half(samples) :]]
    grew = slope(samples.times[second_half(samples) :], redis)
    note = "receipts of what was accepted are kept for a day, results for minutes: those end by themselves"
    answers.add("growth of Redis without keys that expire, second half", "MiB/h", [grew], most=5.0, note=note)
    answers.add("worker children that were replaced", "", [_replaced(samples)], most=0)


def _shares(answers: Answers, samples: Samples) -> None:
    """Record the memory of all processes that ran throughout, with their copies of shared pages."""
    first = second_half(samples)
    taken = samples.processes[first:]
    throughout = set.intersection(*(set(one) for one in taken))
    if not throughout:
        return
    sums = [sum(one[pid].share for pid in throughout) for one in taken]
    grew = 100 * slope(samples.times[first:], sums) / float(np.mean(sums))
    note = f"of {np.mean(sums):.0f} MiB; a child that writes to a page it shares with its parent gets a copy of it"
    answers.add("growth of all processes together, second half", "% an hour", [grew], most=MOST_GROWTH, note=note)


def _replaced(samples: Samples) -> int:
    """Return the number of worker processes that started or ended after the first sample."""
    sets = [{pid for pid, one in taken.items() if one.program.startswith(WORKERS)} for taken in samples.processes]
    return len(set.union(*sets)) - len(sets[0])


WORKERS = ("worker", "maintenance")


def _files(answers: Answers, samples: Samples) -> None:
    """Compare the open files of each process in the last quarter with those in the quarter before the half.

    PostgreSQL keeps files open that it has read, up to its limit.
    """
    count = len(samples.processes)
    before, after = samples.processes[count // 4 : count // 2], samples.processes[count * 3 // 4 :]
    more = {
        pid: max(one[pid].files for one in after) - max(one[pid].files for one in before)
        for pid in set.intersection(*(set(one) for one in [*before, *after]))
        if not after[0][pid].program.startswith("postgres")
    }
    if not more:
        return
    worst = max(more, key=lambda pid: more[pid])
    name = "open files more in the last quarter than in the second, of any process"
    answers.add(name, "", [more[worst]], most=4, note=after[0][worst].program)
    every = max(count // POINTS, 1)
    answers.details["open files"] = [
        [after[0][pid].program, *(one[pid].files for one in samples.processes[::every] if pid in one)] for pid in more
    ]


def _servers(answers: Answers, samples: Samples, workers: int) -> None:
    for name in ("queue recall", "queue store", "queue maintenance", "unacknowledged", "outbox"):
        longest = max(one[name] for one in samples.servers)
        answers.add(f"longest {name}", "messages", [longest], most=MOST_WAITING)
    allowed = CONNECTIONS_EACH * (workers + MAINTENANCE_CHILDREN) + MAINTENANCE_CHILDREN + workers
    most = max(one["connections"] for one in samples.servers)
    answers.add(
        "most connections to the database",
        "",
        [most],
        most=allowed,
        note="two for each child, and one for each that builds indexes or searches by meaning at the same time",
    )
    idle = max(one["longest idle in transaction s"] for one in samples.servers)
    answers.add("longest idle in a transaction", "s", [idle], most=10)
    stays = [one["keys that stay"] for one in samples.servers[second_half(samples) :]]
    answers.add("keys in Redis that do not expire, most and least in the second half", "", [max(stays), min(stays)])


def judge_work(answers: Answers, users: Sequence[User], system: System) -> None:
    """Record requests and failures."""
    done = sum((user.done for user in users), start=type(users[0].done)())
    gone = sum((user.gone for user in users), start=type(users[0].gone)())
    failed = [failure for user in users for failure in user.failed]
    answers.add("requests answered", "", [sum(done.values())])
    answers.add("requests that failed", "", [len(failed)], most=0)
    complaints = [f"{name}: {line}" for name, line in system.logs() if _complains(name, line)]
    answers.add("errors in the logs of all processes", "", [len(complaints)], most=0)
    answers.details |= {
        "done": dict(done),
        "gone meanwhile": dict(gone),
        "failed": failed[:50],
        "complaints": complaints[:50],
        "p50_ms": {name: round(quantile(every, 0.5) * 1000, 1) for name, every in _seconds(users).items()},
        "p95_ms": {name: round(quantile(every, 0.95) * 1000, 1) for name, every in _seconds(users).items()},
    }


def _seconds(users: Sequence[User]) -> dict[str, list[float]]:
    names = {name for user in users for name in user.seconds}
    return {name: [one for user in users for one in user.seconds[name]] for name in sorted(names)}


def _complains(program: str, line: str) -> bool:
    signs = ("ERROR:", "FATAL:", "PANIC:") if program == "postgres" else (" ERROR ", " CRITICAL ", "Traceback (most")
    return any(sign in line for sign in signs)


def _series(samples: Samples) -> dict[str, Any]:
    """Return the time series, thinned out: memory of each program and of its largest process, and server figures."""
    every = max(len(samples.times) // POINTS, 1)
    taken = samples.processes[::every]
    of = {
        program: [[m for m in one.values() if m.program.split()[0] == program] for one in taken] for program in PROGRAMS
    }
    names = samples.servers[0]
    return {
        "seconds": [round(at, 1) for at in samples.times[::every]],
        "MiB of all": {name: [round(sum(m.share for m in one), 1) for one in every] for name, every in of.items()},
        "most MiB of one": {
            name: [round(max((m.own for m in one), default=0), 1) for one in every] for name, every in of.items()
        },
        "servers": {name: [round(one[name], 2) for one in samples.servers[::every]] for name in names},
        "bytes": [[round(at, 1), sizes] for at, sizes in samples.sizes[:: max(len(samples.sizes) // 12, 1)]],
    }
