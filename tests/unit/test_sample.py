"""The shipped sample year is clean, and contains the answers to its questions."""

import json
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "api" / "sample" / "year.jsonl"
QUESTIONS = ROOT / "tests" / "acceptance" / "sample_questions.json"

REQUIRED = {"text", "source_date", "session", "turn", "category"}
OPTIONAL = {"entity", "key", "value", "tags", "importance", "salience", "decay_class"}
CATEGORIES = {"preference", "fact", "decision", "event", "plan", "person", "health", "work", "home"}

Fact = dict[str, Any]


def _facts() -> list[Fact]:
    return [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]


def _questions() -> list[dict[str, Any]]:
    questions: list[dict[str, Any]] = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    return questions


def _instants() -> list[datetime]:
    return [datetime.fromisoformat(fact["source_date"]) for fact in _facts()]


def _repeated(texts: list[str]) -> list[str]:
    """Return texts that occur twice, ignoring case and blanks."""
    counts = Counter(" ".join(text.lower().split()) for text in texts)
    return [text for text, count in counts.items() if count > 1]


def test_every_line_is_a_json_object_that_import_takes() -> None:
    for fact in _facts():
        assert isinstance(fact, dict)
        assert fact.keys() >= REQUIRED
        assert fact.keys() <= REQUIRED | OPTIONAL


def test_the_sample_is_some_hundreds_of_facts() -> None:
    assert 360 <= len(_facts()) <= 420


def test_texts_are_sentences_of_natural_length_and_a_few_are_long() -> None:
    lengths = [len(fact["text"]) for fact in _facts()]
    assert min(lengths) >= 40
    assert max(lengths) <= 600
    assert 3 <= sum(length > 300 for length in lengths) <= 12
    assert sum(length <= 220 for length in lengths) >= 0.95 * len(lengths)


def test_no_two_facts_have_the_same_text() -> None:
    assert _repeated([fact["text"] for fact in _facts()]) == []


def test_texts_are_trimmed_and_some_leave_ascii() -> None:
    texts = [fact["text"] for fact in _facts()]
    assert texts == [" ".join(text.split()) for text in texts]
    assert sum(not text.isascii() for text in texts) >= 20


def test_dates_are_utc_and_strictly_ascend_through_the_whole_of_2025() -> None:
    instants = _instants()
    assert {instant.utcoffset() for instant in instants} == {timedelta(0)}
    assert all(earlier < later for earlier, later in pairwise(instants))
    assert {instant.year for instant in instants} == {2025}
    assert {instant.month for instant in instants} == set(range(1, 13))


def test_sessions_are_days_whose_turns_count_from_one() -> None:
    facts = _facts()
    counted: Counter[str] = Counter()
    for fact in facts:
        counted[fact["session"]] += 1
        assert fact["session"] == fact["source_date"][:10]
        assert fact["turn"] == counted[fact["session"]]
    assert min(counted.values()) >= 3


def test_every_category_is_known_and_used() -> None:
    assert {fact["category"] for fact in _facts()} == CATEGORIES


def test_structured_fields_are_well_formed() -> None:
    for fact in _facts():
        given = [fact[field] for field in ("entity", "key", "value") if field in fact]
        assert len(given) in {0, 3}
        assert all(isinstance(field, str) and field.strip() for field in given)
        assert all(tag == tag.lower().strip() != "" for tag in fact.get("tags", []))
        assert len(set(fact.get("tags", []))) == len(fact.get("tags", []))


@pytest.mark.parametrize("field", ["importance", "salience"])
def test_some_facts_weigh_more_and_every_weight_is_a_fraction(field: str) -> None:
    weights = [fact[field] for fact in _facts() if field in fact]
    assert 5 <= len(weights) <= 100
    assert all(0 <= weight <= 1 for weight in weights)


def test_only_a_handful_of_facts_are_permanent() -> None:
    classes = [fact["decay_class"] for fact in _facts() if "decay_class" in fact]
    assert set(classes) == {"permanent"}
    assert len(classes) <= 12


def test_some_facts_change_over_the_year() -> None:
    values: dict[tuple[str, str], set[str]] = {}
    for fact in _facts():
        if "key" in fact:
            values.setdefault((fact["entity"], fact["key"]), set()).add(fact["value"])
    changed = {key for (_, key), given in values.items() if len(given) > 1}
    assert changed >= {"coffee", "job title", "flat"}


def test_each_question_is_asked_once_and_answered_by_a_fact_of_the_sample() -> None:
    texts = {fact["text"] for fact in _facts()}
    assert _repeated([question["question"] for question in _questions()]) == []
    for question in _questions():
        assert question.keys() <= {"question", "text", "hybrid", "vector"}
        assert question["question"].endswith("?")
        assert question["text"] in texts


def test_enough_questions_are_marked_as_answerable() -> None:
    questions = _questions()
    assert sum(question.get("hybrid", False) for question in questions) >= 30
    assert sum(question.get("vector", False) for question in questions) >= 12
