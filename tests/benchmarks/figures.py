"""Figures: the median of several runs with their spread, and whether it meets its target."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console

from tests.benchmarks.scale import FACTS

console = Console(highlight=False, soft_wrap=True, markup=False)

MORE_THAN_A_FEW = 100
RESULTS = (
    "passes", "lives", "capacity", "recalls", "graphs", "contexts", "queued", "floor", "throughput", "lanes", "moves",
    "http", "fairness", "stores", "quality", "space", "parts", "peers", "forgetting", "chaos", "soak",
)  # fmt: skip
"""What the table tells of, in this order."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several runs with their minimum and maximum, or a mean with its 95 % interval."""

    median: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        if self.runs == 1 or self.low == self.high:
            return _short(self.median)
        return f"{_short(self.median)} ({_short(self.low)} to {_short(self.high)})"


def spread(values: Sequence[float]) -> Spread:
    """Return the median of runs and their range."""
    return Spread(float(median(values)), float(min(values)), float(max(values)), len(values))


RESAMPLES = 2_000


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of values with its 95 % interval by bootstrap (Efron, 1979), the same in each run."""
    each = np.asarray(values, np.float64)
    drawn = np.random.default_rng(len(each)).integers(len(each), size=(RESAMPLES, len(each)))
    low, high = np.quantile(each[drawn].mean(axis=1), [0.025, 0.975])
    return float(each.mean()), float(low), float(high)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which that share of the values lies."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: a measure, its unit, and its target, if any."""

    name: str
    unit: str
    measured: Spread
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def target(self) -> str:
        """Return the target in words; empty if there is none."""
        if self.most is not None:
            return f"≤ {self.most:g}"
        return "" if self.least is None else f"≥ {self.least:g}"

    @property
    def verdict(self) -> str:
        """Return whether the median meets the target."""
        if not self.target:
            return ""
        met = self.measured.median <= self.most if self.most is not None else self.measured.median >= self.least  # type: ignore[operator]
        return "met" if met else "**missed**"


@dataclass(slots=True)
class Answers:
    """The results of one benchmark: lines for the table, and raw data."""

    command: str
    figures: list[Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, unit: str, values: Sequence[float], **rest: Any) -> Spread:
        """Record the median of several runs, and print it."""
        return self._note(Figure(name, unit, spread(values), **rest))

    def add_mean(self, name: str, unit: str, values: Sequence[float], **rest: Any) -> Spread:
        """Record the mean of values, such as one per question, with its 95 % interval, and print it."""
        return self._note(Figure(name, unit, Spread(*interval(values), len(values)), **rest))

    def _note(self, figure: Figure) -> Spread:
        self.figures.append(figure)
        console.print(f"  {figure.name}: {figure.measured} {figure.unit} {figure.target} {figure.verdict}")
        return figure.measured


def table(answers: Answers) -> str:
    """Return the figures of one benchmark as a Markdown table, with its notes below."""
    lines = ["| figure | target | measured | unit | verdict | command |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {one.name} | {one.target} | {one.measured} | {one.unit} | {one.verdict} | `{answers.command}` |"
        for one in answers.figures
    ]
    notes = [f"- {one.name}: {one.note}" for one in answers.figures if one.note]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def save(answers: Answers, path: Path, machine: dict[str, Any]) -> None:
    """Write the results of a benchmark as JSON."""
    written = {
        "command": answers.command,
        "machine": machine,
        "figures": [asdict(one) | {"target": one.target, "verdict": one.verdict} for one in answers.figures],
        "details": answers.details,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: Path) -> Answers:
    """Return the saved results of a benchmark."""
    written = json.loads(path.read_text(encoding="utf-8"))
    figures = [
        Figure(
            one["name"], one["unit"], Spread(**one["measured"]), most=one["most"], least=one["least"], note=one["note"]
        )
        for one in written["figures"]
    ]
    return Answers(written["command"], figures, written["details"])


def write_table(folder: Path, names: Sequence[str]) -> dict[str, Answers]:
    """Write all results of a folder into its table, and print it; return the results by name.

    A section of the table whose results are not in the folder stays as it is. Results of more facts, which stand in
    folders of their own, come last.
    """
    found = _found(folder, names)
    more = {f"{name}, {facts:,} facts": one for facts, every in larger(folder).items() for name, one in every.items()}
    path = folder / "table.md"
    sections = _sections(path) | {title: table(answers) for title, answers in (found | more).items()}
    ordered = sorted(sections, key=lambda title: RESULTS.index(title) if title in RESULTS else len(RESULTS))
    text = "\n\n".join(f"## {title}\n\n{sections[title]}" for title in ordered)
    path.write_text(text + "\n", encoding="utf-8")
    console.print(text)
    return found


def _sections(path: Path) -> dict[str, str]:
    """Return the sections of a table by title."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])
    return {title: below.strip() for title, _, below in parts}


def larger(folder: Path) -> dict[int, dict[str, Answers]]:
    """Return the results in the folders below a folder by name and number of facts, without quick runs."""
    sizes = sorted(int(one.name) for one in folder.iterdir() if one.name.isdecimal())
    return {facts: _found(folder / str(facts), RESULTS) for facts in sizes if facts > FACTS}


def _found(folder: Path, names: Sequence[str]) -> dict[str, Answers]:
    return {name: load(folder / f"{name}.json") for name in names if (folder / f"{name}.json").exists()}


def seconds(act: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


@contextmanager
def split(stages: dict[str, tuple[Any, str]]) -> Iterator[dict[str, float]]:
    """Yield the seconds that the functions named by `stages` take within the block, summed by stage.

    Each is (owner, name): the function is wrapped where its callers look it up, and put back afterwards.

    Raises:
        LookupError: nothing called one of them there.
    """
    spent = dict.fromkeys(stages, 0.0)
    originals = {stage: getattr(*where) for stage, where in stages.items()}
    for stage, (owner, name) in stages.items():
        setattr(owner, name, _timed(originals[stage], stage, spent))
    try:
        yield spent
    finally:
        for stage, (owner, name) in stages.items():
            setattr(owner, name, originals[stage])
    if unused := [stage for stage, took in spent.items() if not took]:
        raise LookupError(f"Nothing called the functions of the stages {', '.join(unused)}.")


def _timed(function: Callable[..., Any], stage: str, spent: dict[str, float]) -> Callable[..., Any]:
    @wraps(function)
    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            spent[stage] += time.perf_counter() - began

    return timed


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= MORE_THAN_A_FEW else f"{value:.3g}"
