"""The floor of relevance: which candidates an answer may include, and whether any answers the question."""

import numpy as np

from workers.context import Context
from workers.core import relevance, updates
from workers.core.arrays import Bools, Floats, Ints
from workers.memory.recall.arms import Found
from workers.memory.recall.graph import near_in_session
from workers.memory.recall.question import Asked, Question
from workers.memory.recall.scoring import Scored

BY_WORDS = 0.002
"""The default floor without vectors: relevance by words alone is lower."""

SHARE_OF_FLOOR = 1 / 3
"""Share of the floor that further results need if one reaches it: additional evidence often matches less well."""

SHARE_OF_BEST = 0.25
"""Share of the best result's relevance that further results need."""

DOUBTFUL = 0.8
"""Relevance of the best result below which an ordinary recall also looks into deep memory.

In whole conversations the best result is below it for a quarter of the questions whose evidence is found, and for 40 to
62 % of the others (LoCoMo 1-5, BEAM-100K 1-10, REALTALK 1-5).
"""

TOO_IRRELEVANT = "not relevant enough"


def minimum(asked: Asked, found: Found) -> float:
    """Return the minimum relevance of the best result, which is lower if vectors were not searched."""
    usual = configured(asked.context, asked.question)
    if usual is None:
        usual = relevance.of_embedder(asked.tenant.embedder or "").floor(found.question)
    if asked.question.min_relevance is not None or found.near:
        return usual
    return min(usual, BY_WORDS) if found.text.stems.lexemes else 0.0


def minimum_for_use(asked: Asked, found: Found) -> float:
    """Return the minimum relevance of the best result of an answer that counts as used: by default, more if small."""
    if configured(asked.context, asked.question) is not None or not found.near:
        return minimum(asked, found)
    return relevance.of_embedder(asked.tenant.embedder or "").certain(found.question)


def configured(context: Context, question: Question) -> float | None:
    """Return the floor of the question, else of the settings; None if neither has one."""
    return context.settings.min_relevance if question.min_relevance is None else question.min_relevance


def relevant_enough(question: Question, found: Found, scored: Scored, order: Ints, floor: float) -> Bools:
    """Return which of n candidates may be in the answer; `order` has their indexes, best first.

    A floor of the question applies to each candidate. By default there are no results unless one of the first reaches
    the floor; then others need less, and none if they are neighbours in the conversation, linked, or make a result
    outdated. Those that stand above what they make outdated count as the first only if they would be without it.
    """
    rows, relevances = scored.seen, scored.relevances
    enough = relevances >= floor
    if question.min_relevance is not None:
        return enough
    unmoved = scored.scores.total - scored.scores.newer
    first = order[np.argsort(-unmoved[order], kind="stable")][: relevance.TOP]
    if not enough[first].any():
        return np.zeros(len(rows), np.bool_)
    best = float(relevances[first].max())
    share = relevance.ODDS_OF_BEST * found.question.few
    close = (relevances >= relevance.KEPT) | (_odds(relevances) >= share * _odds(np.array(best)))
    nearly = close & (relevances >= max(SHARE_OF_FLOOR * floor, SHARE_OF_BEST * best))
    fits: Bools = nearly | near_in_session(rows, enough & close) | scored.around.linked(rows, enough & close)
    return updates.with_newer_of(fits, rows["stated_at"], scored.updates)


def is_doubtful(question: Question, relevances: Floats) -> bool:
    """Return whether deep memory, which was not searched, may have a better answer than results of these relevances."""
    if question.deep or question.looks_back or question.why:
        return False
    return not len(relevances) or (float(relevances.max()) < DOUBTFUL and not question.is_filtered)


def _odds(relevances: Floats) -> Floats:
    return relevances / np.maximum(1 - relevances, relevance.EPSILON)
