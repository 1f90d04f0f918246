"""Inject: what an agent is shown of its memory before it sees a message, within a budget of tokens."""

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
    """How facts are written, in which order, and how many tokens they may take, wrapper included."""

    form: Format = "full"
    most_tokens: int = 800
    stable: bool = False
    summary_threshold: int = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One recalled fact as it would be injected, and whether by a passage of it or by its summary."""

    fact: Result
    text: str
    summarised: bool
    passage: Passage | None


@dataclass(frozen=True, slots=True)
class Injection:
    """The text to put before an agent's context, the facts in it in their order, and what was cut, best first."""

    text: str
    tokens: int
    lines: list[Line]
    cut: list[Line]
    recalled: Recalled


def inject(context: Context, namespace: str, question: Question, shape: Shape, now: datetime) -> Injection:
    """Recall what fits a prompt, and write as much of it as the budget allows.

    Facts are taken best first, until one is too much. Shown stably, they stand in the order in which they were
    stored: as long as the same facts are injected the text is the same, and what is stored later comes last.

    Raises:
        UnavailableError: the database does not answer.
    """
    count = tokens.counter(context.settings.tokenizer)
    found = recall(context, namespace, question, now)
    lines = [_line(fact, shape, context.settings) for fact in found.results]
    taken = injection.fitting(len(lines), shape.most_tokens, lambda first: count(_text(lines[:first], shape)))
    text = _text(lines[:taken], shape)
    return Injection(text, count(text), _arranged(lines[:taken], shape), lines[taken:], found)


def _line(fact: Result, shape: Shape, settings: Settings) -> Line:
    """Return a fact as a line; of a long one the passage that fits, or its summary, never what decay makes of it.

    A summary that says more than how the text begins was written by the caller, and goes before a passage.
    """
    is_long = len(fact.text) > shape.summary_threshold
    written = fact.summary is not None and fact.summary != injection.summary(fact.text)
    passage = fact.passage if is_long and not written else None
    summary = fact.summary if is_long and passage is None else None
    said = _placed(fact, passage.text if passage else summary or fact.text)
    label = settings.vector_label if fact.found_by == "meaning" else settings.structured_label
    return Line(fact, injection.line(said, fact.category, label, shape.form), summary is not None, passage)


def _placed(fact: Result, said: str) -> str:
    """Return what is said of a fact, of a part of a file behind its path and section."""
    if fact.kind != "chunk" or not fact.source:
        return said
    return f"{fact.source}{f' ({fact.key})' if fact.key else ''}: {said}"


def _text(lines: Sequence[Line], shape: Shape) -> str:
    return injection.block([line.text for line in _arranged(lines, shape)])


def _arranged(lines: Sequence[Line], shape: Shape) -> list[Line]:
    return sorted(lines, key=lambda line: (line.fact.created_at, line.fact.id)) if shape.stable else list(lines)
