"""Inject: the block of memory that an agent is shown before a message, within a budget of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workers.context import Context
from workers.core import injection, tokens
from workers.core.injection import Format
from workers.core.passages import Passage
from workers.memory.recall import Question, Recalled, Result, recall
from workers.settings import Settings


@dataclass(frozen=True, slots=True)
class Shape:
    """Format, dates and order of the facts, and the maximum number of tokens, wrapper included."""

    form: Format = "full"
    dates: bool = False
    most_tokens: int = 800
    stable: bool = False
    summary_threshold: int = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One recalled fact as it would be injected, possibly by a passage of it or its summary."""

    fact: Result
    text: str
    summarised: bool
    passage: Passage | None


@dataclass(frozen=True, slots=True)
class Injection:
    """The text for the agent's context, its facts in their order, and the facts that were cut, best first."""

    text: str
    tokens: int
    lines: list[Line]
    cut: list[Line]
    recalled: Recalled


def inject(context: Context, namespace: str, question: Question, shape: Shape, now: datetime) -> Injection:
    """Recall facts for a prompt and format as many as the budget allows.

    Facts are taken best first until one exceeds the budget; if that is the best one, it is taken by its summary. A
    stable shape orders them by the time of storing, so the text stays the same while the facts do, and newer facts come
    last.
    """
    count = tokens.counter(context.settings.tokenizer)
    found = recall(context, namespace, question, now)
    lines = [_line(fact, shape, context.settings) for fact in found.results]

    def size(first: int) -> int:
        return count(_text(lines[:first], shape))

    if lines and size(1) > shape.most_tokens:
        lines[0] = _brief(found.results[0], shape, context.settings)
    taken = injection.count_fitting(len(lines), shape.most_tokens, size)
    text = _text(lines[:taken], shape)
    return Injection(text, count(text), _arranged(lines[:taken], shape), lines[taken:], found)


def _line(fact: Result, shape: Shape, settings: Settings) -> Line:
    """Return a fact as a line; of a long one the best passage or the summary.

    A summary that the caller wrote takes precedence over a passage.
    """
    is_long = len(fact.text) > shape.summary_threshold
    written = fact.summary is not None and fact.summary != injection.summary(fact.text)
    passage = fact.passage if is_long and not written else None
    summary = fact.summary if is_long and passage is None else None
    text = _labelled(fact, _cited(fact, summary or fact.text, passage), shape, settings)
    return Line(fact, text, summary is not None, passage)


def _brief(fact: Result, shape: Shape, settings: Settings) -> Line:
    """Return a fact as the shortest line: by its summary."""
    said = _cited(fact, fact.summary or injection.summary(fact.text), None)
    return Line(fact, _labelled(fact, said, shape, settings), summarised=True, passage=None)


def _labelled(fact: Result, said: str, shape: Shape, settings: Settings) -> str:
    """Return the line of a fact: how it was found, category, perhaps the day, whether it may be outdated, text."""
    if fact.outdated_by:
        said = f"(perhaps outdated) {said}"
    if shape.dates and fact.kind != "chunk":
        said = f"({fact.source_date or fact.created_at:%Y-%m-%d}) {said}"
    label = settings.vector_label if fact.found_by == "meaning" else settings.structured_label
    return injection.line(said, fact.category, label, shape.form)


def _cited(fact: Result, said: str, passage: Passage | None) -> str:
    """Return what is said of a fact; of a part of a file after its path, section and lines."""
    shown = passage.text if passage else said
    if fact.kind != "chunk" or not fact.source:
        return shown
    section = f" § {fact.key}" if fact.key else ""
    return f"{fact.source}{section}{_lines(fact, passage)}: {shown}"


def _lines(fact: Result, passage: Passage | None) -> str:
    """Return the lines of a file in which a chunk, or the passage of it that fits, stands; nothing if unknown."""
    if fact.turn is None:
        return ""
    start, end = (passage.start, passage.end) if passage else (0, len(fact.text))
    first = fact.turn + fact.text.count("\n", 0, start)
    last = first + fact.text[start:end].rstrip().count("\n")
    return f", line {first}" if first == last else f", lines {first}-{last}"


def _text(lines: Sequence[Line], shape: Shape) -> str:
    return injection.block([line.text for line in _arranged(lines, shape)])


def _arranged(lines: Sequence[Line], shape: Shape) -> list[Line]:
    return sorted(lines, key=lambda line: (line.fact.created_at, line.fact.id)) if shape.stable else list(lines)
