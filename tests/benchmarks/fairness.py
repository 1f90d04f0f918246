"""Fairness: how the load of one tenant affects the recalls of another, and the liveness check."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx2
import numpy as np
from redis import Redis

from tests.benchmarks import load, queued, recalls, running, texts
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.machine import Machine
from tests.benchmarks.queued import NAMESPACE
from tests.benchmarks.scale import Size
from workers.coordination import bulk
from workers.coordination.redis import own_keys
from workers.queues import RECALL, STORE, UNACKED, length_of
from workers.storage.connection import close_pools

NAME = "bench_fairness"
LOUD = "loud"
CHILDREN = 2
WARM_SECONDS = 2.0
LONGEST_SECONDS = 20.0
"""How long the quiet tenant asks beside a load, at most."""

DRAIN_SECONDS = 120.0
PROBE_SECONDS = 0.05
GIVEN_UP = 60.0

LOADS: dict[load.Kind, tuple[str, float, float | None]] = {
    "batches": ("4 clients of store_many of 1,000", 1.5, 2.5),
    "heavy": ("16 heavy recalls (60 kB, limit 1,000, explain)", 3.0, None),
    "allowed": ("16 recalls of the greatest cost allowed (limit 1,000, explain)", 3.0, None),
    "crowd": ("80 clients", 4.0, None),
}
"""What runs beside the recalls, and the targets of their p50 and p95 as multiples of those alone."""


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Recall as the quiet tenant, alone and during each load of the other, all in one run."""
    machine.empty_redis()
    context = queued.filled(machine, NAME, size.queued)
    said, _ = texts.write(np.random.default_rng(3), load.BATCH)
    asked = [one.text for one in recalls.questions(context, size.queries * 2)]
    with running.workers(machine, context, CHILDREN), running.serving(machine, context) as url:
        _grow(url, said)
        with httpx2.Client(base_url=url, headers={"X-Ebb-Namespace": NAMESPACE}, timeout=GIVEN_UP) as http:
            for kind in LOADS:
                _beside(machine, answers, url, http, kind, said, asked, size)
        _alone(machine, answers, url, said, size)
    machine.drop(NAME)
    close_pools()


def _grow(url: str, said: Sequence[str]) -> None:
    """Store facts for the loud tenant."""
    with httpx2.Client(base_url=url, headers={"X-Ebb-Namespace": LOUD}, timeout=GIVEN_UP) as http:
        for start in range(0, len(said), 100):
            facts = [{"text": text} for text in said[start : start + 100]]
            http.post("/memory/facts/batch", json={"facts": facts}).raise_for_status()


def _beside(
    machine: Machine,
    answers: Answers,
    url: str,
    http: httpx2.Client,
    kind: load.Kind,
    said: Sequence[str],
    asked: Sequence[str],
    size: Size,
) -> None:
    """Record the quiet tenant's latencies during a load as multiples of those just before it, and other waits."""
    name, most, most_p95 = LOADS[kind]
    middles, tails, lives, served, plain = [], [], [], [], []
    for _ in range(size.rounds):
        alone = _latencies(http, asked)
        with load.running(url, LOUD, kind, said):
            time.sleep(WARM_SECONDS)
            with _probing(url) as probes:
                beside = _latencies(http, asked)
        served.append(_ask(http, asked[0]))
        _drained(machine)
        plain.append(quantile(alone, 0.5) * 1000)
        middles.append(quantile(beside, 0.5) / quantile(alone, 0.5))
        tails.append(quantile(beside, 0.95) / quantile(alone, 0.95))
        lives.append(max(probes) * 1000)
    answers.add(f"recall alone p50, before {name}", "ms", plain)
    answers.add(f"recall beside {name}, p50 ÷ alone", "times", middles, most=most)
    answers.add(f"recall beside {name}, p95 ÷ alone", "times", tails, most=most_p95)
    answers.add(f"/health/live beside {name}, the slowest", "ms", lives, most=50.0)
    answers.add(f"until a recall is answered after {name} stopped", "s", served, most=2.0)


def _alone(machine: Machine, answers: Answers, url: str, said: Sequence[str], size: Size) -> None:
    """Record the throughput of the loud tenant alone."""
    for kind, name, each in (
        ("batches", "facts stored by 4 clients of store_many", load.BATCH),
        ("crowd", "recalls by 80 clients", 1),
    ):
        rates = []
        for _ in range(size.rounds):
            with load.running(url, LOUD, kind, said) as answered:  # type: ignore[arg-type]  # one of its kinds
                time.sleep(WARM_SECONDS)
                before, began = answered.value, time.perf_counter()
                time.sleep(LONGEST_SECONDS / 2)
                rates.append((answered.value - before) * each / (time.perf_counter() - began))
            _drained(machine)
        answers.add(f"{name} alone", "a second", rates)


def _latencies(http: httpx2.Client, asked: Sequence[str]) -> list[float]:
    """Return the seconds of each question, until all are answered or the time is over."""
    until, took = time.monotonic() + LONGEST_SECONDS, []
    for text in asked:
        took.append(_ask(http, text))
        if time.monotonic() > until:
            break
    return took


def _ask(http: httpx2.Client, text: str) -> float:
    """Return the seconds until a recall is answered, with retries after refusals."""

    def ask() -> None:
        while not http.post("/memory/recall", json={"query": text, "touch": False}).is_success:
            time.sleep(PROBE_SECONDS)

    return seconds(ask)


@contextmanager
def _probing(url: str) -> Iterator[list[float]]:
    """Send the liveness check a few times per second during the block; yield the seconds of each answer."""
    took: list[float] = []
    over = threading.Event()

    def probe() -> None:
        with httpx2.Client(base_url=url, timeout=GIVEN_UP) as http:
            while not over.wait(PROBE_SECONDS):
                took.append(seconds(lambda: http.get("/health/live").raise_for_status()))

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def _drained(machine: Machine) -> None:
    """Wait until the queues are empty."""
    with Redis.from_url(machine.redis.url()) as broker, own_keys(machine.redis.url()) as own:

        def is_empty() -> bool:
            queued = length_of(broker, RECALL) + length_of(broker, STORE) + broker.hlen(UNACKED)
            return not queued and not bulk.waiting(own)["batches"]

        running.wait_until(is_empty, DRAIN_SECONDS)
