"""What the queue adds: real workers, asked through the client, beside the same calls in this process."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from celery import Celery
from celery.result import ResultSet
from uuid_utils.compat import uuid7

from api.client import Client
from api.system import programs
from tests.benchmarks import recalls, texts
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.machine import Machine, session
from tests.benchmarks.recalls import Asked
from tests.benchmarks.scale import Size
from workers import intake, recall, search
from workers.context import Context, utc_now
from workers.queues import RECALL, configuration
from workers.remembering import store
from workers.storage import schema
from workers.storage.connection import close_pools

NAME = "bench_queue"
NAMESPACE = "queue"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
EMPTY = "celery.accumulate"
"""A task that Celery itself brings, and that returns what it is given."""

STORED = "select 1 from facts where id = %s"
LAG_ROUNDS = 50


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure latency with two children, then tasks a second with one, two and four."""
    machine.empty_redis()
    context = _filled(machine, min(size.facts // 10, 10_000))
    asked = recalls.questions(context, 300)
    with _workers(machine, context, 2):
        _latency(machine, context, answers, asked, size)
        _stores(machine, context, answers, size)
    for children in (1, 2, 4):
        with _workers(machine, context, children):
            _throughput(machine, answers, asked, children, size)
    machine.drop(NAME)
    close_pools()


def _filled(machine: Machine, count: int) -> Context:
    """Return a database with one namespace, stored just now, as real clocks demand."""
    context = machine.create(NAME)
    said, _ = texts.write(np.random.default_rng(count), count)
    facts = [intake.new_fact({"text": text, "session": i // 25, "turn": i % 25}, 65_536) for i, text in enumerate(said)]
    for start in range(0, count, 5_000):
        store.store_many(context, NAMESPACE, facts[start : start + 5_000], utc_now())
    search.count_lexemes(context, NAMESPACE, utc_now())
    with session(context) as db:
        schema.check(db)
        db.execute("vacuum analyze")
    return context


@contextmanager
def _workers(machine: Machine, context: Context, children: int) -> Iterator[None]:
    """Run the worker that `ebb up` runs, with that many children, while the block runs."""
    program = programs._worker("worker", "recall,store", children, context.settings)
    environment = machine.environment(context.settings) | dict(program.environment)
    with (machine.folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(
            program.command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_until(lambda: _answers(machine, process))
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def _wait_until(come_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not come_true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"The worker did not answer within {START_SECONDS:g} s; see worker.log.")


def _answers(machine: Machine, process: "subprocess.Popen[bytes]") -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"The worker ended with {process.returncode}; see {machine.folder / 'worker.log'}.")
    with _app(machine) as app:
        return bool(app.control.ping(timeout=0.5, limit=1))


@contextmanager
def _app(machine: Machine) -> Iterator[Celery]:
    app = Celery("benchmarks", set_as_current=False)
    app.conf.update(configuration(machine.redis.url()))
    try:
        yield app
    finally:
        app.close()


@contextmanager
def _client(machine: Machine) -> Iterator[Client]:
    client = Client(machine.redis.url(), NAMESPACE)
    try:
        yield client
    finally:
        client.close()


def _latency(machine: Machine, context: Context, answers: Answers, asked: Sequence[Asked], size: Size) -> None:
    """Send each question in turn through the queue, to this process, and in its stead an empty task."""
    queued: list[float] = []
    direct: list[float] = []
    empty: list[float] = []
    with _client(machine) as client:
        for number in range(size.rounds + 1):
            chosen = asked[: size.queries * 2]
            times = np.array([_three_ways(context, client, one.text) for one in chosen]) * 1000
            if number:  # the first round warms up
                for values, column in zip((queued, direct, empty), times.T, strict=True):
                    values.append(quantile(column.tolist(), 0.5))
    answers.add("recall through the queue p50, 10,000 facts", "ms", queued)
    answers.add("the same call in process p50", "ms", direct)
    added = [one - other for one, other in zip(queued, direct, strict=True)]
    answers.add("what the queue adds to a recall", "ms", added, most=10.0)
    answers.add("an empty task through the queue p50", "ms", empty)


def _three_ways(context: Context, client: Client, text: str) -> tuple[float, float, float]:
    return (
        seconds(lambda: client.recall(text, touch=False)),
        seconds(lambda: recall.recall(context, NAMESPACE, recall.Question(text), utc_now())),
        seconds(lambda: client.wait(client._app.send_task(EMPTY, args=(1,), queue=RECALL), 10.0)),
    )


def _stores(machine: Machine, context: Context, answers: Answers, size: Size) -> None:
    """Store single facts: one after the other, many at once, and until the tables show what was sent."""
    rng = np.random.default_rng(77)
    count = size.queries * 5
    with _client(machine) as client, session(context) as db:
        client.store(texts.write(rng, 4)[0][0])
        waits, rates, lags = [], [], []
        for _ in range(size.rounds):
            said, _ = texts.write(rng, count)
            waits.append(quantile([seconds(lambda text=text: client.store(text)) for text in said], 0.5) * 1000)  # type: ignore[misc]
            said, _ = texts.write(rng, count)
            rates.append(count / _all_done(machine, [("memory.store", {"text": text}) for text in said]))
            said, _ = texts.write(rng, LAG_ROUNDS)
            lags += [_lag(client, db, text) for text in said]
        found = client.recall(said[-1], limit=1, touch=False)["results"][0]["text"]
    if found != said[-1]:
        raise AssertionError(f"What was stored last is not what its own words find: {found!r}.")
    answers.add("single store through the queue p50", "ms", waits)
    answers.add("single stores through the queue, 2 children", "tasks/s", rates)
    answers.add("write-to-readable lag p50", "ms", [quantile(lags, 0.5)], note=f"{len(lags)} stores without waiting")
    answers.add("write-to-readable lag p95", "ms", [quantile(lags, 0.95)])


def _lag(client: Client, db: Any, text: str) -> float:
    """Return how many milliseconds after it was handed over a fact can be read."""
    id_ = str(uuid7())
    began = time.perf_counter()
    client.store(text, wait=False, id=id_)
    while db.execute(STORED, [id_]).fetchone() is None:
        if time.perf_counter() - began > START_SECONDS:
            raise TimeoutError(f"The fact {id_} did not come; see worker.log.")
    return (time.perf_counter() - began) * 1000


def _throughput(machine: Machine, answers: Answers, asked: Sequence[Asked], children: int, size: Size) -> None:
    several = f"{children} child{'ren' if children > 1 else ''}"
    calls: dict[str, list[tuple[str, dict[str, Any]]]] = {
        f"recalls, {several}": [("memory.recall", {"query": one.text, "touch": False}) for one in asked],
        f"recalls with their touch, {several}": [("memory.recall", {"query": one.text}) for one in asked],
        f"empty tasks, {several}": [(EMPTY, {}) for _ in asked],
    }
    for name, batch in calls.items():
        _all_done(machine, batch[: size.queries])
        answers.add(name, "tasks/s", [len(batch) / _all_done(machine, batch) for _ in range(size.rounds)])


def _all_done(machine: Machine, batch: Sequence[tuple[str, dict[str, Any]]]) -> float:
    """Send tasks at once; return how long it takes until the last one's result is there."""
    with _app(machine) as app:
        began = time.perf_counter()
        sent = ResultSet([_send(app, task, arguments) for task, arguments in batch], app=app)
        sent.join_native(timeout=START_SECONDS * 2)
        took = time.perf_counter() - began
        sent.forget()
    return took


def _send(app: Celery, task: str, arguments: dict[str, Any]) -> Any:
    if task == EMPTY:
        return app.send_task(task, args=(1,), queue=RECALL)
    return app.send_task(task, kwargs={"namespace": NAMESPACE, **arguments})
