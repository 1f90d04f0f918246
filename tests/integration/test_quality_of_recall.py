"""The quality of recall in short conversations and of single statements: a lower bound of the benchmark `quality`."""

from collections.abc import Sequence

import pytest

from tests.benchmarks.conversations import Conversation, sample, statements
from tests.benchmarks.figures import interval
from tests.benchmarks.libraries import Ebb
from tests.benchmarks.quality import filled, measures, outcomes, words
from tests.benchmarks.quality.measures import Outcome
from workers.context import Context


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return sample.small()


def answered(found: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in found if one.asked.evidence]


def mean(measure: measures.Measure, found: Sequence[Outcome]) -> float:
    return interval([measure(one) for one in answered(found)])[0]


def test_recall_finds_nearly_all_evidence_of_short_conversations(
    context: Context, conversations: list[Conversation]
) -> None:
    found = outcomes(filled(Ebb(context, floor=0), conversations), conversations)
    assert mean(measures.recall, found) >= 0.95
    assert mean(measures.reciprocal_rank, found) >= 0.6


def test_recall_finds_no_less_than_bm25_does(context: Context, conversations: list[Conversation]) -> None:
    plain, own = (outcomes(filled(one, conversations), conversations) for one in (words.Bm25(), Ebb(context, floor=0)))
    assert mean(measures.recall, own) >= mean(measures.recall, plain) + 0.1


def test_the_default_floor_keeps_most_evidence_and_answers_few_questions_of_other_conversations(
    context: Context, conversations: list[Conversation]
) -> None:
    found = outcomes(filled(Ebb(context), conversations), conversations)
    assert mean(measures.recall, found) >= 0.9
    unanswerable = [not one.found for one in found if not one.asked.evidence]
    assert sum(unanswerable) / len(unanswerable) >= 0.4


@pytest.fixture(scope="module")
def notes() -> list[Conversation]:
    return statements.read(judging=False)


def test_recall_finds_statements_by_paraphrases(context: Context, notes: list[Conversation]) -> None:
    found = answered(outcomes(filled(Ebb(context, floor=0), notes), notes))
    assert mean(measures.recall, found) >= 0.88
    assert sum(one.right[:1] == [True] for one in found) / len(found) >= 0.64


def test_the_default_floor_keeps_most_statements_that_answer(context: Context, notes: list[Conversation]) -> None:
    found = outcomes(filled(Ebb(context), notes), notes)
    assert mean(measures.recall, found) >= 0.78
    unanswerable = [not one.found for one in found if not one.asked.evidence]
    assert sum(unanswerable) / len(unanswerable) >= 0.3
