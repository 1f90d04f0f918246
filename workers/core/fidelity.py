"""Fidelity: how much of a fact's vector is kept: all, means of neighbouring dimensions, or only the signature.

Source: the vector compression of OpenMemory's tiered decay.
"""

from collections.abc import Iterator

import numpy as np

from workers.core.arrays import Vectors

PENDING = 0
FULL = 1
FINGERPRINT = 32_767
"""Values between these two are pooling buckets: 2, 4, 8 … dimensions averaged into one."""

NAMES = ("full", "pooled", "fingerprint", "pending")
POOL_BELOW = 0.7


def name(fidelity: int) -> str:
    """Return the name of a stored fidelity."""
    return {PENDING: "pending", FULL: "full", FINGERPRINT: "fingerprint"}.get(fidelity, "pooled")


def largest_bucket(dims: int, min_dims: int) -> int:
    """Return the widest pooling bucket of vectors of `dims`: a power of two that divides them.

    With powers of two, pooling a pooled vector equals pooling the original.
    """
    bucket = 1
    while dims % (bucket * 2) == 0 and dims // (bucket * 2) >= min_dims:
        bucket *= 2
    return bucket


def ladder(widest: int) -> Iterator[tuple[float, int]]:
    """Yield (retention, bucket) up to `widest`: below 0.7 pairs are pooled, below 1/2 fours, below 1/4 eights."""
    bucket, below = 2, POOL_BELOW
    while bucket <= widest:
        yield below, bucket
        below, bucket = 1 / bucket, bucket * 2


def pool(vectors: Vectors, bucket: int) -> Vectors:
    """Return (n, dims / bucket) means of `bucket` neighbouring dimensions, each row of length 1."""
    rows, dims = vectors.shape
    parts = vectors.reshape(rows, dims // bucket, bucket)
    return normalise(parts.mean(axis=2) if bucket > 1 else vectors)


def normalise(vectors: Vectors) -> Vectors:
    """Return the rows scaled to length 1; rows of zeros stay zeros."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
