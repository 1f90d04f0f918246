"""Which statement makes an older one outdated, and its rank then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core import updates


@pytest.mark.parametrize(
    "question", ["How many sources are in my library?", "What is the deadline?", " When is the call?"]
)
def test_a_question_for_a_value_asks_for_the_present(question: str) -> None:
    assert updates.asks_for_a_value(question)
    assert not updates.asks_for_the_past(question)


@pytest.mark.parametrize(
    "question",
    [
        "What was the deadline at first?",
        "How much did my score change?",
        "How many did I have before?",
        "Which came first?",
    ],
)
def test_a_question_for_the_past_or_for_both_asks_for_no_present_value(question: str) -> None:
    assert updates.asks_for_the_past(question)
    assert not updates.asks_for_a_value(question)


def test_other_figures_and_a_word_of_change_make_an_older_text_outdated() -> None:
    assert updates.outdates("The library now has 52 sources.", "The library has 45 sources.")
    assert not updates.outdates("The library has 52 sources.", "The library has 45 sources.")
    assert not updates.outdates("The library now has 45 sources.", "The library has 45 sources.")
    assert not updates.outdates("The library has new sources.", "The library has 45 sources.")


def test_the_newest_ranks_highest_and_correct_orders_stay() -> None:
    scores, stated_at = np.array([2.0, 1.0, 1.5, 3.0]), np.array([0.0, 2.0, 1.0, 3.0])
    above = updates.with_newer_above(scores, stated_at, [(1, 0), (2, 0)])
    assert np.argsort(-above).tolist() == [3, 1, 2, 0]
    assert above[[0, 3]].tolist() == [2.0, 3.0]
    assert updates.with_newer_above(scores, stated_at, [(3, 0)]).tolist() == scores.tolist()


@pytest.mark.parametrize("pairs", [[(2, 1), (1, 0)], [(1, 0), (2, 1)]])
def test_what_makes_one_of_those_outdated_comes_too_in_several_steps(pairs: list[tuple[int, int]]) -> None:
    stated_at = np.array([0.0, 1.0, 2.0, 3.0])
    oldest, newest = np.array([True, False, False, False]), np.array([False, False, True, False])
    assert updates.with_newer_of(oldest, stated_at, pairs).tolist() == [True, True, True, False]
    assert updates.with_newer_of(newest, stated_at, pairs).tolist() == newest.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "I used to like opera.",
        "We're not into chamber music anymore!",
        "Please remove the agency from the list.",
        "I've just finished the report.",
    ],
)
def test_a_sentence_that_ends_something_withdraws(text: str) -> None:
    assert updates.withdrawing(f"Hello there. {text}")[0].startswith(text[:10])


@pytest.mark.parametrize(
    "text", ["Any more tips for baking?", "The rule is used to prove a theorem.", "What have you been up to lately?"]
)
def test_words_of_change_in_other_senses_withdraw_nothing(text: str) -> None:
    assert updates.withdrawing(text) == []


SAID = st.sampled_from(
    [
        "I", "WE", "used to", "no longer", "never", "isn't", "any", "more", "anymore", "reverted", "Please", "also",
        "remove", "delete", "has", "have", "just", "Finished", "completed", "cancelled", "canceled", "quit", "gave up",
        "given up", "moved on from", "\u017ftopped", "stopped", "instead of", "rather than", "change", "changing",
        "from", "switched", ".", "\n", "tea",
    ]
)  # fmt: skip


@given(said=st.lists(SAID, max_size=12).map(" ".join))
def test_a_sentence_withdraws_whatever_else_is_said(said: str) -> None:
    sentences = [one for one in updates.SENTENCE_END.split(said) if updates.WITHDRAWS.search(one)]
    assert updates.withdrawing(said) == sentences[: updates.MAX_SENTENCES]


def test_long_runs_of_marks_and_long_sentences_withdraw_nothing() -> None:
    assert updates.withdrawing("." * 65_000) == []
    assert updates.withdrawing("I used to like opera, " * 100) == []
    assert len(updates.withdrawing("I used to like opera. " * 100)) == updates.MAX_SENTENCES


def test_a_sentence_withdraws_what_shares_a_rare_word_that_was_not_asked_for() -> None:
    held = np.array([[True, False, False], [False, True, True], [True, True, False]])
    information, asked = np.array([3.0, 2.0, 1.0]), np.array([False, True, False])
    assert updates.withdrawn(held, information, asked, most=4.0).tolist() == [True, False, True]
    assert not updates.withdrawn(held, information, np.ones(3, np.bool_), most=4.0).any()
