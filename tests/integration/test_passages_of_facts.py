"""Passages of long facts: found where the question's words occur together, and returned with the result."""

import pytest
from memory import Memory

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


def test_a_text_in_a_script_without_blanks_is_one_passage(memory: Memory) -> None:
    fact = memory.add("我每天早上都喝咖啡。" * 60)
    assert memory.ids("咖啡")[0] == fact
    assert memory.ask("咖啡").results[0].passage is None


def test_what_was_found_is_not_at_the_edge_of_its_passage(memory: Memory) -> None:
    for words in range(60, 80):
        memory.add("hay " * words + KEY + " straw" * 120, entity=str(words))
    for one in memory.ask("spare key", limit=20).results:
        assert one.passage is not None
        assert KEY in one.passage.text
