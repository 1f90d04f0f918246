"""The floor of relevance: which candidates an answer may have, and whether anything answers the question at all."""

import numpy as np

from workers.context import Context
from workers.core import ranking, relevance
from workers.core.arrays import Bools, Floats, Ints
from workers.memory.recall.arms import Found
from workers.memory.recall.graph import Surroundings
from workers.memory.recall.question import Question
from workers.storage.candidates import Candidates
from workers.storage.namespaces import Namespace

BY_WORDS = 0.05
"""The default floor where meaning was not searched: words alone make no fact as relevant."""

BESIDE = 1 / 3
"""What share of the floor is enough beside a result that reaches it: further evidence often fits less well."""

OF_BEST = 0.2
"""What share of the best result's relevance is needed: beside a sure answer, what hardly fits is no evidence."""

FIRST = 10
"""The best of so many decides whether anything answers the question, also where fewer are wanted."""

TOO_IRRELEVANT = "not relevant enough"


def relevances(tenant: Namespace, found: Found, held: Bools, cosines: Floats) -> Floats:
    """Return the relevance of n candidates, each in [0, 1], given which of k stems each holds, (n, k)."""
    asked = found.text.stems.question.among(len(found.near))
    return relevance.relevance(asked, held.sum(axis=1), cosines, relevance.of_embedder(tenant.embedder or ""))


def least(context: Context, tenant: Namespace, question: Question, found: Found) -> float:
    """Return the relevance that the best result must have, which is less where meaning was not searched."""
    usual = usual_least(context, tenant.embedder or "", question, found.text.stems.question.mean_words)
    if question.min_relevance is not None or found.near:
        return usual
    return min(usual, BY_WORDS) if found.text.stems.lexemes else 0.0


def usual_least(context: Context, embedder: str, question: Question, mean_words: float) -> float:
    """Return the floor where both arms search: as asked, else as set, else what the embedder deserves."""
    chosen = context.settings.min_relevance if question.min_relevance is None else question.min_relevance
    return relevance.floor_of_embedder(embedder, mean_words) if chosen is None else chosen


def fitting(
    question: Question, rows: Candidates, relevances: Floats, order: Ints, around: Surroundings, floor: float
) -> Bools:
    """Return which of n candidates may be in the answer, given in their `order`, best first.

    A floor that the question itself asks for cuts each of them. By default none is in it unless one of the first
    reaches the floor; if one does, others need less, and nothing at all if they were stated just before or after one
    that does, or are linked with it.
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
    """Return which of n candidates were stated just before or after one of `those`, in the same session."""
    turns, reach = rows["turn"], len(ranking.CONTIGUITY)
    in_session = (rows["session"][:, None] == rows["session"]) & (turns[:, None] >= 0) & (turns >= 0)
    near: Bools = (in_session & (np.abs(turns[:, None] - turns) <= reach))[:, those].any(axis=1)
    return near
