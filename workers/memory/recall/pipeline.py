"""One recall from question to answer."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from ebb.contract.faults import show

from workers.context import Context
from workers.coordination.timings import timed
from workers.core import passages
from workers.core.arrays import Vectors
from workers.core.passages import Passage
from workers.errors import EmbeddingError, NotFoundError
from workers.memory.lifetime import NEVER
from workers.memory.recall import answer, arms, explain, floor, scoring, text_arm
from workers.memory.recall.answer import Recalled, Result
from workers.memory.recall.arms import Found
from workers.memory.recall.explain import Asked, compared
from workers.memory.recall.question import Question
from workers.memory.recall.scoring import weigh
from workers.memory.recall.text_arm import TextArm
from workers.storage import candidates, namespaces
from workers.storage.candidates import Description, Scope
from workers.storage.connection import READ_WAIT_SECONDS, Connection, reader, transaction
from workers.storage.namespaces import Namespace
from workers.threads import beside

log = logging.getLogger(__name__)


def recall(context: Context, namespace: str, question: Question, now: datetime) -> Recalled:
    """Return the facts of a namespace, or of those that the question names, that fit it best, as they are at `now`.

    With a tag, meaning is not searched, but entities that are named are looked up. If the embedder fails, words
    alone decide. With `as_of` the facts are those that were true then, with `known_as_of` those that had been stored
    and not yet replaced by then; both see what was superseded or forgotten since.

    Raises:
        NotFoundError: there is no fact that `why` names, or no namespace that the question names.
        UnavailableError: the database does not answer.
    """
    (found,) = recall_many(context, namespace, [question], now)
    if isinstance(found, NotFoundError):
        raise found
    return found


def recall_many(
    context: Context, namespace: str, questions: Sequence[Question], now: datetime
) -> list[Recalled | NotFoundError]:
    """Return what `recall` returns or raises for each question; they are embedded together, on one connection.

    Raises:
        UnavailableError: the database does not answer.
    """
    with timed("recall embed"):
        vectors = _embed(context, questions)
    with reader(context.database_url) as db:
        found: list[Recalled | NotFoundError] = []
        for question, query in zip(questions, vectors, strict=True):
            # Each in a transaction of its own: what one sets for its plans does not hold for the next.
            with db.transaction():
                try:
                    found.append(_recall(context, db, namespace, question, query, now))
                except NotFoundError as error:
                    found.append(error)
        return found


def _recall(
    context: Context, db: Connection, namespace: str, question: Question, query: Vectors | None, now: datetime
) -> Recalled:
    as_of = question.as_of or question.known_as_of
    scope = Scope(now, question.filters, as_of, question.known_as_of, deep=question.deep)
    names = question.namespaces or (namespace,)
    tenants = [tenant for name in names if (tenant := namespaces.find(db, name))]
    if question.namespaces and len(tenants) < len(names):
        missing = sorted({*names} - {tenant.name for tenant in tenants})
        raise NotFoundError(f"namespaces: {show(missing)} do not exist; leave them out, or correct the names.")
    if not tenants:
        return _nothing(namespace, question, by_meaning=query is not None)
    return _answer(compared([_asked(context, db, tenant, question, query, scope) for tenant in tenants]))


def _asked(
    context: Context, db: Connection, tenant: Namespace, question: Question, query: Vectors | None, scope: Scope
) -> Asked:
    """Return a question to one namespace with the candidates that it found there, in order."""
    query = query if query is not None and tenant.embedder == context.embedder.name else None
    found = _search(context, db, tenant, question, query, scope)
    with timed("recall weigh"):
        weighed = weigh(context, db, tenant, question, found, query, scope)
    order = answer.order(weighed.seen, weighed.scores)
    least = floor.least(context, tenant, question, found)
    fitting = floor.fitting(question, weighed.seen, weighed.relevances, order, weighed.around, least)
    return Asked(context, db, tenant, question, scope, query, found, weighed, order, fitting, question.limit)


def _search(
    context: Context, db: Connection, tenant: Namespace, question: Question, query: Vectors | None, scope: Scope
) -> Found:
    """Return what the arms find, which search at the same time, on a connection each."""
    if query is None:
        return Found(_by_words(db, tenant, question, scope), {})
    with beside(_by_meaning, context, tenant, query, scope) as near:
        text = _by_words(db, tenant, question, scope)
        return Found(text, near(), context.embedder.weight)


def _by_words(db: Connection, tenant: Namespace, question: Question, scope: Scope) -> TextArm:
    with timed("recall text"):
        return text_arm.search(db, tenant, question.text, scope)


def _by_meaning(context: Context, tenant: Namespace, query: Vectors, scope: Scope) -> dict[UUID, float]:
    with timed("recall vector"), transaction(context.database_url, second=True, wait=READ_WAIT_SECONDS) as db:
        return arms.vector_arm(db, tenant, query, scope)


def _answer(every: Sequence[Asked]) -> Recalled:
    """Return the best of what each namespace has, and on request what was left out, or why one fact was."""
    question = every[0].question
    found = [(place, result) for place, one in enumerate(every) for result in _results(one)]
    best = sorted(found, key=lambda pair: -pair[1].score)[: question.limit]
    taken = Counter(place for place, _ in best)
    every = [replace(one, taken=taken[place]) for place, one in enumerate(every)]
    return Recalled(
        [result for _, result in best],
        by_meaning=every[0].query is not None,
        left_out=[out for one in every for out in explain.left_out(one)] if question.explain else None,
        why=None if question.why is None else explain.why_among(every, question.why),
    )


def _nothing(namespace: str, question: Question, *, by_meaning: bool) -> Recalled:
    if question.why is not None:
        raise NotFoundError(f"why: no fact {question.why} is in namespace {namespace!r}, for there is none.")
    return Recalled([], by_meaning, [] if question.explain else None)


def _embed(context: Context, questions: Sequence[Question]) -> list[Vectors | None]:
    """Return the vector of each question, nothing where only words are matched or the embedder fails."""
    texts = [one.text for one in questions if not one.filters.tag]
    try:
        vectors = iter(context.queries.embed_all(texts) if texts else [])
    except EmbeddingError as error:
        log.warning("recalled by words alone: %s", error)
        return [None] * len(questions)
    return [None if one.filters.tag else next(vectors) for one in questions]


def _results(asked: Asked) -> list[Result]:
    weighed, scores = asked.weighed, asked.weighed.scores
    places = asked.chosen
    chosen = weighed.seen[places]
    shown = candidates.describe(asked.db, asked.tenant.id, chosen["id"].tolist(), asked.silent_since)
    ends = answer.ending(asked.context, asked.db, asked.tenant, list(shown))
    ranks = answer.ranks(scores) if asked.question.explain else None
    return [
        answer.result(
            one,
            shown[one["id"]],
            ends.get(one["id"], NEVER),
            tier,
            float(scores.total[place]),
            float(weighed.relevances[place]),
            weighed.found_by[place],
            _passage(asked.found.text, shown[one["id"]]),
            answer.parts(place, scores, ranks, asked.updated_by(place)) if ranks else None,
            asked.tenant.name if asked.question.namespaces else None,
        )
        for one, tier, place in zip(
            chosen, scoring.current_tiers(chosen, asked.scope.now).tolist(), places.tolist(), strict=True
        )
    ]


def _passage(text: TextArm, fact: Description) -> Passage | None:
    """Return the passage of a long fact that holds most of the question's words; nothing if none of them is in it."""
    begin = text.passages.get(fact.id)
    return None if begin is None else passages.best(fact.text, begin)
