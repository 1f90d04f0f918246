"""Stems: how many words of a text begin with one, as an estimate without PostgreSQL."""

from collections.abc import Sequence

import pytest

from workers.memory.recall.stems import words_beginning_with


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
