"""A conversation with questions whose evidence is known, as every benchmark reads it."""

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
    """One statement, when it was made, and the role of its speaker if the source names one."""

    at: datetime
    fact: NewFact
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Texts that state something, and earlier texts that they make outdated."""

    newer: frozenset[str]
    older: frozenset[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a conversation: the texts that answer it, when the last of them was stated, and its kind.

    A question without evidence is one that nothing in the conversation answers. `changes` are the updates that the
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
    """What was stated in one namespace, oldest first, what is asked about it, and who speaks."""

    name: str
    turns: list[Turn]
    asked: list[Asked]
    speakers: tuple[str, ...] = ()

    @property
    def answerable(self) -> list[Asked]:
        """Return the questions that have evidence."""
        return [one for one in self.asked if one.evidence]


def question(
    namespace: str, text: str, evidence: Iterable[Turn], kind: str = "", changes: Sequence[Change] = ()
) -> Asked:
    """Return a question, answerable since the last of its evidence; one without evidence since the beginning."""
    turns = list(evidence)
    since = max((turn.at for turn in turns), default=BEGIN)
    return Asked(namespace, text, texts(turns), since, kind, tuple(changes))


def texts(turns: Iterable[Turn]) -> frozenset[str]:
    """Return what turns say."""
    return frozenset(turn.fact.text for turn in turns)


def sampled(conversations: Iterable[Conversation]) -> list[Asked]:
    """Return the questions that have evidence, or if they are many, about `MOST_ASKED` at equal distances."""
    every = [question for one in conversations for question in one.answerable]
    return every[:: -(-len(every) // MOST_ASKED) or 1]


def in_order(turns: Iterable[Turn]) -> list[Turn]:
    """Return turns by time; those of one instant stay in their order."""
    return sorted(turns, key=lambda turn: turn.at)


def moved(one: Conversation) -> Conversation:
    """Return a conversation moved in time so that it begins a year before the present of all generated data."""
    by = BEGIN - one.turns[0].at
    turns = [replace(turn, at=turn.at + by) for turn in one.turns]
    asked = [replace(question, answerable_since=question.answerable_since + by) for question in one.asked]
    return replace(one, turns=turns, asked=asked)
