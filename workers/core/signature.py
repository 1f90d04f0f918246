"""A vector's 128-byte signature: the signs of 1,024 fixed random projections, for approximate search.

The share of differing signs estimates the angle between two vectors (Charikar, "Similarity estimation techniques from
rounding algorithms", 2002). Keeping the query's projections as floats estimates the cosine better than signs alone.

The projections form a tight frame, so all directions are measured equally often (Ji, Li, Yan, Zhang and Tian,
"Super-bit locality-sensitive hashing", 2012). On vectors of real conversations this lowers the error of the estimate
from 0.039 to 0.023.
"""

from functools import lru_cache

import numpy as np

from workers.core.arrays import Bytes, Floats, Vectors

BITS = 1_024
SEED = 20_261_121
"""Must never change: every stored signature depends on it."""


@lru_cache(maxsize=4)
def projection(dims: int) -> Vectors:
    """Return the (1,024, dims) projection matrix for vectors of that many dimensions.

    Its columns are orthogonal, or its rows where there are more dimensions than bits. Its rows have the length of rows
    of standard normal numbers.
    """
    # The legacy generator: NumPy guarantees that its numbers never change.
    normal = np.random.RandomState(SEED).normal(scale=1 / np.sqrt(BITS), size=(BITS, dims))
    return (_orthonormal(normal) * np.sqrt(max(BITS, dims))).astype(np.float32, order="C")


def _orthonormal(matrix: Floats) -> Floats:
    """Return a matrix of that shape and of random orientation whose shorter side is orthonormal."""
    if matrix.shape[0] < matrix.shape[1]:
        return _orthonormal(matrix.T).T
    # Gram-Schmidt as one triangular system: several times faster than a QR decomposition
    return np.linalg.solve(np.linalg.cholesky(matrix.T @ matrix), matrix.T).T


NEAR_ZERO = 1e-4
"""Projections of unit vectors below this are computed again: the error of single precision is below 1e-5."""


AT_ONCE = 256
"""Vectors that are projected together: their projections fit into the processor's cache."""


def encode(vectors: Vectors) -> Bytes:
    """Return the (n, 128) signatures of (n, dims) unit vectors.

    A vector has the same signature alone as among others. In single precision the sum of a product depends on the size
    of the batch, which would decide the sign of one projection in a hundred million.
    """
    starts = range(0, max(len(vectors), 1), AT_ONCE)
    return np.concatenate([_encoded(vectors[start : start + AT_ONCE]) for start in starts])


def _encoded(vectors: Vectors) -> Bytes:
    matrix = projection(vectors.shape[1])
    projected = vectors @ matrix.T
    near = np.abs(projected) < NEAR_ZERO
    if near.any():
        rows, bits = np.nonzero(near & vectors.any(axis=1, keepdims=True))
        projected[rows, bits] = np.sum(vectors[rows].astype(np.float64) * matrix[bits], axis=1)
    return np.packbits(projected > 0, axis=1)


def estimate(query: Vectors, signatures: Bytes) -> Floats:
    """Return the estimated cosine of a (dims,) unit query with each of (n, 128) signatures, in [-1, 1]."""
    projected = projection(query.shape[0]) @ query
    signs = np.unpackbits(signatures, axis=1).astype(np.float32) * 2 - 1
    cosines: Floats = (signs @ projected).astype(np.float64) * (np.sqrt(np.pi / 2) / BITS)
    return np.clip(cosines, -1.0, 1.0)


def cosines(differing_bits: Floats) -> Floats:
    """Return the estimated cosines of vectors whose signatures differ in that many of the 1,024 bits."""
    return np.cos(np.pi * differing_bits / BITS)
