"""Relevance: it grows with the share of the question covered, and falls with words unknown to the namespace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.relevance import HASHING, STATIC, Question, Weights, floor_of_embedder, of_embedder, relevance


def asked(*frequencies: int, facts: int = 600, mean_words: float = 20.0) -> Question:
    return Question(np.array(frequencies, np.int64), facts, mean_words)


def of(question: Question, held: int, similarity: float) -> float:
    found = relevance(question, np.array([held]), np.array([similarity]))
    return float(found[0])


def test_the_share_of_the_question_that_a_text_holds_counts_and_its_similarity() -> None:
    question = asked(3, 10, 40)
    assert of(question, 0, 0.2) < of(question, 1, 0.2) < of(question, 3, 0.2) < of(question, 3, 0.6)


def test_words_that_the_namespace_does_not_know_make_every_fact_less_relevant() -> None:
    assert of(asked(0, 10, 40), 2, 0.3) < of(asked(3, 10, 40), 2, 0.3)
    assert asked(0, 0).unknown == 1
    assert asked(3, 10).unknown == 0
    assert asked().unknown == 0


def test_a_text_that_holds_everything_is_relevant_and_one_that_holds_nothing_is_not() -> None:
    assert of(asked(3, 10, 40), 3, 0.6) > 0.8
    assert of(asked(0, 0, 40), 0, 0.0) < 0.05


@given(st.lists(st.integers(0, 10**6), max_size=8), st.integers(0, 10**6), st.floats(-1, 1))
def test_relevance_is_within_its_bounds(frequencies: list[int], facts: int, similarity: float) -> None:
    assert 0 <= of(asked(*frequencies, facts=facts), len(frequencies), similarity) <= 1


@pytest.mark.parametrize("weights", [HASHING, STATIC])
def test_weights_have_the_signs_that_their_names_promise(weights: Weights) -> None:
    assert weights.held > 0
    assert weights.similarity > 0
    assert weights.unknown < 0


def test_weights_belong_to_an_embedder() -> None:
    assert of_embedder("hashing:char3-5-log-centred:256") is HASHING
    assert of_embedder("local:all-MiniLM-L6-v2:384") is STATIC


def test_the_default_floor_is_higher_where_facts_are_long() -> None:
    assert [floor_of_embedder("static:x:256", words) for words in (10, 1_000)] == [0.2, 0.3]
    assert [floor_of_embedder("hashing:256", words) for words in (10, 1_000)] == [0.1, 0.2]
