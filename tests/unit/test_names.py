"""Names that occur in a text as whole words are among its phrases."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.names import capitalised, folded, mentioned_names, word_phrases

properties = examples(100)
words = st.text("abé_7.+-'", min_size=1, max_size=5).filter(lambda word: any(map(str.isalnum, word)))
names = st.lists(words, min_size=1, max_size=4).map(" ".join)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Where does Ana live?", "Ana"),
        ("What about New  York, then?", "New York"),
        ("Is node.js older than C++?", "node.js"),
        ("Is node.js older than C++?", "C++"),
        ("Who is Siân O'Brien-Smith?", "Siân O'Brien-Smith"),
        ("ask (Project Alpha) about it", "Project Alpha"),
        ("mail ana@example.org, please", "ana@example.org"),
        ("the Ministry of Very Silly Walks", "Ministry of Very Silly Walks"),
        ("小明的妻子叫什么", "小明"),
        ("タナカさんはどこ?", "タナカ"),
        ("민수는 어디에 있어?", "민수"),
        ("แผนที่อยู่เชียงใหม่", "เชียงใหม่"),
        ("the Society for the Protection of Small Harbour Birds", "Society for the Protection of Small Harbour Birds"),
    ],
)
def test_a_name_in_the_text_is_among_the_phrases(text: str, name: str) -> None:
    assert name in word_phrases(text)


def test_no_phrase_begins_or_ends_within_a_word() -> None:
    assert word_phrases("Anabel") == ["Anabel"]
    assert "Ana" not in word_phrases("Anabel met Diana and Ana_7.")
    assert word_phrases("रामायण किसने") == ["रामायण", "किसने", "रामायण किसने"]
    assert word_phrases("น้ำดี") == ["น้ำดี", "น้", "ดี", "น้ำ", "ำดี"]


@given(st.text("abé_ ", max_size=20), names, st.text("abé_ ", max_size=20))
@properties
def test_all_names_at_word_boundaries_are_found(before: str, name: str, behind: str) -> None:
    text = f"{before}{name}{behind}"
    place = len(before)
    whole = not re.search(r"\w", text[max(place - 1, 0) : place]) and not re.match(r"\w", text[place + len(name) :])
    if whole:
        assert name in word_phrases(text, most=10_000)


@given(st.text(max_size=200), st.integers(0, 30))
@properties
def test_phrases_are_limited_and_distinct(text: str, most: int) -> None:
    found = word_phrases(text, most)
    assert len(found) == len(set(found)) <= most
    assert all(phrase in " ".join(text.split()) for phrase in found)


def test_short_phrases_come_first() -> None:
    assert word_phrases("x y z", most=4) == ["x", "y", "z", "x y"]


def test_a_name_behind_a_long_prompt_is_found_however_many_words_it_has() -> None:
    prompt = " ".join(f"word{number}, then" for number in range(95))
    assert "spare key" in word_phrases(f"{prompt} where is the spare key")
    name = "Society for the Protection of Small Harbour Birds"
    assert name in word_phrases(f"{prompt} {prompt} {prompt} what did the {name} write?")


@pytest.mark.parametrize(
    "text", ["." * 900_000, "a." * 450_000, "a " * 450_000, ("a" * 99 + " ") * 9_000, ("-" * 64 + " ") * 15_000]
)
def test_a_text_takes_time_in_proportion_to_its_length(text: str) -> None:
    assert len(word_phrases(text)) < len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is Ana Lima?", ["ana lima"]),
        ("where is ANA\nLIMA now", ["ana lima"]),
        ("Mariana Lima", []),
        ("ana limavady", []),
        ("C++ or c?", ["C++", "c"]),
        ("", []),
    ],
)
def test_names_that_are_given_are_found_as_whole_words(text: str, expected: list[str]) -> None:
    assert mentioned_names(text, ["ana  lima", "C++", "c"]) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Where is Zoe?", "Zoë"),
        ("Where is Zoe\u0308?", "Zoe"),
        ("Wo ist die Hauptstrasse?", "HAUPTSTRA\u1e9eE"),
        ("Where is O\u2019Brien?", "O'Brien"),
        ("Where is O'Brien's car?", "O\u02bcBrien"),
    ],
)
def test_names_are_compared_without_accents_and_with_any_apostrophe(text: str, name: str) -> None:
    assert mentioned_names(text, [name, "Brienne"]) == [name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("小明住在哪里?", ["小明"]),
        ("Anna住在北京吗", ["Anna", "北京"]),
        ("Annabel住在北", []),
        ("น้ำอยู่ที่ไหน", ["น้ำ"]),
    ],
)
def test_names_are_found_at_any_character_of_scripts_without_blanks(text: str, expected: list[str]) -> None:
    assert mentioned_names(text, ["小明", "Anna", "北京", "ท", "น้ำ"]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("रामायण किसने लिखी?", []),
        ("राम कहाँ है?", ["राम"]),
        ("Where is Jose\u0301?", ["Jose", "Jos\u00e9"]),
        ("\u200fعلي\u200f في البيت", ["علي"]),
    ],
)
def test_accents_and_vowel_signs_belong_to_the_word_before_them(text: str, expected: list[str]) -> None:
    assert mentioned_names(text, ["राम", "Jose", "Jos\u00e9", "علي"]) == expected


def test_capitalised_words_that_are_searched_for_may_be_names() -> None:
    searched = {"mira", "zoe", "harbour", "o", "brien"}
    assert capitalised("What did Mira say to ZOË O'Brien of the harbour?", searched) == {"mira", "zoe", "o", "brien"}
    assert capitalised("what did mira say?", searched) == frozenset()
    assert capitalised("12 Öre", {"12", "ore"}) == {"ore"}
    assert capitalised("Where does Bjo\u0308rn live?", {"bjorn"}) == {"bjorn"}


@properties
@given(st.text(max_size=20))
def test_plain_is_idempotent(word: str) -> None:
    assert folded(folded(word)) == folded(word)
