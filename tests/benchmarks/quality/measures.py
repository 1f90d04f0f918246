"""Measures of answers, each a mean over questions with a 95 % interval."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from tests.benchmarks.conversations import Asked, Change, Conversation
from tests.benchmarks.figures import Answers, interval

FIRST = 10
MOST = 20
BEST_OF_WRONG = 3
TENTHS = np.linspace(0, 1, 11)
"""How many results are asked for; most measures see the first ten."""

FOREIGN, RENAMED, UNANSWERABLE = "of another conversation", "of another conversation, names replaced", "unanswerable"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question, and the texts that a memory returned, best first, with their relevances, if any."""

    asked: Asked
    found: list[str]
    relevances: Sequence[float] = ()

    @property
    def first(self) -> list[str]:
        """Return the first ten results."""
        return self.found[:FIRST]

    @property
    def right(self) -> list[bool]:
        """Return for each result whether it is evidence."""
        return [text in self.asked.evidence for text in self.found]

    @property
    def why_nothing(self) -> str:
        """Return why the conversation does not answer the question."""
        return self.asked.kind if self.asked.kind in {FOREIGN, RENAMED} else UNANSWERABLE


def recall(outcome: Outcome) -> float:
    """Return the share of evidence among the first ten."""
    return len(outcome.asked.evidence & set(outcome.first)) / len(outcome.asked.evidence)


def any_found(outcome: Outcome) -> float:
    """Return 1 if any evidence is among the first ten."""
    return float(any(outcome.right[:FIRST]))


def first_share(outcome: Outcome) -> float:
    """Return the share of the evidence in the first result."""
    return sum(outcome.right[:1]) / len(outcome.asked.evidence)


def reciprocal_rank(outcome: Outcome) -> float:
    """Return the reciprocal rank of the first evidence; 0 without any among the results."""
    return 1 / (outcome.right.index(True) + 1) if any(outcome.right) else 0.0


def precision(outcome: Outcome) -> float:
    """Return the share of evidence among the first ten results; an empty answer has none."""
    return sum(outcome.right[:FIRST]) / max(len(outcome.first), 1)


def outdated(outcome: Outcome) -> float:
    """Return the share of withdrawn or replaced statements among the first ten."""
    older = frozenset[str]().union(*(change.older for change in outcome.asked.changes))
    return len(older & set(outcome.first)) / len(older)


Measure: TypeAlias = Callable[[Outcome], float]

MEASURES: dict[str, Measure] = {
    "recall@10": recall,
    "any@10": any_found,
    "recall@1": first_share,
    "MRR": reciprocal_rank,
    "precision": precision,
    "results": lambda outcome: float(len(outcome.first)),
}
"""What is measured of questions that have evidence."""


def report(answers: Answers, name: str, outcomes: Sequence[Outcome], *, own: bool) -> dict[str, Any]:
    """Add the figures of one memory on one set, all of them for `own`; return them by name and by kind of question."""
    answered = [one for one in outcomes if one.asked.evidence]
    columns = {measure: [score(one) for one in answered] for measure, score in MEASURES.items()}
    columns["newer above older"] = [
        above
        for one in answered
        for change in one.asked.changes
        if (above := newer_above(change, one.found)) is not None
    ]
    for measure, values in columns.items():
        if values and (own or measure in {"recall@10", "newer above older"}):
            answers.add_mean(f"{measure}, {name}", "", values)
    means = {measure: [round(one, 4) for one in interval(values)] for measure, values in columns.items() if values}
    return means | {"recall@10 by kind": _by_kind(answered)}


def _by_kind(answered: Sequence[Outcome]) -> dict[str, list[float]]:
    kinds = sorted({one.asked.kind for one in answered})
    return {
        kind: [round(one, 4) for one in interval([recall(one) for one in answered if one.asked.kind == kind])]
        for kind in kinds
    }


def newer_above(change: Change, found: Sequence[str]) -> float | None:
    """Return whether a newer statement ranks above the older one; None if neither is among the results."""
    newer, older = (
        next((rank for rank, text in enumerate(found) if text in texts), len(found))
        for texts in (change.newer, change.older)
    )
    return None if newer == older else float(newer < older)


def foreign(conversations: Sequence[Conversation]) -> list[Asked]:
    """Return the questions of each conversation as questions of the one before, which does not answer them.

    It is the last one before that has no speaker in common. If the speakers are known, the questions are repeated with
    those of the other conversation: then only the names match.
    """
    found: list[Asked] = []
    for i, asking in enumerate(conversations):
        before = [*conversations[i + 1 :], *conversations[:i]]
        others = [one for one in before if not set(one.speakers) & set(asking.speakers)]
        found += _foreign(asking, others[-1]) if others else []
    return found


def _foreign(asking: Conversation, other: Conversation) -> Iterator[Asked]:
    for one in asking.answerable:
        elsewhere = replace(one, namespace=other.name, evidence=frozenset(), changes=())
        yield replace(elsewhere, kind=FOREIGN)
        if asking.speakers and other.speakers:
            yield replace(elsewhere, kind=RENAMED, text=_renamed(one.text, asking.speakers, other.speakers))


def _renamed(text: str, names: Sequence[str], others: Sequence[str]) -> str:
    for name, other in zip(names, others, strict=True):
        text = re.sub(rf"\b{re.escape(name)}\b", other, text)
    return text


def at_floor(answers: Answers, name: str, without: Sequence[Outcome], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Add the figures with the default floor, compared with the outcomes `without` one; return them."""
    pairs = [(one, other) for one, other in zip(outcomes, without, strict=True) if one.asked.evidence]
    columns = {
        "recall@10 that the default floor costs": [recall(other) - recall(one) for one, other in pairs],
        "precision at the default floor": [precision(one) for one, _ in pairs],
        "results at the default floor": [float(len(one.first)) for one, _ in pairs],
    }
    for why in dict.fromkeys(one.why_nothing for one in outcomes if not one.asked.evidence):
        columns[f"answered by nothing, {why}"] = [
            float(not one.found) for one in outcomes if not one.asked.evidence and one.why_nothing == why
        ]
    for measure, values in columns.items():
        answers.add_mean(f"{measure}, {name}", "", values)
    return {measure: [round(one, 4) for one in interval(values)] for measure, values in columns.items()}


def calibration(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the share of right results among those with a relevance within each tenth, by the middle of the tenth.

    Right is evidence among the first ten; wrong are the three most relevant results of each question that nothing
    answers. Both have the same total weight.
    """
    right = [
        relevance
        for one in outcomes
        for relevance, is_right in zip(one.relevances[:FIRST], one.right[:FIRST], strict=True)
        if is_right
    ]
    wrong = [
        relevance for one in outcomes if not one.asked.evidence for relevance in sorted(one.relevances)[-BEST_OF_WRONG:]
    ]
    shares = [np.histogram(every, TENTHS)[0] / max(len(every), 1) for every in (right, wrong)]
    of_right = shares[0] / np.maximum(shares[0] + shares[1], 1e-9)
    return {f"{low + 0.05:.2f}": round(float(share), 2) for low, share in zip(TENTHS[:-1], of_right, strict=True)}
