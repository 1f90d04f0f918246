"""Identity of texts, and which parts of a text are the user's own."""

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.text import (
    beginning,
    blank_injected,
    case_matters,
    digest,
    least_specific,
    less_specific,
    normalise,
    same_statement,
    statement_digest,
    strip_injected,
    text_digest,
    wording_digest,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize(
    "other", ["  Alice likes TEA ", "alice\tlikes\n\ntea", "ALICE LIKES TEA", "alice likes\u00a0tea"]
)
def test_case_and_blanks_make_no_difference(other: str) -> None:
    assert normalise(other) == "alice likes tea"
    assert digest(other) == digest("Alice likes tea")


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert digest("Zoe\u0308 at the cafe\u0301") == digest("Zo\u00eb at the caf\u00e9")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("a cafe\u0301 here", "a caf"),
        ("abcd हिन्दी", "abcd "),
        ("four\U0001f469\u200d\U0001f467!", "four"),
        ("Bravo\U0001f44d\U0001f3fd", "Bravo"),
        ("plain words", "plain "),
        ("a" + 20 * "\u0301", "a" + 5 * "\u0301"),
    ],
)
def test_a_text_is_cut_between_whole_letters(text: str, cut: str) -> None:
    assert beginning(text, 6) == cut
    assert beginning(text, len(text)) == text


def test_other_words_and_other_marks_make_another_digest() -> None:
    said = ["Alice likes tea", "Alice likes tea!", "Alice liked tea", "tea likes Alice", ""]

    assert len({digest(text) for text in said}) == len(said)


def test_a_digest_is_the_sha_256_of_the_normalised_text() -> None:
    assert digest(" Tea ") == hashlib.sha256(b"tea").digest()
    assert len(digest("")) == 32


@given(texts)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_recalled_context_is_stripped_anywhere_in_a_text() -> None:
    text = "<memory-context>\nold\nfacts</memory-context>\nNew fact. <MEMORY-CONTEXT>more</memory-context>"

    assert strip_injected(text) == "New fact."


def test_of_two_blocks_only_the_blocks_are_stripped() -> None:
    assert strip_injected("a<memory-context>1</memory-context>b<memory-context>2</memory-context>c") == "abc"


def test_a_text_that_is_all_context_has_nothing_of_its_own() -> None:
    assert strip_injected(" <memory-context>old</memory-context>\n") == ""


def test_a_block_that_is_never_closed_is_the_users_own() -> None:
    assert strip_injected("what is <memory-context>?") == "what is <memory-context>?"


@pytest.mark.parametrize("strip", [strip_injected, blank_injected])
def test_blocks_that_are_never_closed_take_time_in_proportion_to_the_text(strip: Callable[[str], str]) -> None:
    text = "<memory-context>" * 400_000
    assert strip(text) == text


@pytest.mark.parametrize(
    "word", ["Hunter2", "iPhone", "apiKey", "McDonald", "-v", "--Verbose", "$HOME", "C++", "3rd", "a@example.com", "Q3"]
)
def test_case_matters_in_words_that_it_may_distinguish(word: str) -> None:
    assert case_matters(word)
    assert case_matters(f"({word},")


@pytest.mark.parametrize(
    "word",
    [
        "tea",
        "Tea",
        "TEA",
        "Leipzig.",
        "\u00abTee\u00bb",
        "O'Brien",
        "E-Mail",
        "And/or",
        "4711",
        "Covid-19",
        "*Tea*",
        "?",
    ],
)
def test_case_does_not_matter_in_ordinary_words(word: str) -> None:
    assert not case_matters(word)


names = st.none() | st.sampled_from(["a", "b", "Hunter2"])


@given(texts, st.tuples(names, names, names), st.tuples(names, names, names))
def test_statements_with_one_text_are_one_unless_something_differs(
    text: str, one: tuple[str | None, ...], other: tuple[str | None, ...]
) -> None:
    differ = any(None not in pair and pair[0] != pair[1] for pair in zip(one, other, strict=True))
    first, second = statement_digest(text, *one), statement_digest(text, *other)
    assert same_statement(first, second) == same_statement(second, first) == (not differ)
    assert text_digest(first) == text_digest(second) == digest(text)
    assert least_specific(first) == least_specific(second) == statement_digest(text, None, None, None)
    assert wording_digest(first) == wording_digest(second)
    assert (second in less_specific(first)) == all(
        said in (None, known) for said, known in zip(other, one, strict=True)
    )


def test_a_wording_has_its_case_and_not_its_subject() -> None:
    assert wording_digest(statement_digest("Tea is at FOUR", "Tea", None, None)) == digest("tea is at four")
    assert wording_digest(digest("tea is at four")) == digest("tea is at four")
    codes = [wording_digest(statement_digest(f"The code is {code}.", None, None, None)) for code in ("aB1", "Ab1")]
    assert len(set(codes)) == 2
