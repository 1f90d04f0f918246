"""What facts gain from those that they are linked with, and from the entities that a question names."""

import numpy as np

from workers.core.arrays import Floats, Ints

HOPS = (1.0, 0.7, 0.5, 0.35)
"""What counts of a fact's relevance so many links away from it (C-S20)."""

NAMED = 0.2
"""What a fact gains from being about an entity that the question names; times the weight, from a related one.

Measured on conversations with the speakers as entities, each of them gains by it, and a little more by 0.3. But facts
of which nobody said whom they are about must not fall behind.
"""


def lift(relevance: Floats, reached: Ints, seeds: Ints, factors: Floats) -> Floats:
    """Return what each fact gains from its links: it counts at least as a share of what it is linked with.

    So no fact gets ahead of the one that brought it, and those that are linked with each other do not add up.

    Args:
        relevance: n scores.
        reached: places of m facts that a walk along links came to.
        seeds: places of the facts where each of those walks began.
        factors: each walk's hop factor times the strengths of its links, in [0, 1].
    """
    least = np.zeros(len(relevance))
    np.maximum.at(least, reached, factors * relevance[seeds])
    gain: Floats = np.maximum(least - relevance, 0.0)
    return gain


def factors(hops: Ints, strengths: Floats) -> Floats:
    """Return what counts of a fact's relevance at the end of walks of so many hops, given their links' strengths."""
    shares: Floats = np.array(HOPS)[hops] * strengths
    return shares
