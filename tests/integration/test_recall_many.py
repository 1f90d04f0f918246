"""Batches of questions have the same answers as single ones; one question to several namespaces has one order."""

from collections.abc import Sequence
from uuid import uuid4

import numpy as np
import pytest
from ebb.contract.recall import Filters
from memory import ON_CITUS, Memory, day
from relay import relayed

from workers.context import QueryCache
from workers.core.arrays import Vectors
from workers.errors import NotFoundError
from workers.memory import recall
from workers.memory.context import Shape, inject
from workers.memory.recall import Preferences, Question, Recalled, pipeline
from workers.storage.connection import close_pools
from workers.tasks import answers

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


QUESTIONS = (
    Question(KEY, 3),
    Question("bread of kind 7", 400),
    Question("Where does Mira sail to?", namespaces=("bakery", "boat")),
    Question("The oven", filters=Filters(tag="kitchen")),
    Question("Which key is new?", min_relevance=0.3, deep=True),
    Question("Anslem bakes bread", 5, explain=True),
    Question("spare key", why=uuid4()),
    Question("spare key", namespaces=("gone",)),
    Question("   "),
    Question("Who lives in Leipzig?"),
    Question("Where was the key before?", as_of=day(0.5), preferences=Preferences(long_term=True)),
    Question("What has Mira's home become?", filters=Filters(entity="Mira")),
)


@pytest.mark.parametrize("namespace", ["bakery", "boat", "none"])
@pytest.mark.parametrize("large", [1, 5_000])
def test_questions_of_any_kind_get_the_answers_that_each_gets_alone(
    households: Memory, monkeypatch: pytest.MonkeyPatch, namespace: str, large: int
) -> None:
    monkeypatch.setattr(pipeline, "LARGE", large)
    for town, at in {"Leipzig": 0.3, "Bremen": 0.4}.items():
        home = {"entity": "Mira", "key": "home", "value": town, "text": f"Mira lives in {town}"}
        for name in ("bakery", "boat"):
            households.store(home, {"text": "The oven is new", "tags": ["kitchen"]}, at=at, namespace=name)
    first, second = (households.ids(f"harbour {number}", namespace="boat", at=1)[0] for number in (3, 4))
    households.link(first, second, "UPDATES", at=1, namespace="boat")
    alone = [ask(households, one, namespace=namespace)[0] for one in QUESTIONS]
    together = ask(households, *QUESTIONS, namespace=namespace)
    assert list(map(repr, together)) == list(map(repr, alone))
    assert sum(isinstance(one, NotFoundError) for one in together) == 2


@pytest.mark.skipif(ON_CITUS, reason="the relay is for a server on a socket")
def test_twenty_questions_take_far_fewer_trips_to_the_server_than_twenty_recalls(households: Memory) -> None:
    questions = [Question(f"Where is harbour {number} and the key?") for number in range(20)]
    with relayed(households.context.database_url) as (url, relay):
        memory = households.having(database_url=url)
        ask(memory, questions[0], namespace="boat")
        relay.delay = 0.005  # what is sent meanwhile does not count as a trip of its own
        before = relay.trips
        ask(memory, *questions, namespace="boat")
        close_pools()
    assert relay.trips - before < 2 * len(questions)


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
    question = Question(KEY, 2, namespaces=("bakery", "boat"), explain=True)
    lines = inject(households.context, "bakery", question, Shape(), day(1)).lines
    assert {line.fact.namespace for line in lines} == {"bakery", "boat"}
    cut = answers.injected(inject(households.context, "bakery", question, Shape(most_tokens=1), day(1)))
    assert cut["over_budget"] == 2
    assert {one["namespace"] for one in cut["left_out"][:2]} == {"bakery", "boat"}
