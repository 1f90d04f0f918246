"""Long texts in pieces: complete, bounded, and combined by weighted mean."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.embedding import vectors as pieces

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" a😀"), max_size=200)


@given(TEXTS, st.integers(4, 50))
def test_pieces_join_to_the_text_and_none_is_too_long(text: str, limit: int) -> None:
    parts = pieces.split(text, limit)

    assert "".join(parts) == text
    assert all(len(part.encode()) <= limit for part in parts)


def test_a_short_text_is_one_piece() -> None:
    assert pieces.split("one two", 7) == ["one two"]


def test_words_stay_whole_where_they_can() -> None:
    assert pieces.split("one two three four", 10) == ["one two ", "three four"]


def test_characters_stay_whole() -> None:
    assert pieces.split("😀😀😀", 7) == ["😀", "😀", "😀"]


def test_batches_end_at_either_limit() -> None:
    by_count = pieces.batches(["a", "b", "c"], most_texts=2, most_bytes=100)
    by_bytes = pieces.batches(["aaa", "bbb", "ccc", "ddddddddd"], most_texts=9, most_bytes=6)

    assert list(by_count) == [["a", "b"], ["c"]]
    assert list(by_bytes) == [["aaa", "bbb"], ["ccc"], ["ddddddddd"]]


def test_a_long_piece_weighs_more() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.5, 0.5]], np.float32)

    means = pieces.mean(vectors, [["aaa", "b"], ["c"]])

    np.testing.assert_allclose(means, [[0.75, 0.25], [0.5, 0.5]])
