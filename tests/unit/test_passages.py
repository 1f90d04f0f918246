"""Passages: windows of a long text that cover all of it, and count its words where they stand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.core.passages import CUT, Cut, Passage, counts, span, starts

SMALL = Cut(words=10, step=5, longest=15)


def test_a_short_text_is_one_passage() -> None:
    assert starts(CUT.longest).tolist() == [0]
    assert span("Just a few words.", 0) == Passage(0, 17)


def test_passages_of_a_long_text_are_evenly_spread() -> None:
    assert starts(200).tolist() == [0, 40, 80, 120]
    assert starts(121).tolist() == [0, 20, 41]


@given(st.integers(1, 5_000))
def test_every_word_is_in_a_passage_and_no_passage_goes_beyond_the_text(words: int) -> None:
    begin = starts(words)
    length = CUT.words if words > CUT.longest else words
    assert begin[0] == 0
    assert begin[-1] + length == words
    assert (np.diff(begin) <= CUT.step).all()


def test_terms_are_counted_where_they_stand() -> None:
    places = [np.array([0, 1, 19]), np.array([9, 10])]
    assert starts(20, SMALL).tolist() == [0, 5, 10]
    assert counts(places, 20, SMALL).tolist() == [[2, 1], [0, 2], [1, 1]]


def test_a_short_text_counts_all_of_each_term() -> None:
    assert counts([np.array([0, 3]), np.array([], np.int64)], 4).tolist() == [[2, 0]]


def test_the_span_of_a_passage_has_its_words() -> None:
    text = " ".join(f"word{i}," for i in range(30))
    found = span(text, 5, SMALL)
    assert text[found.start : found.end] == ", ".join(f"word{i}" for i in range(5, 15))
    assert span(text, 99, SMALL).end == len(text) - 1
