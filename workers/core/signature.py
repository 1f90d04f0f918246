"""A vector's 128-byte signature: the signs of 1,024 fixed random projections, enough to find it by meaning.

The angle between two vectors shows in how many signs differ (Charikar, "Similarity estimation techniques from
rounding algorithms", 2002). Keeping the query's projections as floats estimates the cosine better than signs alone.

The projections are as different from each other as can be (a tight frame), so that no direction is measured often and
another seldom (Ji, Li, Yan, Zhang and Tian, "Super-bit locality-sensitive hashing", 2012). Of the vectors of real
conversations, estimates then err by 0.023 instead of 0.039.
"""

from functools import lru_cache

import numpy as np

from workers.core.arrays import Bytes, Floats, Vectors

BITS = 1_024
SEED = 20_261_121
"""Fixed for ever: another seed makes every stored signature meaningless."""


@lru_cache(maxsize=4)
def projection(dims: int, seed: int = SEED) -> Vectors:
    """Return the (1,024, dims) matrix that all signatures of that many dimensions share.

    Its columns are orthogonal, or its rows where there are more dimensions than bits; its rows are as long as those of
    standard normal numbers.
    """
    # The legacy generator, whose numbers NumPy promises never to change.
    normal = np.random.RandomState(seed).normal(scale=1 / np.sqrt(BITS), size=(BITS, dims))
    matrix: Vectors = (_orthonormal(normal) * np.sqrt(max(BITS, dims))).astype(np.float32, order="C")
    return matrix


def _orthonormal(matrix: Floats) -> Floats:
    """Return a matrix of that shape and of random orientation, the shorter of whose sides is orthonormal."""
    if matrix.shape[0] < matrix.shape[1]:
        return _orthonormal(matrix.T).T
    # Gram and Schmidt's columns, as one triangular system: several times quicker than a QR decomposition
    columns: Floats = np.linalg.solve(np.linalg.cholesky(matrix.T @ matrix), matrix.T).T
    return columns


def encode(vectors: Vectors, seed: int = SEED) -> Bytes:
    """Return the (n, 128) signatures of (n, dims) vectors."""
    return np.packbits(vectors @ projection(vectors.shape[1], seed).T > 0, axis=1)


def estimate(query: Vectors, signatures: Bytes, seed: int = SEED) -> Floats:
    """Return the estimated cosine of a (dims,) unit query with each of (n, 128) signatures, in [-1, 1]."""
    projected = projection(query.shape[0], seed) @ query
    signs = np.unpackbits(signatures, axis=1).astype(np.float32) * 2 - 1
    cosines: Floats = (signs @ projected).astype(np.float64) * (np.sqrt(np.pi / 2) / BITS)
    return np.clip(cosines, -1.0, 1.0)


def cosines(differing_bits: Floats) -> Floats:
    """Return the estimated cosines of vectors whose signatures differ in so many of the 1,024 bits."""
    estimated: Floats = np.cos(np.pi * differing_bits / BITS)
    return estimated
