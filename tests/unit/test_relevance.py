"""Relevance: it grows with the share of the question covered, and falls with words unknown to the namespace."""

from dataclasses import astuple, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.relevance import (
    ENOUGH_WORDS,
    FEW_WORDS,
    HASHING,
    ONNX,
    SHARE_OF_PERSONAL,
    STATIC,
    Model,
    Question,
    is_personal,
    names_unknown,
    of_embedder,
    outstanding,
    relevance,
)


def asked(*frequencies: int, facts: int = 600, mean_words: float = 20.0, **more: Any) -> Question:
    return Question(np.array(frequencies, np.int64), facts, mean_words, **more)


def of(question: Question, held: int, similarity: float, alike: float = 0.0, model: Model = HASHING) -> float:
    """Return the relevance of a fact that holds so many stems of a question, the last ones, and others as `alike`."""
    stems = np.arange(len(question.document_frequencies))[::-1] < held
    found = relevance(question, stems[None, :], np.full((1, len(stems)), alike), np.array([similarity]), model)
    return float(found[0])


def test_the_share_of_the_question_that_a_text_holds_counts_and_its_similarity() -> None:
    question = asked(3, 10, 40)
    assert of(question, 0, 0.2) < of(question, 1, 0.2) < of(question, 3, 0.2) < of(question, 3, 0.6)


@pytest.mark.parametrize("model", [HASHING, ONNX, STATIC])
@pytest.mark.parametrize("facts", [10, 600])
def test_words_that_mean_about_the_same_as_those_of_the_question_count(model: Model, facts: int) -> None:
    question = asked(3, 10, 40, facts=facts)
    assert of(question, 1, 0.2, 0.1, model) < of(question, 1, 0.2, 0.7, model) < of(question, 3, 0.2, 0.0, model)
    assert of(question, 3, 0.2, 0.1, model) == of(question, 3, 0.2, 0.7, model)


def test_a_word_that_says_much_counts_more_than_one_that_says_little() -> None:
    question = asked(10, 10)
    assert of(replace(question, word_weights=np.array([1.0, 4.0])), 1, 0.2) > of(question, 1, 0.2)
    assert of(replace(question, word_weights=np.array([4.0, 1.0])), 1, 0.2) < of(question, 1, 0.2)
    assert of(replace(question, word_weights=np.array([3.0, 3.0])), 1, 0.2) == of(question, 1, 0.2)


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


@pytest.mark.parametrize("model", [HASHING, ONNX, STATIC])
def test_weights_have_the_signs_that_their_names_promise(model: Model) -> None:
    for weights in (model.much, model.little):
        assert weights.said > 0
        assert weights.names_unknown < 0
    assert model.much.similarity > 0
    assert model.much.unknown < 0


def test_weights_follow_how_much_text_a_namespace_has() -> None:
    trusts = [asked(3, facts=words, mean_words=1.0).trust for words in (0, FEW_WORDS, 500, ENOUGH_WORDS, 10**6)]
    assert trusts == sorted(trusts)
    assert trusts[:2] == [0, 0]
    assert trusts[3:] == [1, 1]
    assert [asked(facts=facts).few for facts in (0, 250, 500, 10**6)] == [1, 0.5, 0, 0]
    assert STATIC.weights(0.0).tolist() == list(astuple(STATIC.little))
    assert STATIC.weights(1.0).tolist() == pytest.approx(list(astuple(STATIC.much)))


def test_of_a_few_facts_similarity_says_more_and_the_number_of_words_less() -> None:
    few, many = asked(0, facts=5, mean_words=6.0), asked(0, facts=10**5, mean_words=6.0)
    assert of(few, 0, 0.35) > 3 * of(many, 0, 0.35)
    assert of(few, 0, 0.05) < 0.15


def test_weights_belong_to_an_embedder() -> None:
    assert of_embedder("hashing:char3-5-log-centred:256") is HASHING
    assert of_embedder("onnx:all-MiniLM-L6-v2-int8:384") is ONNX
    assert of_embedder("local:all-MiniLM-L6-v2:384") is STATIC


def test_the_default_floor_follows_the_length_of_facts_and_the_number_of_long_ones() -> None:
    short, long, many = asked(mean_words=20.0), asked(facts=250, mean_words=300.0), asked(facts=1_000, mean_words=300.0)
    for model, floors in ((STATIC, [0.11, 0.36, 0.5]), (HASHING, [0.15, 0.27, 0.47]), (ONNX, [0.2, 0.35, 0.45])):
        assert [model.floor(one) for one in (short, long, many)] == pytest.approx(floors)
        between = [model.floor(asked(facts=facts, mean_words=300.0)) for facts in (250, 400, 600, 1_000, 10**6)]
        assert between == sorted(between)
        assert between[-2] == between[-1]


def test_the_default_floor_is_low_where_there_is_little_text() -> None:
    for mean_words in (5.0, 200.0):
        floors = [STATIC.floor(asked(facts=facts, mean_words=mean_words)) for facts in (1, 25, 50, 250, 2_000)]
        assert floors == sorted(floors)


def test_the_default_floor_is_lower_for_questions_about_the_speaker_where_facts_are_short() -> None:
    for facts in (40, 10**6):
        short = asked(facts=facts, mean_words=10.0)
        for model in (STATIC, HASHING, ONNX):
            own = replace(short, personal=True)
            assert model.floor(own) == pytest.approx(SHARE_OF_PERSONAL * model.floor(short))
    for facts in (2, 10**6):
        long = asked(facts=facts, mean_words=300.0)
        assert STATIC.floor(replace(long, personal=True)) == pytest.approx(STATIC.floor(long))


@pytest.mark.parametrize(
    "question",
    ["What's my blood type?", "where do I work", "Where did we go in May?", "user dietary preferences"],
)
def test_a_question_about_its_speaker_is_told_by_its_pronouns(question: str) -> None:
    assert is_personal(question)


@pytest.mark.parametrize("question", ["Who owns the mobile app?", "thanks!", "Do users in Myanmar use it at home?"])
def test_a_question_about_others_is_not_about_its_speaker(question: str) -> None:
    assert not is_personal(question)


def test_what_counts_as_used_is_more_than_the_floor_where_facts_are_few() -> None:
    bounds = [STATIC.certain(asked(facts=facts)) for facts in (1, 20, 50, 100, 500, 10**6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > 0.29
    assert bounds[-1] == STATIC.floor(asked())


def test_dates_that_no_text_has_count_for_nothing_and_others_do() -> None:
    words = ["juli", "2022", "visit"]
    assert asked(0, 0, 3, words=words).unknown == 0
    assert of(asked(0, 0, 3, words=words), 1, 0.3) == of(asked(3, words=["visit"]), 1, 0.3)
    assert asked(2, 0, 3, words=words).counted.tolist() == [True, False, True]
    assert asked(0, 0, 3, words=["oboe", "reed", "visit"]).unknown > 0.5


@pytest.mark.parametrize(
    ("question", "frequencies", "unknown"),
    [
        ("Where does Joanna live?", {"joanna": 0, "live": 4}, True),
        ("Where does Joanna live?", {"joanna": 7, "live": 0}, False),
        ("Where does Bjo\u0308rn live?", {"bjorn": 0, "live": 4}, True),
        ("When did Caroline meet Nate's sister?", {"carolin": 0, "caroline": 0, "nate": 3, "meet": 2}, False),
        ("Which dog do the Hendersons have?", {"henderson": 3, "hendersons": 0, "dog": 0}, False),
        ("What did Mary say in July?", {"mari": 2, "mary": 0, "say": 1, "juli": 0, "july": 0}, False),
        ("What happened in July?", {"happen": 0, "juli": 0, "july": 0}, False),
        ("Would she like it?", {"would": 0, "like": 3}, False),
        ("How long is the CV?", {"cv": 0, "long": 2}, False),
        ("WHERE DOES JOANNA LIVE?", {"joanna": 0, "live": 4}, False),
        ("Wo steht das Fahrrad?", {"fahrrad": 0, "steht": 2}, False),
        ("Does Will know?", {"know": 2}, False),
    ],
)
def test_a_question_whose_names_no_fact_holds_is_about_strangers(
    question: str, frequencies: dict[str, int], *, unknown: bool
) -> None:
    assert names_unknown(question, frequencies) is unknown


def test_thousands_of_names_in_a_question_are_looked_for_at_once() -> None:
    question = " ".join(("Where are", *("An" + "".join(letters) for letters in product("abcdefghij", repeat=5))))
    assert names_unknown(question, {f"stem{number}": 0 for number in range(30_000)} | {"anabcde": 0})


def test_what_is_asked_about_strangers_is_less_relevant() -> None:
    about = [asked(0, 10, 40, names_unknown=one) for one in (False, True)]
    assert of(about[1], 2, 0.3) < of(about[0], 2, 0.3) / 2


def test_what_is_far_more_relevant_than_the_first_ten_stands_above_them() -> None:
    scores = np.linspace(2, 1, 12)
    relevances = np.full(12, 0.1)
    relevances[[10, 11]] = 0.7, 0.52
    gained = scores + outstanding(scores, relevances)
    assert np.argsort(-gained)[:3].tolist() == [10, 11, 0]
    assert gained[:10].tolist() == scores[:10].tolist()


def test_nothing_is_lifted_within_the_first_ten_nor_above_what_is_nearly_as_relevant() -> None:
    scores, relevances = np.linspace(2, 1, 12), np.full(12, 0.1)
    relevances[9] = 0.9
    assert not outstanding(scores, relevances).any()
    relevances[10] = 0.95
    assert not outstanding(scores, relevances).any()
    assert not outstanding(scores[:5], relevances[5:10]).any()
    assert not outstanding(scores[:0], relevances[:0]).any()
    assert not outstanding(scores, np.append(np.full(11, 0.01), 0.2)).any()
