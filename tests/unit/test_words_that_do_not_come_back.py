"""The list of words that do not come back: each is found as a whole word, and ids of rows as well."""

import pytest

from tests.words import ROW, found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is Told\nanew.", [(1, "told"), (2, "anew")]),
        ("A hotold renewal of beholders.", []),
        ("The reason stands in a document (C-D11, H39).", [(1, ROW), (1, ROW)]),
        ('A "wish" was told "anew", "nobody knows".', [(1, "told"), (1, "nobody")]),
        ("# noqa: S101", []),
        ("E501, utf-8 and sha256", []),
    ],
)
def test_a_word_is_found_with_its_line(text: str, words: list[tuple[int, str]]) -> None:
    assert [(number, word) for number, word, _ in found(text)] == words
