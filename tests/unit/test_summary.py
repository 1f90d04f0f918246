"""Summaries: three layers by retention, each made from the original text."""

import unicodedata

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.summary import ENGLISH_STOP_WORDS, summarise, top_keywords, top_sentences, truncate

properties = examples(100)
SHORT = "User debugging timeout issue in production"
STORY = (
    "The cat sat by the window. Rain fell all day. The cat watched the rain on the window. "
    "Tom rang. The cat slept by the window in the rain."
)


def test_the_documented_keywords_are_found() -> None:
    assert top_keywords(SHORT, 3) == ["user", "debug", "timeout"]


def test_keywords_are_stems_by_frequency_and_then_by_first_appearance() -> None:
    text = "Deploys broke the tests. Testing the deploy again: tests pass, deployed."

    assert top_keywords(text, 3) == ["deploy", "test", "broke"]


def test_a_word_is_stemmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, stemmer = [], snowballstemmer.stemmer
    monkeypatch.setattr(snowballstemmer, "stemmer", lambda language: made.append(language) or stemmer(language))

    found = [top_keywords("Quokkas like quokkas", 1) for _ in range(3)]

    assert found == [["quokka"]] * 3
    assert len(made) <= 2


def test_texts_with_few_sentences_are_their_best_ones() -> None:
    assert top_sentences(" Tom rang. \n Rain fell.", 3) == "Tom rang. Rain fell."


@pytest.mark.parametrize("text", ["हिन्दी में किताब", "שָׁלוֹם עוֹלָם", "Cafe\u0301 o\u0300"])
def test_keywords_have_their_vowel_signs_and_accents(text: str) -> None:
    assert top_keywords(text, 3) == unicodedata.normalize("NFC", text.lower()).split()


def test_keywords_in_scripts_without_blanks_are_pairs_of_characters_by_frequency() -> None:
    assert top_keywords("我喜欢喝咖啡。每天早上我都会去街角的咖啡店买一杯咖啡!", 3) == ["咖啡", "我喜", "欢喝"]
    assert top_keywords("วันนี้น้ำ", 9) == ["วั", "นน", "น้"]
    assert top_keywords("API用茶", 3) == ["api", "用茶"]


@pytest.mark.parametrize("text", ["中国 国家", "国家、中国", "中国人 国家"])
def test_a_word_that_begins_with_the_last_character_of_another_is_a_keyword_beside_it(text: str) -> None:
    assert {"中国", "国家"} <= set(top_keywords(text, 3))
    assert top_keywords("中国家", 3) == ["中国"]


def test_the_best_sentences_are_found_without_blanks_between_them() -> None:
    text = "我喜欢喝咖啡。昨天下雨了。咖啡店有好咖啡！"  # noqa: RUF001
    assert top_sentences(text, 2) == "我喜欢喝咖啡。咖啡店有好咖啡！"  # noqa: RUF001
    assert top_sentences(text, 3) == text


def test_only_a_text_longer_than_200_characters_is_truncated() -> None:
    assert truncate("x" * 200) == "x" * 200
    assert truncate("x" * 201) == "x" * 200 + "..."


def test_the_best_sentences_keep_their_order() -> None:
    assert top_sentences(STORY, 2) == (
        "The cat watched the rain on the window. The cat slept by the window in the rain."
    )


def test_sentences_also_end_with_full_width_marks() -> None:
    assert top_sentences("我喜欢猫。 今天下雨。", 1) in {"我喜欢猫。", "今天下雨。"}


@pytest.mark.parametrize(
    ("retention", "expected"),
    [
        (1.0, STORY),
        (0.81, STORY),
        (0.8, "The cat sat by the window. The cat watched the rain on the window. The cat slept"),
        (0.41, "The cat sat by the window. The cat watched the rain on the window. The cat slept"),
        (0.4, "cat window rain sat fell"),
        (0.0, "cat window rain sat fell"),
    ],
)
def test_the_layer_follows_retention(retention: float, expected: str) -> None:
    assert summarise(STORY, retention).rstrip(" ") == expected


def test_one_layer_truncates_only() -> None:
    assert summarise("word " * 60, 0.01, layers=1) == ("word " * 60)[:200] + "..."


def test_two_layers_pick_sentences_but_no_keywords() -> None:
    assert summarise(STORY, 0.01, layers=2) == summarise(STORY, 0.5)


@given(st.text(max_size=600), st.floats(0, 1), st.integers(1, 3))
@properties
def test_a_summary_is_never_longer_than_its_layer_allows(text: str, retention: float, layers: int) -> None:
    shown = summarise(text, retention, layers)

    assert len(shown) <= 203
    assert len(shown) <= 80 or retention > 0.8 or layers == 1 or retention <= 0.4
    assert len(shown.split()) <= 5 or retention > 0.4 or layers < 3


def test_stop_words_are_those_of_scikit_learn() -> None:
    from sklearn.feature_extraction import text as scikit_learn  # every test process imports this module

    assert ENGLISH_STOP_WORDS == scikit_learn.ENGLISH_STOP_WORDS
