"""Generated years of the benchmarks: their questions, and their random slices."""

from datetime import timedelta

import numpy as np
import pytest

from tests.benchmarks import conversations, data, slices
from tests.benchmarks.conversations import BEGIN
from tests.benchmarks.data import AT
from tests.benchmarks.forgetting import hits


@pytest.fixture(scope="module")
def sample() -> conversations.Conversation:
    _, (one,) = conversations.read(None)
    return one


def test_the_sample_is_within_the_year_and_answers_every_question(
    sample: conversations.Conversation,
) -> None:
    said = {turn.fact.text: turn.at for turn in sample.turns}
    assert min(said.values()) == BEGIN
    assert max(said.values()) < AT
    for one in sample.asked:
        assert one.answerable_since == max(said[text] for text in one.evidence)


def test_nothing_is_asked_before_it_can_be_answered(sample: conversations.Conversation) -> None:
    topics = hits.of_questions(sample, fold=None)
    since = {topic.text: topic.since for topic in topics}
    asked = hits.recalls(topics, 2.0, BEGIN, 365, [1])
    assert len(asked) > 300
    assert all(since[text] <= at for at, text in asked)
    assert asked == sorted(asked)


def test_one_seed_asks_the_same_and_another_asks_otherwise(sample: conversations.Conversation) -> None:
    topics = hits.of_facts(sample)
    first, again, other = (hits.recalls(topics, 1.0, BEGIN, 365, seed) for seed in ([1], [1], [2]))
    assert first == again
    assert first != other


def test_half_of_the_questions_is_asked_and_the_other_half_is_not(sample: conversations.Conversation) -> None:
    halves = [{topic.text for topic in hits.of_questions(sample, fold)} for fold in (0, 1)]
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == {one.text for one in sample.asked}


def test_few_topics_are_asked_often_and_many_hardly_ever(sample: conversations.Conversation) -> None:
    topics = [hits.Topic(BEGIN, turn.fact.text, whole=True) for turn in sample.turns]
    asked = [text for _, text in hits.recalls(topics, 10.0, BEGIN + timedelta(days=1), 364, [3])]
    counts = np.sort([asked.count(topic.text) for topic in topics])[::-1]
    assert counts[: len(counts) // 10].sum() > counts.sum() / 2
    assert np.median(counts) < counts.mean() / 2


def test_a_slice_is_contiguous_and_has_three_per_cent() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        places = np.flatnonzero(slices.slice_of(rng, 1000))
        assert len(places) == 30
        assert places[-1] - places[0] == 29


def test_slices_leave_changes_unwritten_for_weeks_and_the_due_index_for_less_than_a_day() -> None:
    rng = np.random.default_rng(2)
    anchors = data.random_anchors(rng, 500, 20.0)
    sliced = slices.follow(anchors, lambda _: slices.slice_of(rng, 500))
    due = slices.follow(anchors, None)
    assert float(np.mean(sliced.delays)) > 7
    assert max(due.delays) <= 1
    assert due.overdue == 0
