"""Misspelt words of a question are recognised, and read as words that facts contain."""

from string import ascii_lowercase

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workers.core.questions import (
    FIRST_LETTERS,
    MOST_WORDS,
    doubtful,
    meant,
    other_spellings,
    replaced,
    slips,
    unknown_names,
)

DICTIONARY = {"compilation", "settings", "letter"}

words = st.text(ascii_lowercase, min_size=6, max_size=12)


def test_unknown_words_that_no_dictionary_has_are_doubtful() -> None:
    unknown = {"typsecript", "compilation", "redsi"}
    assert doubtful("Which typsecript compilation settings?", unknown, DICTIONARY) == ["typsecript"]
    assert doubtful("Is redsi up?", unknown, DICTIONARY) == []  # short words are like many others
    assert doubtful("TYPSECRIPT", unknown, DICTIONARY) == ["typsecript"]


def test_names_are_not_doubtful_for_they_may_be_those_of_others() -> None:
    assert doubtful("What did Melania say?", {"melania"}, DICTIONARY) == []
    assert doubtful("what did melania say?", {"melania"}, DICTIONARY) == ["melania"]


def test_no_more_than_a_few_words_are_doubtful() -> None:
    unknown = [f"{letter}qxzqxz" for letter in ascii_lowercase]
    assert doubtful(" ".join(unknown), unknown, DICTIONARY) == unknown[:MOST_WORDS]


def test_words_that_are_longer_than_any_are_not_corrected() -> None:
    """Their slips would take longer than a recall may."""
    word, name = "abcdefgh" * 250, "Abcdefgh" + "xyz" * 100
    assert doubtful(f"is {word} here", {word}, DICTIONARY) == []
    assert unknown_names(f"What did {name} say?", {name.lower()}) == []
    assert unknown_names("What did Melania say?", {"melania"}) == ["melania"]


@given(words, st.data())
def test_any_slip_after_the_first_letter_is_undone(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(word) - 1))
    letter = data.draw(st.sampled_from(ascii_lowercase))
    misspelt = data.draw(
        st.sampled_from(
            [
                word[:at] + word[at + 1 :],
                word[:at] + letter + word[at:],
                word[:at] + letter + word[at + 1 :],
                word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
            ]
        )
    )
    assume(misspelt != word)
    assert word in slips(misspelt)
    assert misspelt not in slips(misspelt)
    assert meant([misspelt], {word: 1}) == {misspelt: word}


def test_the_word_of_most_facts_is_meant() -> None:
    assert meant(["lettres"], {"letters": 2, "lettre": 3, "letter": 9}) == {"lettres": "lettre"}
    assert meant(["lettres"], {}) == {}


def test_only_whole_words_are_replaced() -> None:
    assert replaced("Any Lettres, lettresque?", {"lettres": "letters"}) == "Any letters, lettresque?"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("mohammed", "muhhamed"), ("muhammad", "mohamed"), ("faheem", "fahim"), ("aqib", "akib"),
        ("nikolas", "nicolas"), ("catherine", "katharine"), ("nerbaas", "nebraas"),
        ("stephan", "stefan"), ("emilie", "emily"), ("philipp", "filip"), ("filip", "philipp"),
    ],
)  # fmt: skip
def test_names_that_sound_alike_are_other_spellings(name: str, other: str) -> None:
    assert other[0] in FIRST_LETTERS.get(name[0], name[0])
    assert other_spellings(name, ["anselm", other]) == [other]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("daniel", "daniela"), ("maria", "mario"), ("melanie", "milan"), ("andrea", "andrew"), ("john", "jane"),
        ("louis", "louise"), ("martin", "marlon"), ("watson", "wilson"), ("walton", "weston"),
        ("martin", "marvin"), ("walker", "walter"),
    ],
)  # fmt: skip
def test_names_of_different_people_are_not(name: str, other: str) -> None:
    assert other_spellings(name, [other]) == other_spellings(other, [name]) == []


def test_unknown_names_of_a_question() -> None:
    assert unknown_names("What did Aqib and Joe say to Mira?", {"aqib", "joe"}) == ["aqib"]  # Joe is short
    assert unknown_names("what did aqib say?", {"aqib"}) == []
