"""The answer: the facts that a recall returns, in order, with their scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import fidelity
from workers.core.arrays import Ints
from workers.core.passages import Passage
from workers.core.tiers import Tier
from workers.memory.lifetime import Ending, endings
from workers.memory.namespace_settings import hygiene, rules_of
from workers.memory.recall.scoring import Scores
from workers.storage.candidates import Candidate, Candidates, Described, Description
from workers.storage.namespaces import Namespace


@dataclass(slots=True)  # as `Description`
class Result(Description):
    """One recalled fact as every interface shows it."""

    score: float
    relevance: float | None
    found_by: str
    passage: Passage | None
    tier: str
    fidelity: str
    ends_at: datetime | None
    ends_for: str | None
    explain: dict[str, Any] | None
    namespace: str | None = None
    outdated_by: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """The results of a recall, best first; whether vectors were searched; and what was left out, if requested.

    `deep` is the number of facts in deep memory that fit clearly better than the results, if it was looked for. `ended`
    says, if the answer is doubtful, whether decay ended any facts of each namespace, in deep memory and outside it.
    `uncertain` are the namespaces and ids of results that do not count as used, since little is known of a small
    namespace; a recall does not touch them.
    """

    results: list[Result]
    by_meaning: bool
    reranked: bool | None = None
    left_out: list[dict[str, Any]] | None = None
    why: dict[str, Any] | None = None
    deep: int | None = None
    uncertain: frozenset[tuple[str, UUID]] = frozenset()
    ended: Sequence[tuple[str, tuple[bool, bool]]] | None = None


PARTS = (
    "fit", "text", "similarity", "contiguity", "graph", "named", "role", "salience", "prior", "factor", "outstanding",
    "newer",
)  # fmt: skip
"""The parts of a score, as explanations list them."""

_fields = attrgetter(*Description.__slots__)


def silent_since(context: Context, tenant: Namespace, now: datetime) -> datetime | None:
    """Return the instant since which an unused permanent episode is stale; None if none ever is."""
    days = hygiene(context, tenant.settings).stale_days
    return None if math.isinf(days) else now - timedelta(days=days)


def endings_of(context: Context, tenant: Namespace, shown: Described) -> dict[UUID, Ending]:
    """Return the endings of the live facts, by id."""
    return endings(shown.live, shown.anchors, rules_of(context, hygiene(context, tenant.settings)))


def order(found: Candidates, scores: Scores) -> Ints:
    """Return indexes of candidates, best first; ties go to the warmer, then to the newer fact."""
    return np.lexsort((-found["stated_at"], found["tier"], -scores.total))


def result(
    one: Candidate,
    shown: Description,
    ending: Ending,
    tier: int,
    score: float,
    found_by: str,
    relevance: float | None = None,
    passage: Passage | None = None,
    explain: dict[str, Any] | None = None,
    namespace: str | None = None,
    outdated_by: Sequence[UUID] = (),
) -> Result:
    """Return a candidate as a result."""
    return Result(
        ends_at=ending.at,
        ends_for=ending.reason,
        found_by=found_by,
        passage=passage,
        score=round(score, 6),
        relevance=None if relevance is None else round(relevance, 4),
        tier=Tier(tier).name.lower(),
        fidelity=fidelity.name(int(one["fidelity"])),
        explain=explain,
        namespace=namespace,
        outdated_by=[str(id_) for id_ in outdated_by] or None,
        **dict(zip(Description.__slots__, _fields(shown), strict=True)),
    )


def score_parts(place: int, scores: Scores, ranks: dict[str, Ints], outdated: Sequence[UUID] = ()) -> dict[str, Any]:
    """Return the parts of a score, its rank in each arm and without decay (1 is best), and the results it updates.

    score = ((fit + contiguity + graph + named) * role * (1 + salience) + prior) * factor + outstanding + newer
    + reranked, where fit is made of text and similarity.
    """
    return {
        **{name: round(float(getattr(scores, name)[place]), 6) for name in PARTS},
        **_by_reranker(place, scores),
        "updates": [str(id_) for id_ in outdated],
        **{name: int(values[place]) for name, values in ranks.items()},
    }


def _by_reranker(place: int, scores: Scores) -> dict[str, float]:
    """Return what a candidate gained by the reranker and the reranker's score, if it was sent there."""
    if scores.reranked is None or scores.rerank_score is None or np.isnan(scores.rerank_score[place]):
        return {}
    return {
        "reranked": round(float(scores.reranked[place]), 6),
        "rerank_score": round(float(scores.rerank_score[place]), 6),
    }


def ranks(scores: Scores) -> dict[str, Ints]:
    """Return each candidate's rank by text, by similarity, and by score without decay."""
    own = scores.total - scores.newer - scores.outstanding - (0.0 if scores.reranked is None else scores.reranked)
    return {
        "text_rank": _rank(scores.text),
        "similarity_rank": _rank(scores.similarity),
        "rank_without_decay": _rank(own / scores.factor - scores.prior),
    }


def _rank(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Ints:
    places: Ints = np.empty(len(values), dtype=np.int64)
    places[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return places
