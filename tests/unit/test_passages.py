"""Passages: windows of a long text that cover it, with word counts by position."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.passages import CUT, WORD, Cut, best_begin, passage_at, places_in, term_counts, word_starts

SMALL = Cut(step=5, longest=15)


def counted(places: list[list[int]]) -> list[list[int]]:
    """Return the counts of one text's terms, given with their positions."""
    terms = [term for term, own in enumerate(places) for _ in own]
    flat = [place for own in places for place in own]
    arrays = [np.array(one, np.int64) for one in ([0] * len(flat), terms, flat)]
    found: list[list[int]] = term_counts(*arrays, (1, len(places)), SMALL)[0].tolist()
    return found


def test_a_short_text_has_no_passage() -> None:
    assert passage_at("Just a few words.", 0) is None
    assert passage_at("word " * CUT.longest, 0) is None


def test_terms_are_counted_at_their_positions() -> None:
    assert counted([[0, 1, 14], [7, 9, 10]]) == [[2, 2], [1, 3], [1, 1]]


def test_words_before_the_text_count_in_each_passage() -> None:
    assert counted([[-1, 12], [0]]) == [[1, 1], [2, 0], [2, 0]]


def test_texts_without_any_of_the_terms_have_one_passage_of_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    assert term_counts(nothing, nothing, nothing, (2, 1)).tolist() == [[[0]], [[0]]]


@given(st.lists(st.integers(0, 5_000), max_size=20))
def test_every_word_but_the_first_ones_is_in_two_passages(places: list[int]) -> None:
    once = sum(place < SMALL.step for place in places)
    assert sum(one for (one,) in counted([places])) == 2 * len(places) - once


def test_a_passage_has_its_words() -> None:
    text = " ".join(f"word{i}," for i in range(30))
    found = passage_at(text, 5, SMALL)
    assert found is not None
    assert found.text == text[found.start : found.end] == ", ".join(f"word{i}" for i in range(5, 15))


def test_the_last_passage_ends_with_the_text() -> None:
    text = " ".join(f"word{i}" for i in range(30))
    found = passage_at(text, 99, SMALL)
    assert found is not None
    assert found.end == len(text)


def test_characters_are_words_in_scripts_without_blanks() -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 30)))
    found = passage_at(text, 5, SMALL)
    assert found is not None
    assert (found.start, found.end) == (5, 15)


def test_lexemes_of_scripts_without_blanks_are_found_in_the_text() -> None:
    text = "go 北京路x 上海, 北京 か\u3099い"
    assert places_in(text, ["北京", "京路", "海", "がい", "南京"]) == {
        "北京": [1, 7], "京路": [2], "海": [6], "がい": [9], "南京": [],
    }  # fmt: skip


@given(st.text(st.sampled_from("中文かハ・がิ็x9 -<>&;='\0\u3099") | st.characters()))
def test_words_of_a_long_text_begin_where_they_are_found_one_by_one(text: str) -> None:
    assert word_starts(text).tolist() == [found.start(1) for found in WORD.finditer(text) if found[1]]


@pytest.mark.parametrize(
    "text", ["서울에서 부산까지 갔다. " * 30, "日本語のガイドブック。" * 30, "Hôm nay trời mưa ở Hà Nội. " * 30]
)
def test_composed_and_decomposed_texts_have_the_same_passages(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    one, two = passage_at(text, 77), passage_at(decomposed, 77)

    assert one
    assert two
    assert unicodedata.normalize("NFC", two.text) == one.text
    assert decomposed[two.start : two.end] == two.text


def test_marks_and_entities_of_html_are_no_words() -> None:
    text = "&amp; e\u0301e\u0301 हिन्दी " * 10
    found = passage_at(text, 2, SMALL)
    assert found is not None
    assert found.text == ("e\u0301e\u0301 हिन्दी &amp; " * 5).removesuffix(" &amp; ")


def test_a_passage_begins_between_two_that_are_equally_good() -> None:
    scores = np.array([[0, 2, 2, 0], [0, 0, 3, 1], [1, 0, 0, 1], [0, 0, 0, 5.0]])
    assert best_begin(scores, SMALL).tolist() == [7, 10, 0, 15]
