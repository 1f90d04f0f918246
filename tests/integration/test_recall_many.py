"""Batches of questions have the same answers as single ones; one question to several namespaces has one order."""

from collections.abc import Sequence

import numpy as np
import pytest
from memory import Memory, day

from workers.context import QueryCache
from workers.core.arrays import Vectors
from workers.errors import NotFoundError
from workers.memory import recall
from workers.memory.context import Shape, inject
from workers.memory.recall import Question, Recalled

KEY = "Where is the spare key?"


@pytest.fixture
def households(memory: Memory) -> Memory:
    """Return a memory with different matching facts in two namespaces."""
    for number in range(30):
        memory.add(f"Anselm bakes bread of kind {number}", namespace="bakery")
        memory.add(f"Mira sails to harbour {number}", namespace="boat")
    memory.add("The spare key hangs behind the kitchen clock", namespace="bakery")
    memory.add("The key of the cabin is new", namespace="boat")
    memory.add("The spare key of the boat lies under the pot", namespace="boat")
    return memory


def ask(memory: Memory, *questions: Question, namespace: str = "bakery") -> Sequence[Recalled | NotFoundError]:
    return recall.recall_many(memory.context, namespace, questions, day(1))


def test_many_questions_get_the_answers_that_each_gets_alone(households: Memory) -> None:
    questions = [Question(KEY, 3), Question("bread", 5, explain=True), Question("harbour", 2)]
    together = ask(households, *questions)
    assert together == [recall.recall(households.context, "bakery", one, day(1)) for one in questions]


def test_a_question_that_fails_stops_no_other(households: Memory) -> None:
    first, second = ask(households, Question(KEY, namespaces=("bakery", "gone")), Question(KEY))
    assert isinstance(first, NotFoundError)
    assert str(first).startswith("namespaces: ['gone'] do not exist")
    assert isinstance(second, Recalled)
    assert second.results


def test_questions_are_embedded_in_one_batch_and_each_once() -> None:
    class Counting:
        batch = 2
        asked: list[list[str]] = []  # noqa: RUF012 - of this test alone

        def embed_queries(self, texts: Sequence[str]) -> Vectors:
            self.asked.append(list(texts))
            return np.ones((len(texts), 4), np.float32)

    queries = QueryCache(Counting())  # type: ignore[arg-type]  # all that it uses
    queries.embed("a")
    assert len(queries.embed_all(["a", "b", "c", "d", "b"])) == 5
    assert Counting.asked == [["a"], ["b", "c"], ["d"]]


def test_each_namespace_has_its_own_best_and_all_are_in_one_order(households: Memory) -> None:
    (found,) = ask(households, Question(KEY, 10, namespaces=("bakery", "boat")))
    assert isinstance(found, Recalled)
    scores = [one.score for one in found.results]
    assert scores == sorted(scores, reverse=True)
    assert {one.namespace for one in found.results[:2]} == {"bakery", "boat"}
    assert all("spare key" in one.text for one in found.results[:2])
    for name in ("bakery", "boat"):
        alone = households.ids(KEY, namespace=name, at=1, limit=10)
        own = [one.id for one in found.results if one.namespace == name]
        assert set(own) <= set(alone)


def test_one_of_several_namespaces_answers_as_it_does_alone(households: Memory) -> None:
    (several,) = ask(households, Question(KEY, 5, namespaces=("boat",)))
    alone = households.ask(KEY, namespace="boat", at=1, limit=5)
    assert isinstance(several, Recalled)
    assert [(one.id, one.score) for one in several.results] == [(one.id, one.score) for one in alone.results]


def test_what_is_left_out_and_why_are_answered_for_each_namespace(households: Memory) -> None:
    key = households.ids(KEY, namespace="boat", limit=1)[0]
    question = Question(KEY, 1, namespaces=("bakery", "boat"), explain=True, why=key)
    (found,) = ask(households, question)
    assert isinstance(found, Recalled)
    assert found.why is not None
    assert found.why["id"] == str(key)
    shown = {str(one.id) for one in found.results}
    out = {(one["namespace"], one["id"]) for one in found.left_out or ()}
    assert {name for name, _ in out} == {"bakery", "boat"}
    assert shown.isdisjoint(id_ for _, id_ in out)


def test_a_context_of_several_namespaces_says_where_each_line_is_from(households: Memory) -> None:
    question = Question(KEY, 2, namespaces=("bakery", "boat"))
    lines = inject(households.context, "bakery", question, Shape(), day(1)).lines
    assert {line.fact.namespace for line in lines} == {"bakery", "boat"}
