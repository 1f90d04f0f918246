"""Other systems on the same work in the same run: simple alternatives, and libraries.

All run on this machine, on the same PostgreSQL if they use one, with the same texts, questions and embedder.
"""

from collections.abc import Sequence

import numpy as np

from tests.benchmarks import libraries, scans, searches, slices, texts
from tests.benchmarks.figures import Answers, quantile, seconds
from tests.benchmarks.libraries import Library
from tests.benchmarks.machine import Machine
from tests.benchmarks.scale import Size

FIRST = 10
SEED = 29
SINGLES = 100
LIMIT_FACTS = 10_000
MOST_OF_OTHERS = {"mem0": 0.7, "chromadb": 0.5}
"""Targets of Ebb's search as a share of another library's, by the beginnings of their names."""


def measure(machine: Machine, size: Size, answers: Answers) -> None:
    """Measure decay by scans and by slices, then searches, then the installed libraries."""
    scans.measure(machine, size, answers)
    slices.measure(machine, size, answers)
    searches.measure(machine, size, answers)
    rng = np.random.default_rng(SEED)
    said, _ = texts.write(rng, min(size.facts // 10, LIMIT_FACTS) + SINGLES)
    asked = [_words(rng, said[:-SINGLES]) for _ in range(size.queries)]
    spent = {
        name: _library(answers, name, library, said, asked, size)
        for name, library in libraries.opened(machine, answers)
    }
    for name, of_other in spent.items():
        if name != "Ebb":
            shares = [own / other for own, other in zip(spent["Ebb"], of_other, strict=True)]
            most = next((most for other, most in MOST_OF_OTHERS.items() if name.startswith(other)), None)
            answers.add(f"search p50, Ebb ÷ {name}", "times", shares, most=most)


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
    where = {text: f"n{i // tenth}" for i, text in enumerate(many)}
    p50, p95, known = [], [], 0.0
    for _ in range(size.rounds):
        found: list[bool] = []
        spent = [
            seconds(lambda q=query, t=text: found.append(t in library.search(where[t], q, FIRST)))  # type: ignore[misc]  # noqa: B023
            for query, text in asked
        ]
        p50.append(quantile(spent, 0.5) * 1000)
        p95.append(quantile(spent, 0.95) * 1000)
        known = float(np.mean(found))
    of = f"{len(many):,} facts in 10 namespaces"
    answers.add(f"stored in batches of {min(tenth, libraries.BATCH):,}, {name}, {of}", "facts/s", rates)
    answers.add(f"stored one by one, p50, {name}", "ms", [quantile(singles, 0.5) * 1000])
    answers.add(f"search p50, {name}, {of}", "ms", p50)
    answers.add(f"search p95, {name}, {of}", "ms", p95)
    answers.add(f"fact that the words are of among the first 10, {name}", "", [known])
    return p50
