"""One recall from question to answer."""

import logging
from datetime import datetime

from workers.context import Context
from workers.core.arrays import Vectors
from workers.errors import EmbeddingError
from workers.recall import answer, arms, scoring
from workers.recall.answer import Recalled
from workers.recall.question import Question
from workers.recall.weighing import Found, Weighed, weigh
from workers.storage import candidates, namespaces
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, transaction
from workers.storage.namespaces import Namespace

log = logging.getLogger(__name__)

LEFT_OUT_SHOWN = 50


def recall(context: Context, namespace: str, question: Question, now: datetime) -> Recalled:
    """Return the facts of a namespace that fit the question best, as they are at `now`.

    With a tag, meaning is not searched (S92). If the embedder fails, words alone decide. With `as_of` the facts are
    those that were true then, with `known_as_of` those that had been told and not yet replaced by then (C-S15); both
    see what was superseded or forgotten since.

    Raises:
        UnavailableError: the database does not answer.
    """
    query = None if question.tag else _embed(context, question.text)
    as_of = question.as_of or question.known_as_of
    scope = Scope(now, as_of, question.tag, question.category, question.kind, question.known_as_of, question.documents)
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return Recalled([], [] if question.explain else None, by_meaning=query is not None)
        query = query if query is not None and tenant.embedder == context.embedder.name else None
        text = arms.text_arm(db, tenant, question.text, scope)
        near = arms.vector_arm(db, tenant, query, scope) if query is not None else {}
        weighed = weigh(context, db, tenant, question, Found(text, near), query, scope)
        return _answer(db, tenant, question, weighed, now, by_meaning=query is not None)


def _embed(context: Context, text: str) -> Vectors | None:
    try:
        return context.queries.embed(text)
    except EmbeddingError as error:
        log.warning("recalled by words alone: %s", error)
        return None


def _answer(
    db: Connection, tenant: Namespace, question: Question, weighed: Weighed, now: datetime, *, by_meaning: bool
) -> Recalled:
    scores, order = weighed.scores, answer.order(weighed.seen, weighed.scores)
    chosen = weighed.seen[order[: question.limit]]
    beyond = order[question.limit :][: LEFT_OUT_SHOWN if question.explain else 0]
    below, hidden = weighed.seen[beyond], weighed.hidden[: LEFT_OUT_SHOWN if question.explain else 0]
    shown = candidates.describe(db, tenant.id, [one["id"] for one in (*chosen, *below, *hidden)])
    ranks = answer.ranks(scores) if question.explain else None
    results = [
        answer.result(
            one,
            shown[one["id"]],
            tier,
            float(scores.total[place]),
            weighed.found_by[place],
            answer.parts(place, scores, ranks) if ranks else None,
        )
        for one, tier, place in zip(chosen, scoring.current_tiers(chosen, now).tolist(), order.tolist(), strict=False)
    ]
    left_out = answer.left_out(hidden, below, scores.total[beyond], shown) if question.explain else None
    return Recalled(results, left_out, by_meaning)
