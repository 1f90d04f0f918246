"""Generated vectors like those of language models, in clusters of similar ones."""

from functools import lru_cache

import numpy as np

from workers.core.arrays import Vectors
from workers.core.fidelity import normalise

DIMS = 256
CLUSTERS = 400
SEED = 23
QUERY_NOISE = 0.7


@lru_cache(maxsize=1)
def centres() -> Vectors:
    """Return the (clusters, dims) centres, the same in every process."""
    return _directions(np.random.default_rng(SEED), CLUSTERS)


def clustered(rng: np.random.Generator, count: int) -> Vectors:
    """Return (count, dims) unit vectors, whose cosine is about 0.5 within a cluster and 0 across."""
    return normalise(centres()[rng.integers(CLUSTERS, size=count)] + _directions(rng, count))


def queries(rng: np.random.Generator, facts: Vectors) -> Vectors:
    """Return a query near each of these vectors, at a cosine of about 0.8."""
    return normalise(facts + QUERY_NOISE * _directions(rng, len(facts)))


def _directions(rng: np.random.Generator, count: int) -> Vectors:
    return normalise(rng.standard_normal((count, DIMS), dtype=np.float32))
