"""Static vectors of words: their weights, and the most similar words of a text."""

import numpy as np
import pytest

from workers.embedding.word_vectors import most_similar, of_words, sums, weights

TEXTS = [
    "The manager is Femke de Vries.",
    "Halfway through the books of Jacob.",
    "Я люблю кошек",
    "...",
]


def similar(word: str, *texts: str) -> list[float]:
    found: list[float] = most_similar(of_words([word]), texts)[:, 0].tolist()
    return found


def test_a_text_is_as_similar_to_a_word_as_its_most_similar_word() -> None:
    boss, novel = most_similar(of_words(["boss", "novel"]), TEXTS).T
    assert boss[0] == pytest.approx(similar("boss", "manager")[0], abs=1e-3)
    assert novel[1] == pytest.approx(max(similar("novel", "halfway", "books", "jacob")), abs=1e-3)
    assert min(boss[0], novel[1]) > 0.5
    assert max(boss[1], novel[0]) < 0.3


def test_the_same_word_is_most_similar_whatever_its_case_and_accents() -> None:
    assert similar("café", "CAFÉ", "a Cafe!", "Cafe\u0301") == pytest.approx([1, 1, 1], abs=1e-3)
    assert similar("duc", "Đức", "Đu\u031b\u0301c") == pytest.approx([1, 1], abs=1e-3)


def test_texts_without_words_in_latin_letters_are_like_nothing() -> None:
    assert similar("кошек", *TEXTS[2:]) == [0, 0]
    assert similar("кошек", "кошек") == [0]


def weight(word: str) -> float:
    return float(weights([word], of_words([word]))[0])


def test_the_words_that_decide_about_the_meaning_of_a_text_have_more_weight() -> None:
    assert min(weight("antidepressant"), weight("mortgage")) > 2 * max(weight("get"), weight("things"))


@pytest.mark.parametrize("word", ["кошек", "藏宝", "里", "", "a" * 200])
def test_words_without_a_vector_of_their_own_have_the_usual_weight(word: str) -> None:
    assert weight("get") < weight(word) < weight("antidepressant")


def test_no_words_and_no_texts_have_no_similarities() -> None:
    assert most_similar(of_words([]), TEXTS).shape == (4, 0)
    assert most_similar(of_words(["boss"]), []).shape == (0, 1)
    assert weights([], of_words([])).tolist() == []
    assert of_words([]).shape == (0, 128)
    assert not np.any(of_words([""]))


def test_a_word_has_the_sum_of_the_vectors_of_its_pieces() -> None:
    words = ["cat", "houseboats", "", "кошек", "antidisestablishmentarianism", "42"]
    assert of_words(words).tolist() == sums(words).tolist()
