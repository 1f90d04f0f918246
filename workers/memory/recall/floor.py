"""The floor of relevance: which candidates an answer may include, and whether any answers the question."""

import numpy as np

from workers.context import Context
from workers.core import ranking, relevance
from workers.core.arrays import Bools, Floats, Ints
from workers.memory.recall.arms import Found
from workers.memory.recall.graph import Surroundings
from workers.memory.recall.question import Question
from workers.storage.candidates import Candidates
from workers.storage.namespaces import Namespace

BY_WORDS = 0.02
"""The default floor without vectors: relevance by words alone is lower."""

BESIDE = 1 / 3
"""Share of the floor that further results need if one reaches it: additional evidence often matches less well."""

OF_BEST = 0.25
"""Share of the best result's relevance that further results need."""

FIRST = 10
"""Number of top candidates that decide whether anything answers the question, whatever the limit."""

TOO_IRRELEVANT = "not relevant enough"


def relevances(tenant: Namespace, found: Found, held: Bools, cosines: Floats) -> Floats:
    """Return the relevance of n candidates in [0, 1]; `held` (n, k) says which of k stems each contains."""
    asked = found.text.stems.question.among(len(found.near))
    return relevance.relevance(asked, held, cosines, relevance.of_embedder(tenant.embedder or ""))


def least(context: Context, tenant: Namespace, question: Question, found: Found, *, full: bool = False) -> float:
    """Return the minimum relevance of the best result, which is lower if vectors were not searched.

    `full` ignores that the default floor is lower in a small namespace.
    """
    known = found.text.stems.question.among(len(found.near))
    facts = relevance.MUCH_TEXT if full else known.facts
    usual = usual_least(context, tenant.embedder or "", question, known.mean_words, facts)
    if question.min_relevance is not None or found.near:
        return usual
    return min(usual, BY_WORDS) if found.text.stems.lexemes else 0.0


def usual_least(context: Context, embedder: str, question: Question, mean_words: float, facts: int) -> float:
    """Return the floor with both arms: that of the question, else of the settings, else of the embedder."""
    chosen = context.settings.min_relevance if question.min_relevance is None else question.min_relevance
    return relevance.floor_of_embedder(embedder, mean_words, facts) if chosen is None else chosen


def fitting(
    question: Question, rows: Candidates, relevances: Floats, order: Ints, around: Surroundings, floor: float
) -> Bools:
    """Return which of n candidates may be in the answer; `order` has their indexes, best first.

    A floor of the question applies to each candidate. By default there are no results unless one of the first reaches
    the floor; then others need less, and none if they are neighbours in the conversation or linked.
    """
    enough = relevances >= floor
    if question.min_relevance is not None:
        return enough
    if not enough[order[:FIRST]].any():
        return np.zeros(len(rows), np.bool_)
    best = float(relevances[order[:FIRST]].max())
    nearly = relevances >= max(BESIDE * floor, OF_BEST * best)
    fits: Bools = nearly | beside(rows, enough) | around.linked(rows, enough)
    return fits


def beside(rows: Candidates, those: Bools) -> Bools:
    """Return which of n candidates are close to one of `those` in the same session."""
    turns, sessions, reach = rows["turn"], rows["session"], len(ranking.CONTIGUITY)
    in_session = (sessions[:, None] == sessions[those]) & (turns[:, None] >= 0) & (turns[those] >= 0)
    near: Bools = (in_session & (np.abs(turns[:, None] - turns[those]) <= reach)).any(axis=1)
    return near
