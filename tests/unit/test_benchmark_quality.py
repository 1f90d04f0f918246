"""The benchmark of recall quality: conversations, measures, and the BM25 baseline."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.benchmarks import quality
from tests.benchmarks.conversations import Asked, Change, Conversation, sample
from tests.benchmarks.figures import Answers, interval
from tests.benchmarks.libraries import Ebb
from tests.benchmarks.quality import measures, slips
from tests.benchmarks.quality.measures import Outcome
from tests.benchmarks.quality.words import Bm25


def asked(*evidence: str, kind: str = "single") -> Asked:
    return Asked("one", "Where is Anna?", frozenset(evidence), datetime(2025, 1, 1, tzinfo=UTC), kind)


@pytest.fixture(scope="module")
def small() -> list[Conversation]:
    return sample.small()


def test_evidence_and_changes_are_texts_of_the_conversation(small: list[Conversation]) -> None:
    for one in small:
        stated = {turn.fact.text for turn in one.turns}
        for question in one.asked:
            assert question.evidence <= stated
            assert all(change.newer | change.older <= stated for change in question.changes)


def test_every_kind_of_question_is_asked(small: list[Conversation]) -> None:
    kinds = {question.kind for one in small for question in one.asked}
    assert kinds >= {"single", "several", "update", "preference", "assistant", "nothing fits"}


def test_measures_of_a_question_with_two_pieces_of_evidence_one_of_them_second() -> None:
    outcome = Outcome(asked("a", "b"), ["x", "a", "y", "z"])
    assert measures.recall(outcome) == 0.5
    assert measures.any_found(outcome) == 1
    assert measures.first_share(outcome) == 0
    assert measures.reciprocal_rank(outcome) == 0.5
    assert measures.precision(outcome) == 0.25


def test_an_empty_answer_finds_nothing_and_is_not_precise() -> None:
    outcome = Outcome(asked("a"), [])
    assert [measure(outcome) for measure in measures.MEASURES.values()] == [0] * len(measures.MEASURES)


@pytest.mark.parametrize(
    ("found", "above"), [(["new", "old"], 1), (["old", "new"], 0), (["new"], 1), (["old"], 0), (["other"], None)]
)
def test_newer_above_older(found: list[str], above: float | None) -> None:
    assert measures.newer_above(Change(frozenset({"new"}), frozenset({"old"})), found) == above


def test_questions_are_asked_of_another_conversation_also_with_its_names() -> None:
    anna = Conversation("one", [], [asked("a")], ("Anna", "Ben"))
    cleo = Conversation("two", [], [], ("Cleo", "Dan"))
    found = measures.foreign([anna, cleo])
    assert {(one.namespace, one.text, one.kind) for one in found} == {
        ("two", "Where is Anna?", measures.FOREIGN),
        ("two", "Where is Cleo?", measures.RENAMED),
    }
    assert not any(one.evidence for one in found)


def test_memories_with_other_embedders_answer_without_a_floor_as_the_default_one_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine: Any = SimpleNamespace(folder=tmp_path, create=lambda *_, **__: None)
    monkeypatch.setattr(quality.libraries, "PEERS", {})
    monkeypatch.setattr(quality, "find_spec", lambda _: True)
    memories = dict(quality._memories(machine, Answers("none"), tmp_path, []))
    floors = {name: memory.floor for name, memory in memories.items() if isinstance(memory, Ebb)}
    assert floors == {"Ebb, hashing": 0, "Ebb, onnx": 0, "Ebb, local": 0}


def test_an_interval_holds_the_mean_and_narrows_with_more_values() -> None:
    few, many = interval([0.0, 1.0] * 5), interval([0.0, 1.0] * 500)
    assert few[1] < few[0] == 0.5 < few[2]
    assert many[2] - many[1] < (few[2] - few[1]) / 5


def test_bm25_prefers_the_text_with_the_rarer_word_and_stems() -> None:
    memory = Bm25()
    memory.add_many("n", ["The dogs bark.", "The dog sleeps.", "A dog runs.", "The oboe sleeps."])
    assert memory.search("n", "sleeping oboes", 2) == ["The oboe sleeps.", "The dog sleeps."]
    assert memory.search("n", "violin", 2) == []


def test_a_passage_of_a_long_text_is_found_though_the_text_is_about_much() -> None:
    long = " ".join(["filler words about gardens and compost and beds"] * 60) + " the oboe is in the shed"
    others = [f"An oboe has keys, says musician {i}, who plays in orchestra {i} beside a shed." for i in range(3)]
    whole, passages = Bm25(), Bm25(40)
    for memory in (whole, passages):
        memory.add_many("n", [long, "Nothing here.", *others])
    assert len(whole.search("n", "oboe shed", 5)) == len(passages.search("n", "oboe shed", 5)) == 4
    assert passages.search("n", "oboe shed", 5).index(long) <= whole.search("n", "oboe shed", 5).index(long)


def test_a_slip_is_in_one_word_that_is_no_name(small: list[Conversation]) -> None:
    questions = [one for conversation in small for one in conversation.answerable]
    pairs = slips.with_slips(questions)
    assert len(pairs) > len(questions) / 2
    for right, wrong in pairs:
        changed = {*wrong.text.split()} - {*right.text.split()}
        assert len(changed) == 1
        assert changed.pop()[0].islower()
    assert [wrong.text for _, wrong in slips.with_slips(questions)] == [wrong.text for _, wrong in pairs]
