"""BM25 against a manual calculation, and its bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.ranking import inverse_document_frequency, scores

properties = examples(100)
counts = st.integers(0, 256)
lengths = st.integers(1, 5_000)


def score_of(times: int, length: int, weight: float = 2.0, mean: float = 40.0) -> float:
    return float(scores(np.array([[times]]), np.array([length]), np.array([weight]), mean)[0])


def test_the_weight_of_a_word_is_lucenes() -> None:
    # ln(1 + (1000 - 9 + 0.5) / (9 + 0.5)), and the same for 1,000 of 1,000
    weights = inverse_document_frequency(np.array([9, 1_000]), 1_000)

    assert weights == pytest.approx([math.log(1 + 991.5 / 9.5), math.log(1 + 0.5 / 1000.5)])


def test_a_score_is_what_a_calculation_by_hand_gives() -> None:
    # Two texts of 10 and 30 words, 20 on average; k1 = 0.9 and b = 0.4 make saturations of 0.72 and 1.08.
    scored = scores(np.array([[2, 0], [1, 3]]), np.array([10, 30]), np.array([1.5, 0.5]), 20.0)

    by_hand = [1.5 * 2 * 1.9 / (2 + 0.72), 1.5 * 1 * 1.9 / (1 + 1.08) + 0.5 * 3 * 1.9 / (3 + 1.08)]
    assert scored == pytest.approx(by_hand)


def test_a_text_of_mean_length_that_says_a_word_once_scores_its_weight() -> None:
    assert score_of(1, 40, weight=2.0, mean=40.0) == pytest.approx(2.0)


def test_a_text_without_the_words_scores_nothing() -> None:
    assert score_of(0, 12) == 0.0


def test_a_rare_word_outweighs_a_common_one() -> None:
    weights = inverse_document_frequency(np.array([3, 700]), 1_000)

    rare, common = scores(np.array([[1, 0], [0, 1]]), np.array([10, 10]), weights, 10.0)

    assert rare > 10 * common


def test_no_texts_have_no_scores() -> None:
    assert scores(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64), np.ones(2), 5.0).size == 0


def test_an_empty_namespace_divides_by_nothing() -> None:
    assert math.isfinite(score_of(1, 0, mean=0.0))
    assert np.isfinite(inverse_document_frequency(np.array([0]), 0)).all()


@given(st.integers(0, 10**7), st.integers(0, 10**7))
@properties
def test_no_word_weighs_less_than_nothing(held: int, documents: int) -> None:
    # An outdated count may exceed the number of facts.
    assert inverse_document_frequency(np.array([held]), documents)[0] > 0


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@properties
def test_the_fewer_hold_a_word_the_more_it_weighs(a: int, b: int) -> None:
    rare, common = inverse_document_frequency(np.array(sorted((a, b))), 10**6)

    assert rare >= common


@given(counts, lengths, st.floats(0, 20), st.floats(0, 5_000))
@properties
def test_more_occurrences_never_score_less(times: int, length: int, weight: float, mean: float) -> None:
    fewer, more = (score_of(count, length, weight, mean) for count in (times, times + 1))

    assert 0 <= fewer <= more <= weight * 1.9 * (1 + 1e-12)


@given(counts, lengths, lengths)
@properties
def test_of_equal_matches_the_shorter_text_scores_no_less(times: int, a: int, b: int) -> None:
    assert score_of(times, min(a, b)) >= score_of(times, max(a, b))
