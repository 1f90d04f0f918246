"""The text arm: which words select candidates, and how often a word occurs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.memory.recall import arms
from workers.memory.recall.arms import informative, occurrences
from workers.storage.words import Term

properties = examples(100)
counted = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(0, 1_000), min_size=1, max_size=10)


def choose(words: list[str], facts: dict[str, int], budget: int, enough: int) -> list[str]:
    return arms.affordable([Term(word, facts.get(word, 0), stem=True) for word in words], budget, enough)


def words_of(terms: list[Term]) -> list[str]:
    return [term.lexeme for term in terms]


def rank(times: int) -> np.float32:
    """Return `ts_rank` of a word with that many occurrences: the sum of 1 / j² in float4, rounded at each step."""
    total = np.float32(0)
    for j in range(1, times + 1):
        total += np.float32(1) / np.float32(j * j)
    return np.float32(float(total) / 1.64493406685)


def test_the_rarest_words_choose_as_long_as_their_facts_fit_the_budget() -> None:
    facts = {"the": 9_000, "kitten": 40, "luna": 2, "adopt": 900}

    assert choose(["the", "kitten", "luna", "adopt"], facts, budget=942, enough=0) == ["luna", "kitten", "adopt"]
    assert choose(["the", "kitten", "luna", "adopt"], facts, budget=941, enough=0) == ["luna", "kitten"]
    assert choose(["the", "kitten", "luna", "adopt"], facts, budget=10_000, enough=0) == [
        "luna",
        "kitten",
        "adopt",
        "the",
    ]


def test_one_word_chooses_however_common_it_is() -> None:
    assert choose(["the"], {"the": 10**6}, budget=20_000, enough=0) == ["the"]


def test_words_that_were_never_counted_are_the_rarest() -> None:
    assert choose(["known", "new"], {"known": 5}, budget=4, enough=0) == ["new"]


def test_common_words_choose_too_until_there_are_enough_facts() -> None:
    facts = {"the": 9_000, "kitten": 40, "luna": 2, "adopt": 900}

    assert choose(list(facts), facts, budget=100, enough=42) == ["luna", "kitten"]
    assert choose(list(facts), facts, budget=100, enough=43) == ["luna", "kitten", "adopt"]
    assert choose(list(facts), facts, budget=100, enough=10**6) == ["luna", "kitten", "adopt", "the"]


@given(counted, st.integers(0, 3_000))
@properties
def test_the_chosen_fit_the_budget_and_no_more_would(facts: dict[str, int], budget: int) -> None:
    chosen = choose(list(facts), facts, budget, 0)

    left = sorted(facts[term] for term in facts.keys() - set(chosen))
    total = sum(facts[term] for term in chosen)
    assert chosen
    assert total <= budget or len(chosen) == 1
    assert not left or total + left[0] > budget
    assert all(facts[term] <= facts_left for term in chosen for facts_left in left)


@given(counted, st.integers(0, 3_000), st.randoms())
@properties
def test_the_order_of_the_words_makes_no_difference(facts: dict[str, int], budget: int, random: object) -> None:
    shuffled = list(facts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert choose(shuffled, facts, budget, 0) == choose(sorted(facts), facts, budget, 0)


@pytest.mark.parametrize("times", [0, 1, 2, 3, 4, 5, 10, 50, 100, 200, 254, 255, 256])
def test_the_number_of_occurrences_is_read_off_the_rank(times: int) -> None:
    assert occurrences(np.array([float(rank(times))])).tolist() == [times]


def test_every_number_that_a_tsvector_can_hold_comes_back() -> None:
    ranks = np.array([[float(rank(times)) for times in range(257)]]).T

    assert occurrences(ranks)[:, 0].tolist() == list(range(257))


def test_ranks_of_many_facts_and_words_keep_their_shape() -> None:
    ranks = np.array([[float(rank(2)), 0.0, float(rank(1))], [0.0, float(rank(7)), 0.0]])

    assert occurrences(ranks).tolist() == [[2, 0, 1], [0, 7, 0]]


def test_the_words_that_say_most_are_the_rarest_known_ones_and_then_unknown_ones() -> None:
    terms = [Term("the", 900, stem=True), Term("xyzzy", 0, stem=True), Term("luna", 2, stem=True)]

    assert words_of(informative(terms, 3)) == ["luna", "the", "xyzzy"]
    assert words_of(informative(terms, 2)) == ["luna", "the"]


def test_a_chinese_character_in_a_pair_counts_as_a_written_form() -> None:
    terms = [Term(word, 1, stem=True) for word in ("喝", "茶", "喝咖", "a", "ab")]

    found = {term.lexeme: term.stem for term in informative(terms, 9)}

    assert found == {"a": True, "ab": True, "喝": False, "喝咖": True, "茶": True}


def test_other_characters_are_looked_for_only_where_no_pair_holds_them() -> None:
    terms = [Term(word, 1, stem=True) for word in ("の", "は", "の木")]

    assert sorted(words_of(informative(terms, 9))) == ["の木", "は"]
