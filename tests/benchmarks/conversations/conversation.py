"""A conversation with questions and labelled evidence, in the format of all benchmarks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ebb.contract.facts import NewFact

from tests.benchmarks.data import AT

MAX_TEXT = 65_536
MOST_ASKED = 200
BEGIN = AT - timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Turn:
    """A statement, its time, and the role of its speaker if known."""

    at: datetime
    fact: NewFact
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Texts of an update, and earlier texts that it makes outdated."""

    newer: frozenset[str]
    older: frozenset[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a conversation: the texts that answer it, the time of the last one, and its kind.

    The conversation does not answer a question without evidence. `changes` are the updates that the
    answer depends on.
    """

    namespace: str
    text: str
    evidence: frozenset[str]
    answerable_since: datetime
    kind: str = ""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """The statements of one namespace, oldest first, the questions about it, and the speakers."""

    name: str
    turns: list[Turn]
    asked: list[Asked]
    speakers: tuple[str, ...] = ()

    @property
    def answerable(self) -> list[Asked]:
        """Return the questions with evidence."""
        return [one for one in self.asked if one.evidence]


def question(
    namespace: str, text: str, evidence: Iterable[Turn], kind: str = "", changes: Sequence[Change] = ()
) -> Asked:
    """Return a question, answerable from its last evidence on; one without evidence from the beginning."""
    turns = list(evidence)
    since = max((turn.at for turn in turns), default=BEGIN)
    return Asked(namespace, text, texts(turns), since, kind, tuple(changes))


def texts(turns: Iterable[Turn]) -> frozenset[str]:
    """Return the texts of turns."""
    return frozenset(turn.fact.text for turn in turns)


def sampled(conversations: Iterable[Conversation]) -> list[Asked]:
    """Return the questions with evidence, or if there are many, about `MOST_ASKED` at equal distances."""
    every = [question for one in conversations for question in one.answerable]
    return every[:: -(-len(every) // MOST_ASKED) or 1]


def in_order(turns: Iterable[Turn]) -> list[Turn]:
    """Return turns ordered by time (stable)."""
    return sorted(turns, key=lambda turn: turn.at)


def moved(one: Conversation) -> Conversation:
    """Return a conversation shifted in time so that it begins a year before the present of generated data."""
    by = BEGIN - one.turns[0].at
    turns = [replace(turn, at=turn.at + by) for turn in one.turns]
    asked = [replace(question, answerable_since=question.answerable_since + by) for question in one.asked]
    return replace(one, turns=turns, asked=asked)
