"""For how long writes wait while a namespace moves to another shard, on PostgreSQL, or on Citus by its URL."""

import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any
from uuid import uuid4

import numpy as np
from ebb import broker
from psycopg.conninfo import make_conninfo

from tests.benchmarks import texts
from tests.benchmarks.figures import Answers, console
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.scale import Size
from workers.admin import shard_moves
from workers.context import Context
from workers.memory import recall, store
from workers.memory.embed import check_embedder
from workers.settings import Settings
from workers.storage import schema
from workers.storage.connection import close_pools
from workers.validation.facts import new_fact

CITUS = "EBB_TEST_CITUS_URL"
NAMESPACE = "moving"
SHARDS = 3
FACTS = 10_000
BATCH = 500
MOVES, QUICK_MOVES = 10, 3
WRITERS = 2
START_SECONDS = 60


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure moves from shard to shard, while two processes store and one recalls in the same namespace."""
    for name, url in _databases(machine):
        with _filled(machine, url, min(size.facts // 2, FACTS)) as context:
            held, longest = _moves(context, MOVES if size.facts > FACTS * 2 else QUICK_MOVES)
        answers.add(f"writes wait in a move of {FACTS:,} facts, {name}", "ms", held, most=1000)
        answers.add(f"longest store during one of these moves, {name}", "ms", longest)
        answers.details[name] = {"held": held, "longest": longest}


def _databases(machine: Machine) -> Iterator[tuple[str, str]]:
    machine.drop("bench_moves")
    yield "PostgreSQL", machine.create("bench_moves").database_url
    if given := os.environ.get(CITUS):
        yield "Citus", given


@contextmanager
def _filled(machine: Machine, url: str, facts: int) -> Iterator[Context]:
    """Yield a system with several shards in a schema of its own, and a namespace of so many facts."""
    own = f"bench_{uuid4().hex[:8]}"
    with session(_context(machine.redis.url(), url, 1)) as db:
        db.execute(f"create schema {own}")
    within = make_conninfo(url, options=f"-csearch_path={own},public")
    context = _context(machine.redis.url(), within, SHARDS)
    try:
        schema.apply(within, count=SHARDS)
        for _ in context.each_shard():
            check_embedder(context)
        given, _ = texts.write(np.random.default_rng(texts.SEED), facts)
        for first in range(0, facts, BATCH):
            _store(context, given[first : first + BATCH])
        yield context
    finally:
        close_pools()
        with session(_context(machine.redis.url(), url, 1)) as db:
            for name in (own, *(f"{own}_{shard:04}" for shard in range(1, SHARDS))):
                db.execute(f"drop schema if exists {name} cascade")


def _context(redis_url: str, url: str, shards: int) -> Context:
    return Context(Settings(database_url=url, redis_url=redis_url, shards=shards))


def _moves(context: Context, moves: int) -> tuple[list[float], list[float]]:
    """Return for how long each move held writes, and the longest store meanwhile, both in milliseconds."""
    spawning = multiprocessing.get_context("spawn")
    over, began = spawning.Event(), [spawning.Event() for _ in range(WRITERS + 1)]
    longest = [spawning.Value("d", 0.0) for _ in range(WRITERS)]
    given = (context.database_url, context.settings.redis_url, over)
    processes = [spawning.Process(target=_write, args=(*given, began[n], longest[n])) for n in range(WRITERS)]
    processes.append(spawning.Process(target=_read, args=(*given, began[-1])))
    for process in processes:
        process.start()
    held, waited = list[float](), list[float]()
    place = broker.number_of(NAMESPACE, SHARDS)
    try:
        for event in began:
            if not event.wait(START_SECONDS):
                raise TimeoutError(
                    f"A process of the load did not begin within {START_SECONDS} s; see its error above."
                )
        for number in range(moves):
            for value in longest:
                value.value = 0.0
            moved = shard_moves.move(context, NAMESPACE, (place + number + 1) % SHARDS)
            if ended := [process.exitcode for process in processes if not process.is_alive()]:
                raise RuntimeError(
                    f"Of the load, processes ended during a move, with {ended}: its figure is not valid."
                )
            held.append(moved.held_ms)
            waited.append(round(max(value.value for value in longest), 1))
            load = os.getloadavg()[0]
            console.print(
                f"    move {number}: {moved.rows} rows, held {held[-1]} ms, store {waited[-1]} ms, load {load:.1f}"
            )
    finally:
        over.set()
        for process in processes:
            process.join(START_SECONDS)
    return held, waited


def _store(context: Context, given: Sequence[str]) -> None:
    facts = [new_fact({"text": text}, context.settings.max_text) for text in given]
    with context.at(NAMESPACE):
        store.store_many(context, NAMESPACE, facts, context.now())


def _write(url: str, redis_url: str, over: Event, began: Event, longest: Any) -> None:
    context, number = _context(redis_url, url, SHARDS), 0
    while not over.is_set():
        at = time.monotonic()
        _store(context, [f"Process {os.getpid()} writes line {number} of its log."])
        longest.value = max(longest.value, (time.monotonic() - at) * 1000)
        number += 1
        began.set()


def _read(url: str, redis_url: str, over: Event, began: Event) -> None:
    context = _context(redis_url, url, SHARDS)
    while not over.is_set():
        with context.at(NAMESPACE):
            recall.recall(context, NAMESPACE, recall.Question("line of the log"), context.now())
        began.set()
