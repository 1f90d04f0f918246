"""Weighing: the most promising candidates of all arms are read, and those that no rule hides are scored together."""

from dataclasses import dataclass

import numpy as np

from workers.context import Context
from workers.core.arrays import Bools, Vectors
from workers.core.ranking import CONTIGUITY
from workers.memory.decay_rules import hygiene
from workers.memory.recall import scoring
from workers.memory.recall.arms import Found
from workers.memory.recall.graph import Surroundings, surroundings
from workers.memory.recall.question import Question
from workers.memory.recall.scoring import Scores
from workers.storage import candidates, facts
from workers.storage.candidates import Candidates, Scope
from workers.storage.connection import Connection, keep_plans
from workers.storage.namespaces import Namespace

WEIGHED = (60, 100)
"""How many of both arms' candidates are read: three times as many as are wanted, within these.

Measured on conversations of 600 turns, 100 of which 30 bring their neighbours take a tenth longer; for ten results they
find 0.1 points more of the evidence with the hashing embedder, 0.3 with MiniLM, and 0.3 fewer for twenty.
"""

NEIGHBOURS_OF = (20, 30)
"""How many of the best bring the facts told just before and after them: as many as are wanted, within these."""

TOO_UNLIKE = "not similar enough"


@dataclass(frozen=True, slots=True)
class Weighed:
    """Candidates that may be seen, with their scores and what brought them, and those that a rule hides."""

    seen: Candidates
    hidden: Candidates
    scores: Scores
    found_by: list[str]
    around: Surroundings


def weigh(
    context: Context,
    db: Connection,
    tenant: Namespace,
    question: Question,
    found: Found,
    query: Vectors | None,
    scope: Scope,
) -> Weighed:
    """Return the most promising candidates of both arms, and whom the best of them bring, with their scores.

    Those are the neighbours in the talk, what they are linked with, and what is about the entities that are named.
    """
    best = found.promising(_within(WEIGHED, 3 * question.limit))
    bringing = list(best)[: _within(NEIGHBOURS_OF, question.limit)]
    around = surroundings(context, db, tenant, question, best, scope)
    keep_plans(db)
    beside = facts.neighbours(db, tenant.id, bringing, len(CONTIGUITY))
    brought = around.brought
    ids = list(dict.fromkeys([*best, *beside, *brought]))
    read = candidates.weigh(db, tenant.id, ids, scoring.pooled_queries(context, query), scope)
    seen = read[_visible(read)]
    cosines = scoring.similarities(seen, query)
    by_graph = {id_: what for id_, what in brought.items() if id_ not in best}
    found_by = np.array([found.brought(id_, by_graph) for id_ in seen["id"]], dtype=object)
    # What a link or an entity leads to may be unlike.
    by_meaning = (found_by == "meaning") & np.array([id_ not in brought for id_ in seen["id"]], dtype=np.bool_)
    unlike = by_meaning & (cosines < scoring.least_similarity(context, question.min_similarity))
    seen["left_out"][unlike] = TOO_UNLIKE
    hidden = np.concatenate([read[~_visible(read)], seen[unlike]])
    seen, cosines = seen[~unlike], cosines[~unlike]
    half_life = hygiene(context, tenant.settings).half_life
    scores = scoring.score(context, seen, found, cosines, around, question.preferences, half_life, scope.now)
    return Weighed(seen, hidden, scores, found_by[~unlike].tolist(), around)


def _visible(read: Candidates) -> Bools:
    return np.array([rule is None for rule in read["left_out"]], dtype=np.bool_)


def _within(bounds: tuple[int, int], wished: int) -> int:
    least, most = bounds
    return min(max(wished, least), most)
