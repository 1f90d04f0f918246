"""One recall from question to answer."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core.arrays import Floats, Vectors
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


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates that may be seen, each with its similarity to the query, and those that a rule hides."""

    seen: list[Candidate]
    hidden: list[Candidate]
    cosines: Floats

    def __add__(self, other: "Found") -> "Found":
        """Return both together; none may be in both."""
        cosines = np.concatenate([self.cosines, other.cosines])
        return Found(self.seen + other.seen, self.hidden + other.hidden, cosines)


@dataclass(frozen=True, slots=True)
class Weighed:
    """Candidates with their scores."""

    found: Found
    scores: Scores


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
        query = query if query is not None and tenant.embedder == context.embedder.name else None
        text = arms.text_arm(db, tenant, question.text, scope)
        weighed = _weigh(context, db, tenant, text, query, scope)
        return _answer(db, tenant, question, weighed, now, by_meaning=query is not None)


def _embed(context: Context, text: str) -> Vectors | None:
    try:
        return context.queries.embed(text)
    except EmbeddingError as error:
        log.warning("recalled by words alone: %s", error)
        return None


def _weigh(
    context: Context, db: Connection, tenant: Namespace, text: TextArm, query: Vectors | None, scope: Scope
) -> Weighed:
    """Return the candidates of both arms, and the neighbours of the best of them, with their scores."""
    near = arms.vector_arm(db, tenant, query, scope) if query is not None else []
    found = _read(db, tenant, list({*text.best, *near}), query, scope)
    scores = scoring.score(context, found.seen, text, found.cosines, scope.now)
    best = [found.seen[i] for i in answer.order(found.seen, scores)[: arms.NEIGHBOURS_OF]]
    known = {one.id for one in [*found.seen, *found.hidden]}
    beside = [id_ for id_ in arms.neighbour_arm(db, tenant, best) if id_ not in known]
    if beside:
        found = found + _read(db, tenant, beside, query, scope)
        scores = scoring.score(context, found.seen, text, found.cosines, scope.now)
    return Weighed(found, scores)


def _read(db: Connection, tenant: Namespace, ids: Sequence[UUID], query: Vectors | None, scope: Scope) -> Found:
    """Return candidates, apart from those that a rule hides, with their similarity to the query."""
    read = candidates.weigh(db, tenant.id, ids, scope)
    seen = [one for one in read if one.left_out is None]
    hidden = [one for one in read if one.left_out is not None]
    return Found(seen, hidden, scoring.similarities(seen, query))


def _answer(
    db: Connection, tenant: Namespace, question: Question, weighed: Weighed, now: datetime, *, by_meaning: bool
) -> Recalled:
    seen, scores = weighed.found.seen, weighed.scores
    order = answer.order(seen, scores)
    chosen, beyond = order[: question.limit], order[question.limit :][:LEFT_OUT_SHOWN] if question.explain else []
    hidden = weighed.found.hidden[:LEFT_OUT_SHOWN] if question.explain else []
    shown = candidates.describe(db, tenant.id, [seen[i].id for i in [*chosen, *beyond]] + [one.id for one in hidden])
    ranks = answer.ranks(scores) if question.explain else None
    results = [
        answer.result(
            seen[i],
            shown[seen[i].id],
            float(scores.total[i]),
            now,
            None if ranks is None else answer.parts(i, scores, ranks),
        )
        for i in chosen
    ]
    left_out = answer.left_out(hidden, [(seen[i], float(scores.total[i])) for i in beyond], shown)
    return Recalled(results, left_out if question.explain else None, by_meaning)
