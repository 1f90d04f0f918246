"""Other systems on the same work in the same run: simple alternatives, and libraries.

All run on this machine, on the same PostgreSQL if they use one, with the same texts, questions and embedder.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache

import numpy as np

from tests.benchmarks import libraries, running, scans, searches, slices, texts
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.libraries import Ebb, Library
from tests.benchmarks.machine import Machine
from tests.benchmarks.scale import Size
from workers.context import Context

FIRST = 10
SEED = 29
SINGLES = 100
LIMIT_FACTS = 10_000
MOST_OF_OTHERS = {"mem0": 0.7, "chromadb": 0.5}
"""Targets of Ebb's search through its queue as a share of another library's, by the beginnings of their names."""

QUEUED = "Ebb through its queue"
CHILDREN = 2

Search = Callable[[str, str, int], list[str]]
"""Returns the best texts of a namespace for a query, at most as many as the limit."""


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure decay by scans and by slices, then searches, then the installed libraries."""
    scans.measure(machine, size, answers)
    slices.measure(machine, size, answers)
    searches.measure(machine, size, answers)
    rng = np.random.default_rng(SEED)
    said, _ = texts.write(rng, min(size.facts // 10, LIMIT_FACTS) + SINGLES)
    asked = [_words(rng, said[:-SINGLES]) for _ in range(size.queries)]
    spent = {}
    for name, library in libraries.opened(machine, answers):
        spent[name] = _library(answers, name, library, said, asked, size)
        if isinstance(library, Ebb):
            with _through_queue(machine, library.context) as search:
                spent[QUEUED] = _searches(answers, QUEUED, search, said, asked, size)
    for name, of_other in spent.items():
        for own, most in (("Ebb", None), (QUEUED, _most_of(name))):
            if name not in ("Ebb", QUEUED):
                shares = [one / other for one, other in zip(spent[own], of_other, strict=True)]
                answers.add(f"search p50, {own} ÷ {name}", "times", shares, most=most)


def _most_of(name: str) -> float | None:
    return next((most for other, most in MOST_OF_OTHERS.items() if name.startswith(other)), None)


@contextmanager
def _through_queue(machine: Machine, context: Context) -> Iterator[Search]:
    """Yield the search of Ebb as other programs use it: a client in this process, a worker, and Redis between them."""
    machine.empty_redis()
    with running.workers(machine, context, CHILDREN), ExitStack() as clients:
        client = cache(lambda namespace: clients.enter_context(running.client(machine, namespace)))

        def search(namespace: str, query: str, limit: int) -> list[str]:
            found = client(namespace).recall(query, limit=limit, min_relevance=0, touch=False)["results"]
            return [one["text"] for one in found]

        yield search


def _words(rng: np.random.Generator, said: Sequence[str]) -> tuple[str, str]:
    """Return some words of a random text, and the text."""
    text = said[int(rng.integers(len(said)))]
    words = text.split()
    return " ".join(rng.choice(words, min(int(rng.integers(3, 9)), len(words)), replace=False)), text


def _library(
    answers: Answers, name: str, library: Library, said: Sequence[str], asked: Sequence[tuple[str, str]], size: Size
) -> list[float]:
    """Store many, store some one by one, and search, in ten equally large namespaces; return each round's median."""
    many, few = said[:-SINGLES], said[-SINGLES:]
    tenth = len(many) // 10
    rates = []
    for number in range(10):
        part = many[number * tenth : (number + 1) * tenth]
        rates.append(tenth / seconds(lambda part=part, number=number: library.add_many(f"n{number}", part)))  # type: ignore[misc]
    singles = [seconds(lambda text=text: library.add("n0", text)) for text in few]  # type: ignore[misc]
    answers.add(f"stored in batches of {min(tenth, libraries.BATCH):,}, {name}, {_of(many)}", "facts/s", rates)
    answers.add(f"stored one by one, p50, {name}", "ms", [quantile(singles, 0.5) * 1000])
    return _searches(answers, name, library.search, said, asked, size)


def _searches(
    answers: Answers, name: str, search: Search, said: Sequence[str], asked: Sequence[tuple[str, str]], size: Size
) -> list[float]:
    """Search in the ten namespaces; return each round's median in milliseconds."""
    many = said[:-SINGLES]
    where = {text: f"n{i // (len(many) // 10)}" for i, text in enumerate(many)}
    p50, p95, known = [], [], 0.0
    for _ in range(size.rounds):
        found: list[bool] = []
        spent = [
            seconds(lambda q=query, t=text: found.append(t in search(where[t], q, FIRST)))  # type: ignore[misc]
            for query, text in asked
        ]
        p50.append(quantile(spent, 0.5) * 1000)
        p95.append(quantile(spent, 0.95) * 1000)
        known = float(np.mean(found))
    answers.add(f"search p50, {name}, {_of(many)}", "ms", p50)
    answers.add(f"search p95, {name}, {_of(many)}", "ms", p95)
    answers.add(f"fact that the words are of among the first 10, {name}", "", [known])
    return p50


def _of(many: Sequence[str]) -> str:
    return f"{len(many):,} facts in 10 namespaces"
