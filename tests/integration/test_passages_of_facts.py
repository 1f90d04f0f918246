"""Passages of long facts: found where the question's words occur together, and returned with the result."""

import json
from pathlib import Path

import pytest
from memory import Memory, day

from workers.admin import search_indexes

SAMPLE = Path(__file__).parents[2] / "api" / "sample" / "year.jsonl"
KEY = "The spare key hangs in the shed behind the roses."
BEFORE, AFTER = "We talked about the weather. " * 40, "And so it went on. " * 60
LONG = BEFORE + KEY + " " + AFTER


@pytest.fixture(autouse=True)
def _others(memory: Memory) -> None:
    memory.store(*[f"On day {number} the weather was dull." for number in range(10)])


def passage_of(memory: Memory, query: str) -> str:
    """Return the passage of the best result, and check its position."""
    best = memory.ask(query).results[0]
    assert best.passage is not None
    assert best.passage.text == best.text[best.passage.start : best.passage.end]
    return best.passage.text


def test_a_long_fact_is_shown_with_the_passage_that_fits(memory: Memory) -> None:
    memory.add(LONG)
    found = passage_of(memory, "Where is the spare key to the shed?")
    assert KEY in found
    assert len(found) < len(LONG) / 3


def test_what_a_fact_is_about_does_not_move_its_passages(memory: Memory) -> None:
    memory.add(
        LONG, entity="Mira's old house", key="a long name of many words", value="shed", category="places and things"
    )
    assert KEY in passage_of(memory, "Where is the spare key to the shed?")


def test_the_end_of_a_text_is_a_passage(memory: Memory) -> None:
    memory.add(BEFORE + AFTER + KEY)
    assert passage_of(memory, "Where is the spare key to the shed?").endswith(KEY)


def test_a_short_fact_has_no_passage(memory: Memory) -> None:
    memory.add(KEY)
    assert memory.ask("Where is the spare key?").results[0].passage is None


def test_a_question_of_stop_words_with_a_tag_finds_a_long_fact(memory: Memory) -> None:
    fact = memory.add(LONG, tags=["home"])
    (found,) = memory.ask("What is it about?", tag="home").results
    assert (found.id, found.passage) == (fact, None)


def test_adjacent_words_count_more_than_the_same_ones_spread_over_a_text(memory: Memory) -> None:
    spread = memory.add("The spare one. " + BEFORE + "A key to it, a key. " + AFTER + "A shed, no other shed.")
    together = memory.add(LONG)
    found = memory.ids("Where is the spare key to the shed?", min_relevance=0)
    assert found.index(together) < found.index(spread)


LANGUAGES = {
    "Chinese": ("我们沿着河边散步。天气有点阴沉。", "藏宝图在阁楼第三块地板下面。", "藏宝图在哪里"),
    "Japanese": ("私たちは川沿いを歩きました。", "宝の地図は屋根裏の床下にあります。", "宝の地図"),
    "Korean": ("우리는 강을 따라 걸었다. ", "보물지도는 다락방 마루 밑에 있다. ", "보물지도"),
    "Thai": ("เราเดินไปตามแม่น้ำ ", "แผนที่สมบัติอยู่ใต้พื้นห้อง ", "แผนที่สมบัติ"),
    "Hindi": ("हम नदी के किनारे चले। ", "खज़ाने का नक्शा अटारी में है। ", "खज़ाने का नक्शा"),
    "HTML": ('<p class="a b">We walked <b>along</b> the river &amp; back.</p>\n', "Map: the attic. ", "attic map"),
}


@pytest.mark.parametrize("before", [5, 60, 115])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_passage_that_fits_is_shown_in_any_language(memory: Memory, language: str, before: int) -> None:
    filler, said, question = LANGUAGES[language]
    fact = memory.add(filler * before + said + filler * (120 - before))
    best = memory.ask(question, min_relevance=0).results[0]
    assert best.id == fact
    assert best.passage is not None
    assert best.passage.text == best.text[best.passage.start : best.passage.end]
    assert said.strip() in best.passage.text
    assert len(best.passage.text) < len(best.text) / 3


QUESTIONS = {
    "Chinese": "藏宝图在第几块地板下面?",
    "Japanese": "宝の地図はどこの床下にありますか?",
    "Korean": "보물지도는 어디 밑에 있나요?",
    "Thai": "แผนที่สมบัติอยู่ที่ไหน",
}


@pytest.mark.parametrize("language", QUESTIONS)
def test_a_sentence_of_a_long_text_is_as_relevant_as_alone_in_any_language(memory: Memory, language: str) -> None:
    filler, said, _ = LANGUAGES[language]
    alone, long = memory.add(said), memory.add(filler * 30 + said + filler * 30)
    relevance = {one.id: one.relevance for one in memory.ask(QUESTIONS[language], min_relevance=0).results}
    assert relevance[long] > 0.3 * relevance[alone]


def test_what_was_found_is_not_at_the_edge_of_its_passage(memory: Memory) -> None:
    for words in range(60, 80):
        memory.add("hay " * words + KEY + " straw" * 120, entity=str(words))
    found = memory.ask("spare key", limit=20).results
    assert len(found) == 20
    for one in found:
        assert one.passage is not None
        assert KEY in one.passage.text


MINUTES = "The committee met again on Tuesday and discussed the usual matters of the season without any decision. "


def test_one_sentence_of_a_long_text_is_found_among_many_facts_that_say_more(memory: Memory) -> None:
    memory.store(*map(json.loads, SAMPLE.read_text(encoding="utf-8").splitlines()))
    fact = memory.add(f"{MINUTES * 200}The hidden treasure lies below the third oak. {MINUTES * 200}", at=1)
    search_indexes.count_lexemes(memory.context, "default", day(1))
    best = memory.ask("Does the hidden treasure lie below the third oak?", at=2, explain=True).results[0]
    assert best.id == fact
    assert best.passage is not None
    assert "treasure" in best.passage.text
    assert best.explain is not None
    assert best.explain["outstanding"] > 0


def test_of_many_long_texts_those_beyond_the_best_by_words_are_as_relevant(memory: Memory) -> None:
    around = " ".join(f"We talked for hours about plan {number}, nothing else." for number in range(30))
    memory.store(
        *[f"The old harbour crane {'stands ' * (1 + pier % 3)}at pier {pier}. {around}" for pier in range(160)]
    )
    found = memory.ask("Where is the harbour crane?", at=1, limit=100, min_relevance=0).results
    assert min(one.relevance for one in found) == pytest.approx(found[0].relevance, abs=0.01)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_long_text_is_found_by_a_word_that_no_other_fact_has(memory: Memory, role: str) -> None:
    memory.store(*map(json.loads, SAMPLE.read_text(encoding="utf-8").splitlines()))
    fact = memory.add(f"{MINUTES * 20}The name of the boat is Gewuqehijak. {MINUTES * 20}", role=role, at=1)
    search_indexes.count_lexemes(memory.context, "default", day(1))
    assert memory.ids("gewuqehijak", at=2)[0] == fact


def test_a_sentence_of_a_very_long_text_without_blanks_is_found_where_it_is(memory: Memory) -> None:
    filler, said, question = LANGUAGES["Chinese"]
    fact = memory.add(filler * 300 + said + filler * 900)  # the index has positions up to 16,383
    spread = memory.add("".join(filler * 300 + one for one in ("藏宝", "宝图", "图在", "哪里")))
    results = {one.id: one for one in memory.ask(question, min_relevance=0).results}
    assert said in results[fact].passage.text
    assert results[spread].relevance < 0.7 * results[fact].relevance
