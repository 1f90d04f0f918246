"""The quality of recall in short conversations and of single statements: a lower bound of the benchmark `quality`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import pytest
from memory import DOCUMENTED

from api.up.servers import Redis
from tests.benchmarks.conversations import Conversation, sample, statements
from tests.benchmarks.figures import interval
from tests.benchmarks.libraries import Ebb
from tests.benchmarks.quality import answered, filled, measures, outcomes, words
from tests.benchmarks.quality.measures import Outcome
from workers.context import Context
from workers.memory.embed import check_embedder
from workers.settings import Settings
from workers.storage.connection import close_pools


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return sample.small()


@pytest.fixture(scope="module")
def notes() -> list[Conversation]:
    return statements.read(judging=False)


@pytest.fixture(scope="module")
def own(
    fresh: Callable[[], AbstractContextManager[str]],
    redis_server: Redis,
    conversations: list[Conversation],
    notes: list[Conversation],
) -> Iterator[Context]:
    """Return a memory of the conversations and notes; tests only read it."""
    with fresh() as url:
        context = Context(Settings(database_url=url, redis_url=redis_server.url(), **DOCUMENTED))
        check_embedder(context)
        filled(Ebb(context), [*conversations, *notes])
        yield context
        close_pools()


def mean(measure: measures.Measure, found: Sequence[Outcome]) -> float:
    return interval([measure(one) for one in found if one.asked.evidence])[0]


def test_recall_finds_nearly_all_evidence_of_short_conversations_and_no_less_than_bm25_does(
    own: Context, conversations: list[Conversation]
) -> None:
    found = answered(Ebb(own, floor=0), conversations)
    plain = answered(filled(words.Bm25(), conversations), conversations)
    assert mean(measures.recall, found) >= 0.95
    assert mean(measures.recall, found) >= mean(measures.recall, plain) + 0.1
    assert mean(measures.reciprocal_rank, found) >= 0.6


@pytest.mark.slow
def test_the_default_floor_keeps_most_evidence_and_answers_few_questions_of_other_conversations(
    own: Context, conversations: list[Conversation]
) -> None:
    found = outcomes(Ebb(own), conversations)
    assert mean(measures.recall, found) >= 0.9
    unanswerable = [not one.found for one in found if not one.asked.evidence]
    assert sum(unanswerable) / len(unanswerable) >= 0.4


def test_recall_finds_statements_by_paraphrases(own: Context, notes: list[Conversation]) -> None:
    found = answered(Ebb(own, floor=0), notes)
    assert mean(measures.recall, found) >= 0.88
    assert sum(one.right[:1] == [True] for one in found) / len(found) >= 0.64


@pytest.mark.slow
def test_the_default_floor_keeps_most_statements_that_answer(own: Context, notes: list[Conversation]) -> None:
    found = outcomes(Ebb(own), notes)
    assert mean(measures.recall, found) >= 0.78
    unanswerable = [not one.found for one in found if not one.asked.evidence]
    assert sum(unanswerable) / len(unanswerable) >= 0.3
