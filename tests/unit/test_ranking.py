"""Ranking: relevance first, then neighbours in the conversation, and strength between equals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.ranking import (
    DOCUMENTED_MIN_COSINE,
    DOCUMENTED_MIN_SCORE,
    Vitality,
    by_length,
    contiguity,
    documented_score,
    dynamic_salience,
    enough,
    fuse,
    in_order_of,
    min_max,
    prior,
    vector_score,
)

properties = examples(100)
shares = st.floats(0, 1)
numbers = st.floats(-1e6, 1e6)
arms = st.lists(st.tuples(st.floats(0, 100), st.floats(-1, 1)), min_size=1, max_size=12)


def alive(salience: float, believed: float, importance: float, idle_days: float) -> float:
    vitality = Vitality(*(np.array([value]) for value in (salience, believed, importance, idle_days)))
    return float(prior(vitality)[0])


def gains(relevance: list[float], sessions: list[int], turns: list[int]) -> list[float]:
    return [float(gain) for gain in contiguity(np.array(relevance), np.array(sessions), np.array(turns))]


def test_values_are_scaled_within_themselves() -> None:
    assert min_max(np.array([2.0, 4.0, 3.0])).tolist() == [0.0, 1.0, 0.5]


@given(st.lists(st.tuples(st.sampled_from([-9.5, 0.2, 0.3, 7.0]), st.floats(0, 3)), min_size=1, max_size=30))
def test_scores_are_shared_out_in_the_order_of_preferences_and_then_of_scores(pairs: list[tuple[float, float]]) -> None:
    preferences, scores = np.array(pairs).T
    shared = in_order_of(preferences, scores)
    order = np.argsort(-shared)
    assert np.diff(shared[order]).max(initial=-1.0) < 0
    assert [pairs[place] for place in order] == sorted(pairs, reverse=True)
    np.testing.assert_allclose(np.sort(shared), np.sort(scores), atol=1e-4)


def test_a_single_value_and_a_common_one_become_1() -> None:
    assert min_max(np.array([0.3])).tolist() == [1.0]
    assert min_max(np.array([7.0, 7.0])).tolist() == [1.0, 1.0]
    assert min_max(np.array([])).size == 0


@given(st.lists(numbers, min_size=1, max_size=20))
@properties
def test_scaling_stays_in_bounds_and_keeps_the_order(values: list[float]) -> None:
    scaled = min_max(np.array(values))

    assert ((scaled >= 0) & (scaled <= 1)).all()
    for (a, scaled_a), (b, scaled_b) in itertools.combinations(zip(values, scaled, strict=True), 2):
        assert (a < b) <= (scaled_a <= scaled_b)


def test_text_and_similarity_count_half_each() -> None:
    assert fuse(np.array([4.0, 2.0, 0.0]), np.array([0.0, 0.5, 0.25])).tolist() == [0.5, 0.75, 0.25]


def test_of_texts_that_all_contain_the_words_none_is_taken_for_one_without() -> None:
    assert fuse(np.array([4.0, 3.0]), np.zeros(2), meaning=0.0).tolist() == [0.5, 0.375]


def test_a_text_with_few_of_the_words_does_not_count_fully_by_words() -> None:
    text, similarity = np.array([2.0, 0.0]), np.array([0.0, 1.0])
    assert fuse(text, similarity, full=8.0).tolist() == [0.125, 0.5]
    assert fuse(text, similarity, full=1.0).tolist() == [0.5, 0.5]


def test_a_text_with_the_three_commonest_words_counts_fully() -> None:
    assert enough(np.array([4.0, 1.0, 9.0, 2.0])) == 7.0
    assert enough(np.array([4.0, 1.0])) == 5.0
    assert enough(np.zeros(0)) == 0.0


def test_similarity_has_the_share_set_by_the_embedder() -> None:
    found = fuse(np.array([4.0, 2.0, 0.0]), np.array([0.0, 0.5, 0.25]), meaning=0.2)
    assert found.tolist() == pytest.approx([0.8, 0.6, 0.1])


@pytest.mark.parametrize("meaning", [0.0, 0.2, 1.0])
def test_if_one_arm_found_nothing_the_other_counts_half_for_any_share_of_similarity(meaning: float) -> None:
    assert fuse(np.zeros(2), np.array([0.2, 0.6]), meaning).tolist() == [0.0, 0.5]
    assert fuse(np.array([4.0, 1.0]), np.zeros(2), meaning).tolist() == [0.5, 0.125]


def test_an_arm_that_found_nothing_adds_nothing() -> None:
    assert fuse(np.zeros(2), np.array([0.2, 0.6])).tolist() == [0.0, 0.5]
    assert fuse(np.array([4.0, 1.0]), np.zeros(2)).tolist() == [0.5, 0.125]
    assert fuse(np.zeros(2), np.zeros(2)).tolist() == [0.0, 0.0]


@given(arms)
@properties
def test_relevance_is_a_share(found: list[tuple[float, float]]) -> None:
    text, similarity = np.array(found).T

    relevance = fuse(text, similarity)

    assert ((relevance >= 0) & (relevance <= 1)).all()


@given(arms)
@properties
def test_the_best_of_both_arms_is_best(found: list[tuple[float, float]]) -> None:
    text, similarity = np.array([*found, (101.0, 1.0)]).T

    assert fuse(text, similarity)[-1] == 1.0


def test_neighbours_in_the_conversation_share_their_scores() -> None:
    gained = gains([1.0, 0.2, 0.4, 0.6], sessions=[5, 5, 5, 5], turns=[1, 2, 3, 9])

    # turn 1 has more itself; turn 2: 0.25 * (1.0 + 0.4) - 0.35 * 0.2; turn 3: 0.25 * 0.2 + 0.2 * 1.0 - 0.35 * 0.4;
    # turn 9 is alone
    assert gained == pytest.approx([0.0, 0.28, 0.11, 0.0])


def test_other_sessions_and_facts_without_session_give_nothing() -> None:
    assert gains([1.0, 1.0, 1.0, 1.0], sessions=[0, 1, -1, -1], turns=[1, 2, 1, 2]) == [0.0] * 4


def test_all_facts_of_a_turn_gain_and_the_best_of_them_gives() -> None:
    assert gains([0.1, 0.9, 0.4], sessions=[0, 0, 0], turns=[1, 1, 2]) == pytest.approx([0.065, 0.0, 0.085])


@given(st.lists(st.tuples(shares, st.integers(-1, 2), st.integers(0, 5)), max_size=12), st.randoms())
@properties
def test_the_order_of_candidates_changes_no_gain(found: list[tuple[float, int, int]], random: object) -> None:
    places = list(range(len(found)))
    random.shuffle(places)  # type: ignore[attr-defined]

    straight = gains(*(list(column) for column in zip(*found, strict=True))) if found else []
    shuffled = gains(*(list(column) for column in zip(*(found[i] for i in places), strict=True))) if found else []

    assert shuffled == pytest.approx([straight[i] for i in places])
    assert all(0 <= gain <= 0.9 for gain in straight)


@given(shares, shares, shares, st.floats(-1_000, 100_000))
@properties
def test_being_alive_adds_at_most_a_tenth(salience: float, believed: float, importance: float, idle: float) -> None:
    assert 0 <= alive(salience, believed, importance, idle) <= 0.1


def test_the_liveliest_fact_gets_all_of_the_tenth_and_each_part_a_quarter() -> None:
    assert alive(1, 1, 1, 0) == pytest.approx(0.1)
    assert alive(1, 0, 0, 1e12) == pytest.approx(0.025)
    assert alive(0, 0, 0, 30) == pytest.approx(0.0125)
    assert alive(0, 0, 0, -20) == pytest.approx(0.025)


def test_the_documented_composite_is_60_25_15() -> None:
    text, believed = np.array([5.0, 1.0]), np.array([0.8, 0.4])
    seconds_to_expiry = np.array([3.5 * 86_400, math.inf])

    scored = documented_score(text, believed, seconds_to_expiry, np.zeros(2, dtype=np.int64), np.zeros(2))

    assert scored == pytest.approx([0.60 * 1 + 0.25 * 0.5 + 0.15 * 0.8, 0.60 * 0 + 0.25 * 1 + 0.15 * 0.4])


def test_the_documented_multiplier_rewards_recalls_and_fades_with_disuse() -> None:
    scored = dynamic_salience(np.array([0, 0, 9]), np.array([0.0, 30.0, 0.0]))

    assert scored == pytest.approx([1.0, 0.5, 1 + 0.1 * math.log(10)])


@given(st.floats(0, 100), shares, st.floats(-1e7, 1e9), st.integers(0, 10**6), st.floats(-10, 10_000))
@properties
def test_the_documented_score_is_a_share(
    text: float, believed: float, seconds: float, recalls: int, idle: float
) -> None:
    scored = documented_score(*(np.array([value]) for value in (text, believed, seconds, recalls, idle)))

    assert 0 <= scored[0] <= 1


@pytest.mark.parametrize(("cosine", "score"), [(1.0, 1.0), (0.97368, 0.95), (0.78571, 0.7), (0.0, 1 / 3), (-1.0, 0.2)])
def test_the_documented_vector_score_is_of_the_squared_distance(cosine: float, score: float) -> None:
    assert vector_score(np.array([cosine])) == pytest.approx([score], abs=1e-4)


def test_the_documented_threshold_accepts_cosines_just_below_0() -> None:
    passing = vector_score(np.array([-0.15, -0.18])) >= DOCUMENTED_MIN_SCORE

    assert passing.tolist() == [True, False]


def test_the_least_cosine_is_the_one_with_the_least_documented_score() -> None:
    assert float(vector_score(np.array([DOCUMENTED_MIN_COSINE]))[0]) == pytest.approx(DOCUMENTED_MIN_SCORE)


def test_the_documented_text_scores_are_scaled_among_those_that_match() -> None:
    nothing = np.zeros(4)
    scored = documented_score(np.array([0.0, 2.0, 3.0, 4.0]), nothing, nothing, nothing.astype(np.int64), nothing)

    assert scored == pytest.approx([0.0, 0.0, 0.3, 0.6])
    alone = documented_score(np.array([0.0, 2.0]), nothing[:2], nothing[:2], np.zeros(2, np.int64), nothing[:2])
    assert alone == pytest.approx([0.0, 0.6])


def test_by_length_follows_the_mean_length_of_facts() -> None:
    weights = 0.5, 0.3
    shares = [by_length(weights, words) for words in (1, 40, np.sqrt(40 * 200), 200, 5_000)]
    assert shares == pytest.approx([0.5, 0.5, 0.4, 0.3, 0.3])
    assert by_length((0.2, 0.2), 100) == 0.2


def test_similarities_that_are_nearly_the_same_hardly_decide() -> None:
    alike = fuse(np.array([1.0, 1.0]), np.array([0.90, 0.87]), 0.5)
    assert alike.tolist() == pytest.approx([1.0, 0.95])
    apart = fuse(np.array([1.0, 1.0]), np.array([0.90, 0.30]), 0.5)
    assert apart.tolist() == pytest.approx([1.0, 0.5])
