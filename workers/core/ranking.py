"""Ranking of results: relevance first, then neighbours in the conversation and in the graph, and a little strength.

Words are scored by Okapi BM25 with Lucene's inverse document frequency (Robertson and Zaragoza, "The Probabilistic
Relevance Framework: BM25 and Beyond", 2009).

By default BM25, as a share of the best or of what the question's commonest words score, and scaled similarity are
fused, which measured better than either alone and than reciprocal rank fusion. Each has half of the weight, unless the
embedder sets a lower share of similarity. Time and strength enter as one bounded term, since multiplying by age hides
correct results. `documented_score` is the source's composite instead.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.names import folded
from workers.core.text import words

K1 = 0.9
B = 0.4
"""Parameters of BM25 for short passages, as in Anserini (Yang, Fang and Lin, 2017): length matters little."""


def inverse_document_frequency(document_frequencies: Ints, documents: int) -> Floats:
    """Return each term's weight: higher for rarer terms, never negative."""
    held = np.minimum(document_frequencies, documents)
    return np.log1p((documents - held + 0.5) / (held + 0.5))


def scores(term_frequencies: Ints, lengths: Ints, weights: Floats, mean_length: float) -> Floats:
    """Return n scores for (n, terms) term frequencies, n lengths in words and the terms' weights."""
    relative_length = lengths / max(mean_length, 1.0)
    saturation = K1 * (1 - B + B * relative_length)
    frequencies = term_frequencies.astype(np.float64)
    gains: Floats = frequencies * (K1 + 1) / (frequencies + saturation[:, None])
    return gains @ weights


STEP = 2e-6
"""Least distance of scores that are shared out again, so that equal ones have an order as well."""


def in_order_of(preferences: Floats, scores: Floats) -> Floats:
    """Return n scores, shared out so that the most preferred one has the highest.

    Equal preferences keep the order of the scores.
    """
    shared: Floats = np.empty(len(scores))
    shared[np.lexsort((-scores, -preferences))] = np.sort(scores)[::-1] - STEP * np.arange(len(scores))
    return shared


EVEN = 0.5
"""Default share of each arm in relevance."""

SHORT, LONG = 40, 200
"""Mean number of words per fact, stems and written forms, where facts are short and where they are long."""

ENOUGH_WORDS = 3
"""Number of the question's commonest words that a fact has to contain to count fully by words.

Where questions paraphrase single statements, the best one by words often shares only a common word with the question.
Of such statements, the first result is right for 67 % of the questions instead of 61 % (MiniLM: 77 instead of 66); on
conversations of four kinds, recall@10 changes by -0.1 to 0.9 points (`quality`). Chosen among 1 to 4.
"""

BRIEF = 10
"""Number of stems above which a question is long, and a fact answers only a part of it."""

LEAST_SPREAD = 0.3
"""Least spread of candidates' similarities for scaling: a few times a signature's error."""

CONTIGUITY = (0.25, 0.2)
"""Share of the scores of facts one and two turns away that a fact gains."""

COVERED = 0.35
"""Share of its own score that is subtracted from this gain: neighbours say what a fact itself does not.

Without it, facts that match well lift each other over single ones. Both were chosen on conversations of four kinds and
are near the best for each; at (0.3, 0.15) without subtraction recall@10 is 1 to 8 points lower, on chats with an
assistant the same.
"""

HOPS = (1.0, 0.7, 0.5, 0.35)
"""Share of a fact's relevance that counts that many links away."""

NAMED = 0.3
"""Gain of a fact about an entity that the question names; times the weight, of a related one.

A fact without entity gains as much if its first word is a name in the question: mostly its subject or speaker. Chosen
from 0 to 0.4 on conversations, together with the weight of similarity, and checked on others: there the first words add
3.5 points of recall@10 with hashing, 2.6 with MiniLM. Of 47 questions about the sample, as many find their answer in
the first ten, and two fewer in first place.
"""

OTHERS = 0.6
"""Factor for what an assistant, a system prompt or a tool said, unless the question asks for it."""

ANSWERED = (
    "recommended", "suggested", "advised", "proposed", "said", "mentioned", "told", "explained", "gave", "listed",
    "outlined", "described", "wrote",
)  # fmt: skip
ASKS_FOR_THE_ANSWER = re.compile(
    r"\b(?:did|had|have|were|was) you\b"
    rf"|\byou (?:\w+ )?(?:{'|'.join(ANSWERED)})\b"
    r"|\byour (?:\w+ )?(?:advice|suggestions?|recommendations?|answers?|explanations?|remed(?:y|ies)|tips?"
    r"|proposals?)\b",
    re.IGNORECASE,
)
"""Questions for something that the assistant said; requests such as "can you" are not."""

PRIOR_WEIGHT = 0.1
FRESHNESS_DAYS = 30.0
DOCUMENTED_FRESHNESS_DAYS = 7.0
DOCUMENTED_WEIGHTS = (0.60, 0.25, 0.15)
DOCUMENTED_MIN_SCORE = 0.3
DOCUMENTED_MIN_COSINE = 1 - (1 / DOCUMENTED_MIN_SCORE - 1) / 2
"""The cosine with the lowest allowed vector score."""

LONG_TERM = {"permanent": 1.2, "stable": 1.1}
"""Factors of `prefer_long_term` for scores of these decay classes."""

RECENT_DAYS = 90.0
ACCESS_BOOST = 0.1
HALF_POINT_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class Vitality:
    """Salience, effective confidence and importance of n facts in [0, 1], and days since last seen."""

    salience: Floats
    confidence: Floats
    importance: Floats
    idle_days: Floats


def by_length(values: tuple[float, float], mean_words: float) -> float:
    """Return the value for a mean fact length, from the values for short and for long facts.

    In between it follows the logarithm of the length.
    """
    short, long = values
    length = math.log(max(mean_words, 1.0) / SHORT) / math.log(LONG / SHORT)
    return short + (long - short) * min(max(length, 0.0), 1.0)


def min_max(values: Floats) -> Floats:
    """Return values scaled to [0, 1]; a single or common value becomes 1."""
    if values.size == 0:
        return values
    low, high = float(values.min()), float(values.max())
    return np.ones_like(values) if high <= low else (values - low) / (high - low)


def enough(weights: Floats) -> float:
    """Return the score by words from which a text counts fully.

    It is about that of a text with the `ENOUGH_WORDS` words of the least weight, and less for a question of many words.
    """
    return float(np.sort(weights)[:ENOUGH_WORDS].sum()) * min(BRIEF / max(len(weights), 1), 1.0)


def fuse(text_scores: Floats, similarities: Floats, meaning: float = EVEN, full: float = 0.0) -> Floats:
    """Return fused scores in [0, 1]: text score as a share of the best, scaled similarity with the share `meaning`.

    The text score is a share of `full` instead if the best is lower.

    An arm without results, all zeros, adds nothing instead of ones; the other then counts half. Similarities that are
    nearly equal are not spread: the error of a signature would decide.
    """
    by_words, by_meaning = bool(text_scores.any()), bool(similarities.any())
    share = meaning if by_words and by_meaning else EVEN
    text = text_scores / max(float(text_scores.max()), full) if by_words else text_scores
    similar = similarities
    if by_meaning:
        high = float(similarities.max())
        similar = 1 - (high - similarities) / max(high - float(similarities.min()), LEAST_SPREAD)
    return (1 - share) * text + share * similar


def contiguity(relevance: Floats, sessions: Ints, turns: Ints) -> Floats:
    """Return what each fact gains from its neighbours: facts of the same session one or two turns away.

    It gains shares of their relevance, as far as these exceed a share of its own. Of several facts of one turn, each
    gains, and the best of them counts as the neighbour.

    Each of n candidates has a code of its session, negative outside sessions, and its place in it, from 0.
    """
    if not len(relevance):
        return np.zeros(0)
    # Keys of different sessions are so far apart that neighbours are always in the same session.
    keys = sessions * (int(turns.max()) + 2 * len(CONTIGUITY) + 1) + turns
    places, place = np.unique(keys, return_inverse=True)
    best = np.zeros(len(places))
    np.maximum.at(best, place, relevance)
    gain = np.zeros(len(relevance))
    for distance, weight in enumerate(CONTIGUITY, start=1):
        for wanted in (keys - distance, keys + distance):
            at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
            gain += weight * np.where(places[at] == wanted, best[at], 0.0)
    return np.where(sessions >= 0, np.maximum(gain - COVERED * relevance, 0.0), 0.0)


def link_gains(relevance: Floats, reached: Ints, seeds: Ints, factors: Floats) -> Floats:
    """Return what each fact gains from its links: at least a share of the relevance of the facts it is linked with.

    No fact overtakes the one that it was reached from, and mutual links do not add up.

    For each of m walks along links, `seeds` has the index of the fact where it starts, `reached` of that where it ends,
    and `factors` its hop factor times the strengths of its links, in [0, 1].
    """
    least = np.zeros(len(relevance))
    np.maximum.at(least, reached, factors * relevance[seeds])
    return np.maximum(least - relevance, 0.0)


def begins_with_name(texts: Sequence[str], names: Collection[str]) -> Floats:
    """Return 1 for each text whose first word, in the form of `names.folded`, is one of the names, else 0."""
    if not names:
        return np.zeros(len(texts))
    first = [words(text)[:1] for text in texts]
    return np.array([float(any(folded(word) in names for word in one)) for one in first])


def hop_factors(hops: Ints, strengths: Floats) -> Floats:
    """Return the share of relevance that counts at the end of walks of that many hops and link strengths."""
    return np.array(HOPS)[hops] * strengths


def prior(vitality: Vitality) -> Floats:
    """Return the bonus for vitality, in [0, 0.1]: enough to break ties, too little to hide relevant facts."""
    freshness = 1 / (1 + np.maximum(vitality.idle_days, 0.0) / FRESHNESS_DAYS)
    alive = (vitality.salience + freshness + vitality.confidence + vitality.importance) / 4
    return PRIOR_WEIGHT * alive


def roles(of: Iterable[str], question: str) -> Floats:
    """Return factors by speaker: the user's statements count most, unless the question asks for others'.

    An empty role counts as the user's.
    """
    others = 1.0 if ASKS_FOR_THE_ANSWER.search(question) else OTHERS
    return np.array([1.0 if role in ("", "user") else others for role in of], dtype=np.float64)


def long_term(decay_classes: Iterable[str]) -> Floats:
    """Return the factors for preferring facts with long-lived decay classes."""
    return np.array([LONG_TERM.get(name, 1.0) for name in decay_classes], dtype=np.float64)


def importance_recency(importance: Floats, confirmed_days: Floats) -> Floats:
    """Return the factors for importance and recency, in [0.56, 1].

    Recent means confirmed within 90 days, or used where use confirms.
    """
    recency = np.clip(1 - confirmed_days / RECENT_DAYS, 0.0, 1.0)
    return (0.7 + 0.3 * importance) * (0.8 + 0.2 * recency)


def documented_score(
    text_scores: Floats, confidence: Floats, seconds_to_expiry: Floats, recalls: Ints, idle_days: Floats
) -> Floats:
    """Return the source's composite: 60 % BM25, 25 % freshness, 15 % confidence, times salience."""
    relevance, fresh, believed = DOCUMENTED_WEIGHTS
    freshness = np.clip(seconds_to_expiry / (DOCUMENTED_FRESHNESS_DAYS * 86_400), 0.0, 1.0)
    composite = relevance * _among_hits(text_scores) + fresh * freshness + believed * confidence
    return np.clip(composite * dynamic_salience(recalls, idle_days), 0.0, 1.0)


def _among_hits(text_scores: Floats) -> Floats:
    """Return text scores of hits scaled to [0, 1]; the others stay 0."""
    hits = text_scores > 0
    scaled = np.zeros_like(text_scores)
    scaled[hits] = min_max(text_scores[hits])
    return scaled


def dynamic_salience(recalls: Ints, idle_days: Floats) -> Floats:
    """Return the source's factor: higher for frequent recalls, lower after long disuse."""
    boost = 1 + ACCESS_BOOST * np.log1p(recalls)
    return boost / (1 + np.maximum(idle_days, 0.0) / HALF_POINT_DAYS)


def vector_score(similarities: Floats) -> Floats:
    """Return the source's vector score 1 / (1 + d), where d is the squared Euclidean distance of unit vectors."""
    distances = 2 * (1 - similarities)
    return 1 / (1 + distances)
