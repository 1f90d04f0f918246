"""Stems: how many words of a text begin with one, as an estimate without PostgreSQL, and which words they are of."""

from collections.abc import Sequence

import numpy as np
import pytest

from workers.embedding.word_vectors import of_words
from workers.memory.recall.stems import alike, words_beginning_with, words_of


@pytest.mark.parametrize(
    ("text", "stems", "times"),
    [
        ("Happy people are happier: happily so.", ["happi"], [3]),
        ("She walked, he walks; a walkway, walkabout.", ["walk", "run"], [4, 0]),
        ("The car stands by the carpetmakers' shop.", ["car"], [1]),
        ("Ärger im Café, café und Straße.", ["arger", "caf", "strass"], [1, 2, 1]),
        ("藏宝图在阁楼", ["宝图", "阁"], [1, 1]),
        ("Costs (C++) are 3.5 or 3x5.", ["3.5", "c++"], [1, 0]),
    ],
)
def test_words_that_begin_with_a_stem_are_counted(text: str, stems: Sequence[str], times: Sequence[int]) -> None:
    assert words_beginning_with([text], stems).tolist() == [list(times)]


def test_without_texts_or_stems_there_are_no_counts() -> None:
    assert words_beginning_with([], []).shape == (0, 0)
    assert words_beginning_with(["Mira is here."], []).shape == (1, 0)


def test_a_stem_is_of_the_word_of_the_question_that_begins_with_it() -> None:
    query = "Were the happiest CARS in Zürich's studies?"
    assert words_of(query, ["happi", "car", "zurich", "studi"]) == ["happiest", "cars", "zurich", "studies"]


def test_a_stem_without_a_word_stands_for_itself() -> None:
    assert words_of("Who went?", ["go", "zzz"]) == ["go", "zzz"]
    assert words_of("", ["go"]) == ["go"]
    assert words_of("Who went?", []) == []


def test_only_texts_that_are_chosen_and_there_are_compared() -> None:
    texts = ["the manager", None, "the manager"]
    found = alike(of_words(["boss", "chief"]), texts, np.array([1, 2]))
    assert found[:2].tolist() == [[0, 0], [0, 0]]
    assert (found[2] > 0).all()
    assert alike(of_words([]), texts, np.array([0])).shape == (3, 0)
