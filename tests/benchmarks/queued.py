"""The cost of the queue: real workers, called through the client, against the same calls in this process."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from uuid_utils.compat import uuid7

from api.client import Client
from tests.benchmarks import breakdown, recalls, running, texts
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.recalls import Asked
from tests.benchmarks.running import EMPTY
from tests.benchmarks.scale import Size
from workers.admin import search_indexes
from workers.context import Context
from workers.memory import recall, store
from workers.queues import RECALL
from workers.storage import schema
from workers.storage.connection import close_pools
from workers.validation.facts import new_fact

NAME = "bench_queue"
NAMESPACE = "queue"
STORED = "select 1 from facts where id = %s"
LAG_ROUNDS = 50


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure the latency of recalls and stores with two children, and the stages of a recall."""
    machine.empty_redis()
    context = filled(machine, NAME, size.queued)
    asked = recalls.questions(context, 300)
    with running.workers(machine, context, 2):
        _latency(machine, context, answers, asked, size)
        _stores(machine, context, answers, size)
    with running.workers(machine, context, 1, include=breakdown.__name__):
        breakdown.measure(machine, NAMESPACE, answers, [one.text for one in asked[: size.queries * 2]])
    machine.drop(NAME)
    close_pools()


def filled(machine: Machine, name: str, count: int) -> Context:
    """Return a database with one namespace, stored just now, as real clocks require."""
    context = machine.create(name)
    said, _ = texts.write(np.random.default_rng(count), count)
    facts = [new_fact({"text": text, "session": i // 25, "turn": i % 25}, 65_536) for i, text in enumerate(said)]
    for start in range(0, count, 5_000):
        store.store_many(context, NAMESPACE, facts[start : start + 5_000], context.now())
    search_indexes.count_lexemes(context, NAMESPACE, context.now())
    with session(context) as db:
        schema.check(db)
        db.execute("vacuum analyze")
    return context


def _latency(machine: Machine, context: Context, answers: Answers, asked: Sequence[Asked], size: Size) -> None:
    """Send each question in turn through the queue and to this process, and an empty task through the queue."""
    queued: list[float] = []
    direct: list[float] = []
    empty: list[float] = []
    with running.client(machine, NAMESPACE) as client:
        for number in range(size.rounds + 1):
            chosen = asked[: size.queries * 2]
            times = np.array([_three_ways(context, client, one.text) for one in chosen]) * 1000
            if number:  # the first round warms up
                for values, column in zip((queued, direct, empty), times.T, strict=True):
                    values.append(quantile(column.tolist(), 0.5))
    answers.add(f"recall through the queue p50, {size.queued:,} facts", "ms", queued)
    answers.add("the same call in process p50", "ms", direct)
    added = [one - other for one, other in zip(queued, direct, strict=True)]
    answers.add("what the queue adds to a recall", "ms", added, most=10.0)
    answers.add("an empty task through the queue p50", "ms", empty)


def _three_ways(context: Context, client: Client, text: str) -> tuple[float, float, float]:
    return (
        seconds(lambda: client.recall(text, touch=False)),
        seconds(lambda: recall.recall(context, NAMESPACE, recall.Question(text), context.now())),
        seconds(lambda: client.wait(client._app.send_task(EMPTY, args=(1,), queue=RECALL), 10.0)),
    )


def _stores(machine: Machine, context: Context, answers: Answers, size: Size) -> None:
    """Store single facts one after the other, and measure until the tables show them."""
    rng = np.random.default_rng(77)
    count = size.queries * 5
    with running.client(machine, NAMESPACE) as client, session(context) as db:
        client.store(texts.write(rng, 4)[0][0])
        waits, lags = [], []
        for _ in range(size.rounds):
            said, _ = texts.write(rng, count)
            waits.append(quantile([seconds(lambda text=text: client.store(text)) for text in said], 0.5) * 1000)  # type: ignore[misc]
            said, _ = texts.write(rng, LAG_ROUNDS)
            lags += [_lag(client, db, text) for text in said]
        found = client.recall(said[-1], limit=1, touch=False)["results"][0]["text"]
    if found != said[-1]:
        raise AssertionError(f"What was stored last is not what its own words find: {found!r}.")
    answers.add("single store through the queue p50", "ms", waits)
    answers.add("write-to-readable lag p50", "ms", [quantile(lags, 0.5)], note=f"{len(lags)} stores without waiting")
    answers.add("write-to-readable lag p95", "ms", [quantile(lags, 0.95)])


def _lag(client: Client, db: Any, text: str) -> float:
    """Return the milliseconds from sending a fact until it can be read."""
    id_ = str(uuid7())
    began = time.perf_counter()
    client.store(text, wait=False, id=id_)
    while db.execute(STORED, [id_]).fetchone() is None:
        if time.perf_counter() - began > running.START_SECONDS:
            raise TimeoutError(f"The fact {id_} did not come; see worker.log.")
    return (time.perf_counter() - began) * 1000
