"""A vector of length 1 for every text, even for one in which an embedder finds nothing."""

import zlib
from collections.abc import Sequence

import numpy as np

from workers.core.arrays import Vectors
from workers.core.fidelity import normalise


def unit_rows(vectors: Vectors, texts: Sequence[str]) -> Vectors:
    """Return the rows scaled to length 1, with the text's axis in place of a row of zeros."""
    unit = normalise(vectors)
    for row in np.flatnonzero(~unit.any(axis=1)).tolist():
        unit[row, axis(texts[row], unit.shape[1])] = 1
    return unit


def axis(text: str, dims: int) -> int:
    """Return the dimension on which a text without features stands: CRC-32 of its UTF-8, modulo `dims`.

    Equal texts stay equal, others are mostly orthogonal to it, and no process or version changes it.
    """
    return zlib.crc32(text.encode()) % dims
