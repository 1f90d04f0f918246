"""One recall from question to answer."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workers.context import Context
from workers.core.arrays import Vectors
from workers.errors import EmbeddingError
from workers.recall import answer, arms, scoring
from workers.recall.answer import Recalled
from workers.recall.arms import TextArm
from workers.recall.scoring import Scores
from workers.storage import candidates, namespaces
from workers.storage.candidates import Candidate, Scope
from workers.storage.connection import Connection, transaction
from workers.storage.namespaces import Namespace

log = logging.getLogger(__name__)

LEFT_OUT_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the words, how many facts at most, and the filters that hold in every arm."""

    text: str
    limit: int = 10
    tag: str | None = None
    category: str | None = None
    kind: str | None = None
    as_of: datetime | None = None
    explain: bool = False


def recall(context: Context, namespace: str, question: Question, now: datetime) -> Recalled:
    """Return the facts of a namespace that fit the question best, as they are at `now`.

    With a tag, meaning is not searched (S92). If the embedder fails, words alone decide.

    Raises:
        UnavailableError: the database does not answer.
    """
    query = None if question.tag else _embed(context, question.text)
    scope = Scope(now, question.as_of, question.tag, question.category, question.kind)
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return Recalled([], [] if question.explain else None, by_meaning=query is not None)
        query = query if tenant.embedder == context.embedder.name else None
        text = arms.text_arm(db, tenant, question.text, scope)
        found, scores = _weigh(context, db, tenant, text, query, scope)
    return _answer(question, found, scores, scope, by_meaning=query is not None)


def _embed(context: Context, text: str) -> Vectors | None:
    try:
        return context.queries.embed(text)
    except EmbeddingError as error:
        log.warning("recalled by words alone: %s", error)
        return None


def _weigh(
    context: Context, db: Connection, tenant: Namespace, text: TextArm, query: Vectors | None, scope: Scope
) -> tuple[list[Candidate], Scores]:
    """Return all candidates, hidden ones last and unscored, with the scores of the others."""
    near = arms.vector_arm(db, tenant, query, scope) if query is not None else []
    found = candidates.read(db, tenant.id, list({*text.best, *near}), scope)
    found, scores = _score(context, db, tenant, found, text, query, scope)
    best = [found[i] for i in answer.order(found[: len(scores.total)], scores)]
    known = {one.id for one in found}
    beside = [id_ for id_ in arms.neighbour_arm(db, tenant, best) if id_ not in known]
    if not beside:
        return found, scores
    return _score(context, db, tenant, found + candidates.read(db, tenant.id, beside, scope), text, query, scope)


def _score(
    context: Context,
    db: Connection,
    tenant: Namespace,
    found: Sequence[Candidate],
    text: TextArm,
    query: Vectors | None,
    scope: Scope,
) -> tuple[list[Candidate], Scores]:
    seen = [one for one in found if one.left_out is None]
    hidden = [one for one in found if one.left_out is not None]
    cosines = scoring.similarities(db, tenant.id, seen, query)
    return seen + hidden, scoring.score(context, seen, text, cosines, scope.now)


def _answer(question: Question, found: list[Candidate], scores: Scores, scope: Scope, *, by_meaning: bool) -> Recalled:
    seen, hidden = found[: len(scores.total)], found[len(scores.total) :]
    order = answer.order(seen, scores)
    ranks = answer.ranks(scores) if question.explain else {}
    results = [
        answer.result(
            seen[i], i, scores, scope.now, answer.parts(i, scores, ranks) if question.explain else None
        )
        for i in order[: question.limit]
    ]
    beyond = [(seen[i], float(scores.total[i])) for i in order[question.limit :]]
    left_out = answer.left_out(hidden, beyond, LEFT_OUT_SHOWN) if question.explain else None
    return Recalled(results, left_out, by_meaning)
