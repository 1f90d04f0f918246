"""Score gains of facts from their links, and from entities that a question names."""

from collections.abc import Collection, Sequence

import numpy as np

from workers.core.arrays import Floats, Ints
from workers.core.names import plain

HOPS = (1.0, 0.7, 0.5, 0.35)
"""Share of a fact's relevance that counts that many links away."""

NAMED = 0.3
"""Gain of a fact about an entity that the question names; times the weight, of a related one.

A fact without entity gains as much if its first word is a name in the question: mostly its subject or speaker. Chosen
from 0 to 0.4 on conversations, together with the weight of similarity, and checked on others: there the first words add
3.5 points of recall@10 with hashing, 2.6 with MiniLM. Of 47 questions about the sample, as many find their answer in
the first ten, and two fewer in first place.
"""


def link_gains(relevance: Floats, reached: Ints, seeds: Ints, factors: Floats) -> Floats:
    """Return what each fact gains from its links: at least a share of the relevance of the facts it is linked with.

    No fact overtakes the one that it was reached from, and mutual links do not add up.

    Args:
        relevance: n scores.
        reached: indexes of m facts that a walk along links reached.
        seeds: indexes of the facts where each of those walks started.
        factors: each walk's hop factor times the strengths of its links, in [0, 1].
    """
    least = np.zeros(len(relevance))
    np.maximum.at(least, reached, factors * relevance[seeds])
    gain: Floats = np.maximum(least - relevance, 0.0)
    return gain


def begins_with_name(first: Sequence[str], names: Collection[str]) -> Floats:
    """Return 1 for each text whose first word, in the form of `names.plain`, is one of the names, else 0."""
    return np.array([float(plain(word) in names) for word in first]) if names else np.zeros(len(first))


def hop_factors(hops: Ints, strengths: Floats) -> Floats:
    """Return the share of relevance that counts at the end of walks of that many hops and link strengths."""
    shares: Floats = np.array(HOPS)[hops] * strengths
    return shares
