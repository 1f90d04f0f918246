"""The cost of an empty task, a recall and a store through the queue, against an empty task of plain Celery."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from os import getpid, sysconf
from pathlib import Path
from time import perf_counter

import numpy as np
from celery import Celery
from redis import Redis

from tests.benchmarks import bare, queued, recalls, running, texts
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.queued import NAMESPACE
from tests.benchmarks.scale import Size
from workers.context import Context
from workers.storage.connection import close_pools

NAME = "bench_floor"
STORED_INTO = "stored"
EMPTY = "bench.empty"
AT_ONCE = 16
CHILDREN = 2
TICKS = sysconf("SC_CLK_TCK")

BACKENDS = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"

BARE, OURS, RECALL, STORE = "an empty task of bare Celery", "an empty task", "a recall", "a store"


@dataclass(frozen=True, slots=True)
class Way:
    """A request, and the main process of its worker."""

    act: Callable[[], object]
    worker: int


@dataclass(frozen=True, slots=True)
class Round:
    """The results of one round: median milliseconds, requests per second, and CPU milliseconds of a request by part."""

    p50: float
    rate: float
    cpu: dict[str, float]


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Send each request in turn, one at a time and concurrently, and sum the CPU time of every process."""
    machine.empty_redis()
    context = queued.filled(machine, NAME, size.queued)
    asked = cycle([one.text for one in recalls.questions(context, 300)])
    said = iter(texts.write(np.random.default_rng(5), (size.rounds + 1) * size.queries * 4)[0])
    plain = bare.bare_app(machine.redis.url())
    with (
        running.workers(machine, context, CHILDREN, include="tests.benchmarks.empty") as own,
        running.bare_workers(machine, context, CHILDREN, plain) as other,
        running.client(machine, NAMESPACE) as client,
        running.client(machine, STORED_INTO) as storing,
    ):
        ways = {
            BARE: Way(lambda: _bare(plain), other),
            OURS: Way(lambda: client.call(EMPTY, {"namespace": NAMESPACE}, 15.0), own),
            RECALL: Way(lambda: client.recall(next(asked), touch=False), own),
            STORE: Way(lambda: storing.store(next(said)), own),
        }
        for together in (1, AT_ONCE):
            _tell(answers, _rounds(machine, context, ways, size, together), together)
    plain.close()
    machine.drop(NAME)
    close_pools()


def _bare(app: Celery) -> None:
    result = app.send_task(running.EMPTY, args=(1,), expires=15.0)
    result.get(timeout=15.0)
    result.forget()


def _rounds(
    machine: Machine, context: Context, ways: dict[str, Way], size: Size, together: int
) -> dict[str, list[Round]]:
    rounds: dict[str, list[Round]] = {name: [] for name in ways}
    times = size.queries * (2 if together > 1 else 1)
    with session(context) as db, Redis.from_url(machine.redis.url()) as keys:
        for number in range(size.rounds + 1):
            for name, way in ways.items():
                backends = [pid for (pid,) in db.execute(BACKENDS).fetchall()]
                done = _round(way, times, together, backends, keys)
                if number:  # the first round warms up
                    rounds[name].append(done)
    return rounds


def _round(way: Way, times: int, together: int, backends: Sequence[int], keys: Redis) -> Round:
    processes = {
        "client": [getpid()], "worker": [way.worker], "children": _children(way.worker), "PostgreSQL": backends,
    }  # fmt: skip
    before, began = _cpu(processes, keys), perf_counter()
    with ThreadPoolExecutor(together) as threads:
        took = list(threads.map(lambda _: seconds(way.act), range(times)))
    wall, after = perf_counter() - began, _cpu(processes, keys)
    spent = {part: (after[part] - before[part]) * 1000 / times for part in before}
    return Round(quantile(took, 0.5) * 1000, times / wall, spent)


def _cpu(processes: dict[str, Sequence[int]], keys: Redis) -> dict[str, float]:
    """Return the CPU seconds of each part so far, user and system time."""
    redis = keys.info("cpu")
    return {part: sum(map(_seconds_of, pids)) for part, pids in processes.items()} | {
        "Redis": redis["used_cpu_user"] + redis["used_cpu_sys"]
    }


def _seconds_of(pid: int) -> float:
    path = Path(f"/proc/{pid}/stat")
    if not path.exists():
        return 0.0
    user, system = path.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _tell(answers: Answers, rounds: dict[str, list[Round]], together: int) -> None:
    how = "one at a time" if together == 1 else f"{together} at once, {CHILDREN} children"
    for name, done in rounds.items():
        answers.add(f"{name} p50, {how}", "ms", [one.p50 for one in done])
        answers.add(f"{name}, {how}", "a second", [one.rate for one in done])
        answers.add(f"CPU of {name}, {how}", "ms", [sum(one.cpu.values()) for one in done])
        answers.details[f"cpu_ms of {name}, {how}"] = [one.cpu for one in done]
    if together == 1:
        _compare(answers, rounds, OURS, BARE, how, most=1.2)
        _compare(answers, rounds, STORE, OURS, how, most=2.0)
        _compare(answers, rounds, RECALL, OURS, how)
        return
    pairs = zip(rounds[RECALL], rounds[OURS], strict=True)
    answers.add(f"recalls a second ÷ empty tasks, {how}", "times", [a.rate / b.rate for a, b in pairs], least=0.5)


def _compare(
    answers: Answers, rounds: dict[str, list[Round]], one: str, other: str, how: str, most: float | None = None
) -> None:
    pairs = list(zip(rounds[one], rounds[other], strict=True))
    answers.add(f"{one} p50 ÷ {other}, {how}", "times", [a.p50 / b.p50 for a, b in pairs], most=most)
    cpu = [sum(a.cpu.values()) / sum(b.cpu.values()) for a, b in pairs]
    answers.add(f"CPU of {one} ÷ {other}, {how}", "times", cpu, most=most)
