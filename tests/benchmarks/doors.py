"""The cost of the HTTP API: recalls over HTTP, through the queue and in this process, one at a time and concurrent."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx2
import numpy as np

from tests.benchmarks import queued, recalls, running
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.machine import Machine
from tests.benchmarks.queued import NAMESPACE
from tests.benchmarks.scale import Size
from workers.memory import recall
from workers.storage.connection import close_pools

NAME = "bench_http"
AT_ONCE = 16
CHILDREN = 2

Ask = Callable[[str], object]


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Send each question each way, first in turn, then from many threads."""
    machine.empty_redis()
    context = queued.filled(machine, NAME, size.queued)
    asked = [one.text for one in recalls.questions(context, size.queries * 4)]
    headers = {"X-Ebb-Namespace": NAMESPACE}
    limits = httpx2.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    with (
        running.workers(machine, context, CHILDREN),
        running.serving(machine, context) as url,
        running.client(machine, NAMESPACE) as client,
        httpx2.Client(base_url=url, headers=headers, limits=limits, timeout=60) as http,
    ):
        ways: dict[str, Ask] = {
            "HTTP": lambda text: http.post("/memory/recall", json={"query": text, "touch": False}).raise_for_status(),
            "the queue": lambda text: client.recall(text, touch=False),
            "this process": lambda text: recall.recall(context, NAMESPACE, recall.Question(text), context.now()),
        }
        _in_turn(answers, ways, asked[: size.queries * 2], size)
        _at_once(answers, {name: ways[name] for name in ("HTTP", "the queue")}, asked, size)
    machine.drop(NAME)
    close_pools()


def _in_turn(answers: Answers, ways: dict[str, Ask], asked: Sequence[str], size: Size) -> None:
    p50: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(size.rounds + 1):
        times = np.array([[seconds(lambda t=text, ask=ask: ask(t)) for ask in ways.values()] for text in asked])  # type: ignore[misc]
        for name, column in zip(ways, times.T, strict=True):
            if number:  # the first round warms up
                p50[name].append(quantile(column.tolist(), 0.5) * 1000)
    for name, values in p50.items():
        answers.add(f"recall by {name} p50, one at a time", "ms", values)
    over, by_queue, within = p50.values()
    added = [one - other for one, other in zip(over, by_queue, strict=True)]
    answers.add("what HTTP adds to a recall by the queue", "ms", added, most=5.0)
    answers.add("recall by HTTP ÷ by the queue", "times", _ratios(over, by_queue), most=1.5)
    answers.add("recall by HTTP ÷ in this process", "times", _ratios(over, within))


def _at_once(answers: Answers, ways: dict[str, Ask], asked: Sequence[str], size: Size) -> None:
    rates: dict[str, list[float]] = {name: [] for name in ways}
    p50: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(size.rounds + 1):
        for name, ask in ways.items():
            rate, middle = _crowd(ask, asked)
            if number:
                rates[name].append(rate)
                p50[name].append(middle)
    for name in ways:
        answers.add(f"recalls by {name}, {AT_ONCE} at once, {CHILDREN} children", "a second", rates[name])
        answers.add(f"recall by {name} p50, {AT_ONCE} at once", "ms", p50[name])
    shares = _ratios(*rates.values())
    answers.add(f"recalls a second by HTTP ÷ by the queue, {AT_ONCE} at once", "times", shares, least=0.9)


def _crowd(ask: Ask, asked: Sequence[str]) -> tuple[float, float]:
    """Return the answers per second, and the median milliseconds of one."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        began = time.perf_counter()
        took = list(threads.map(lambda text: seconds(lambda: ask(text)), asked))
        return len(asked) / (time.perf_counter() - began), quantile(took, 0.5) * 1000


def _ratios(values: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(values, others, strict=True)]
