"""Waiting under load: real workers at several rates of requests, and a simulation of the same lanes."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import numpy as np
import psutil
import redis

from api.client import Client
from tests.benchmarks import queued, recalls, running, simulation, texts
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.machine import Machine
from tests.benchmarks.queued import NAMESPACE
from tests.benchmarks.running import EMPTY
from tests.benchmarks.scale import Size
from tests.benchmarks.simulation import Lane
from workers.queues import RECALL
from workers.storage.connection import close_pools

NAME = "bench_lanes"
CHILDREN = 2
STORES = 0.2
"""The share of requests that store a fact."""

LOADS = (0.3, 0.5, 0.7)
"""Rates, as shares of the highest."""

LOAD_SECONDS = 30.0
SENDERS = 48


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure service times, then waiting under load, and compare it with the simulation."""
    machine.empty_redis()
    context = queued.filled(machine, NAME, size.queued)
    asked = [one.text for one in recalls.questions(context, size.queries * 5)]
    with running.workers(machine, context, CHILDREN) as worker, running.client(machine, NAMESPACE) as client:
        act = _actions(client)
        _count_work(machine, worker, act, asked, answers)
        empty = lambda _: client.wait(client._app.send_task(EMPTY, args=(1,), queue=RECALL), 10.0)  # noqa: E731 - named as the others are
        transit = quantile([seconds(partial(empty, one)) for one in asked], 0.5)
        alone = {name: _service(act[name], asked, transit) for name in act}
        most = _most(act, asked)
        for name, times in alone.items():
            answers.add(f"a {name} alone, without an empty task's time, mean", "ms", [float(np.mean(times)) * 1000])
        answers.add("an empty task p50", "ms", [transit * 1000])
        answers.add(f"most requests, {CHILDREN} children, a fifth of them stores", "requests/s", [most])
        for load in LOADS:
            _compare(act, asked, _at_capacity(alone, most), load * most, transit, answers)
    machine.drop(NAME)
    close_pools()


def _actions(client: Client) -> dict[str, Callable[[str], object]]:
    said, numbers = texts.write(np.random.default_rng(5), 500)[0], count()
    return {
        "recall": lambda text: client.recall(text, touch=False),
        "store": lambda _: client.store(f"{said[(number := next(numbers)) % len(said)]} {number}"),
    }


def _count_work(
    machine: Machine, worker: int, act: Mapping[str, Callable[[str], object]], asked: Sequence[str], answers: Answers
) -> None:
    """Record the CPU time of each request by process, which depends little on other load."""
    for name in act:
        act[name](asked[0])
        before = _processor(machine, worker)
        for one in asked:
            act[name](one)
        for place, spent in _processor(machine, worker).items():
            answers.add(f"processor time of a {name}, {place}", "ms", [1000 * (spent - before[place]) / len(asked)])


def _processor(machine: Machine, worker: int) -> dict[str, float]:
    """Return the CPU seconds of worker, PostgreSQL and Redis."""
    postmaster = int((machine.postgres.data / "postmaster.pid").read_text().split()[0])
    with redis.Redis.from_url(machine.redis.url()) as broker:
        usage = broker.info("cpu")
    own = {name: _of_tree(pid) for name, pid in (("worker", worker), ("PostgreSQL", postmaster))}
    return own | {"Redis": float(usage["used_cpu_user"]) + float(usage["used_cpu_sys"])}


def _of_tree(pid: int) -> float:
    parent = psutil.Process(pid)
    return sum(sum(one.cpu_times()[:2]) for one in (parent, *parent.children(recursive=True)))


def _at_capacity(alone: Mapping[str, Sequence[float]], most: float) -> dict[str, list[float]]:
    """Return service times while all children are busy and share the cores with PostgreSQL."""
    mean = (1 - STORES) * float(np.mean(alone["recall"])) + STORES * float(np.mean(alone["store"]))
    return {name: [one * CHILDREN / most / mean for one in times] for name, times in alone.items()}


def _compare(
    act: Mapping[str, Callable[[str], object]],
    asked: Sequence[str],
    service: Mapping[str, Sequence[float]],
    rate: float,
    transit: float,
    answers: Answers,
) -> None:
    lanes = {"recall": Lane(rate * (1 - STORES), service["recall"]), "store": Lane(rate * STORES, service["store"])}
    simulated = simulation.simulate(lanes, CHILDREN, 100 * LOAD_SECONDS, transit=transit)
    measured = _under_load(act, rate, asked)
    for name in lanes:
        for share in (0.5, 0.95):
            what = f"{name} p{share * 100:g} at {rate:.0f} requests/s"
            answers.add(what, "ms", [quantile(measured[name], share) * 1000])
            answers.add(f"{what}, simulated", "ms", [quantile(simulated[name], share) * 1000])


def _service(act: Callable[[str], object], asked: Sequence[str], transit: float) -> list[float]:
    """Return how long each call occupies a child without load: its latency without that of an empty task."""
    act(asked[0])
    return [max(seconds(partial(act, one)) - transit, 0.0) for one in asked]


def _most(act: Mapping[str, Callable[[str], object]], asked: Sequence[str]) -> float:
    """Return the requests per second while some are always waiting."""
    with ThreadPoolExecutor(SENDERS) as senders:
        began = time.perf_counter()
        list(senders.map(lambda place: act[_kind(place)](asked[place % len(asked)]), range(len(asked))))
        return len(asked) / (time.perf_counter() - began)


def _kind(place: int) -> str:
    return "store" if place % round(1 / STORES) == 0 else "recall"


def _under_load(
    act: Mapping[str, Callable[[str], object]], rate: float, asked: Sequence[str]
) -> dict[str, list[float]]:
    """Send requests at random instants, and return the seconds until each answer."""
    instants = np.cumsum(np.random.default_rng(11).exponential(1 / rate, int(rate * LOAD_SECONDS)))
    took: dict[str, list[float]] = {name: [] for name in act}
    sent, began = [], time.perf_counter()

    def send(place: int) -> None:
        act[_kind(place)](asked[place % len(asked)])
        took[_kind(place)].append(time.perf_counter() - began - instants[place])

    with ThreadPoolExecutor(SENDERS) as senders:
        for place, instant in enumerate(instants):
            time.sleep(max(began + instant - time.perf_counter(), 0.0))
            sent.append(senders.submit(send, place))
    for one in sent:
        one.result()
    return took
