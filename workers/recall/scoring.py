"""Scoring: candidates' rows become arrays, arrays become scores, and each score keeps its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from workers.context import Context
from workers.core import confidence, ranking, signature, tiers
from workers.core.arrays import Floats, Ints, Vectors
from workers.core.fidelity import pool
from workers.core.ranking import Vitality
from workers.recall.arms import TextArm
from workers.storage import signatures, vectors
from workers.storage.candidates import Candidate

NO_VECTOR = -1.0


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of n candidates and their parts, one array each."""

    total: Floats
    text: Floats
    similarity: Floats
    contiguity: Floats
    prior: Floats


def similarities(found: Sequence[Candidate], query: Vectors | None) -> Floats:
    """Return n cosines with the (dims,) query: with the full vector where it is kept, else estimated by signature.

    A pooled vector's cosine is averaged with that estimate: measured, the two together lose nothing against the full
    vector, while the pooled one alone loses more than the signature alone. A fact without either, or a recall
    without query vector, gets the lowest similarity there is.
    """
    if query is None or not found:
        return np.zeros(len(found))
    cosines = np.full(len(found), NO_VECTOR)
    signed = [i for i, one in enumerate(found) if one.signature is not None]
    if signed:
        cosines[signed] = signature.estimate(query, signatures.unpack([found[i].signature or b"" for i in signed]))
    for dims, (places, stored) in vectors.unpack([one.vector for one in found]).items():
        if len(query) % dims == 0:
            exact = stored @ pool(query[None, :], len(query) // dims)[0]
            cosines[places] = exact if dims == len(query) else (exact + cosines[places]) / 2
    known = cosines > NO_VECTOR
    return np.where(known, cosines, cosines[known].min(initial=0.0))


def score(context: Context, found: Sequence[Candidate], text: TextArm, cosines: Floats, now: datetime) -> Scores:
    """Return the scores of candidates: fused relevance, neighbours' share, and the bounded prior."""
    text_scores = np.array([text.scores.get(one.id, 0.0) for one in found])
    if context.settings.ranking == "documented":
        return _documented(found, text_scores, cosines, now)
    relevance = ranking.fuse(text_scores, cosines)
    near = ranking.contiguity(relevance, *_places(found))
    alive = ranking.prior(_vitality(context, found, now))
    return Scores(relevance + near + alive, text_scores, cosines, near, alive)


def _documented(found: Sequence[Candidate], text_scores: Floats, cosines: Floats, now: datetime) -> Scores:
    """Return the sources' scores: the composite where words match, the vector's own score where they do not."""
    instant = now.timestamp()
    idle_days = (instant - np.array([one.last_seen_at for one in found])) / confidence.DAY
    composite = ranking.documented_score(
        text_scores,
        np.array([one.confidence for one in found]),
        np.array([one.expires_at for one in found]) - instant,
        np.array([one.recall_count for one in found], dtype=np.int64),
        idle_days,
    )
    by_vector = ranking.vector_score(cosines)
    by_vector = np.where(by_vector >= ranking.DOCUMENTED_MIN_SCORE, by_vector, 0.0)
    nothing = np.zeros(len(found))
    return Scores(np.where(text_scores > 0, composite, by_vector), text_scores, cosines, nothing, nothing)


def _places(found: Sequence[Candidate]) -> tuple[Ints, Ints]:
    """Return a code for each candidate's session, negative for none, and its turn."""
    codes: dict[object, int] = {}
    sessions = [
        -1 if one.session is None or one.turn is None else codes.setdefault(one.session, len(codes)) for one in found
    ]
    turns = [one.turn or 0 for one in found]
    return np.array(sessions, dtype=np.int64), np.array(turns, dtype=np.int64)


def _vitality(context: Context, found: Sequence[Candidate], now: datetime) -> Vitality:
    instant = now.timestamp()
    coactivations = np.array([one.coactivations for one in found], dtype=np.int64)
    strength = tiers.strength(np.array([one.base for one in found]), coactivations)
    idle_days = (instant - np.array([one.last_seen_at for one in found])) / confidence.DAY
    confirmed_days = (instant - np.array([one.confirmed_at for one in found])) / confidence.DAY
    return Vitality(
        salience=strength * tiers.retention(tiers.curve(strength, coactivations), idle_days),
        confidence=confidence.effective_confidence(
            np.array([one.confidence for one in found]), confirmed_days, context.settings.confidence_half_life
        ),
        importance=np.array([one.importance for one in found]),
        idle_days=idle_days,
    )


def current_tier(one: Candidate, now: datetime) -> int:
    """Return how cold a fact is: as cold as the clock says, or as the last pass did if that looked further ahead."""
    strength = tiers.strength(np.array([one.base]), np.array([one.coactivations]))
    curve = tiers.curve(strength, np.array([one.coactivations]))
    age_days = np.array([(now.timestamp() - one.last_seen_at) / confidence.DAY])
    return max(one.tier, int(tiers.tier(curve, age_days)[0]))
