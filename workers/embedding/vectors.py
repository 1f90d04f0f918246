"""Vectors of texts: each of length 1, and those of texts that are longer than a model reads."""

import zlib
from collections.abc import Iterator, Sequence

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


CONTINUATION = 0b1000_0000
"""The two highest bits of each byte of UTF-8 that is inside a character."""


def split(text: str, limit: int) -> list[str]:
    """Return the text in pieces of at most `limit` bytes of UTF-8, cut after a space where there is one."""
    rest = text.encode()
    pieces = []
    while len(rest) > limit:
        end = _cut(rest, limit)
        pieces.append(rest[:end].decode())
        rest = rest[end:]
    return [*pieces, rest.decode()]


def _cut(text: bytes, limit: int) -> int:
    space = text.rfind(b" ", limit // 2, limit)
    if space >= 0:
        return space + 1
    while text[limit] & 0b1100_0000 == CONTINUATION:
        limit -= 1
    return limit


def batches(pieces: Sequence[str], most_texts: int, most_bytes: int) -> Iterator[list[str]]:
    """Yield the pieces in order, in lists of so many texts and bytes of UTF-8 at most."""
    batch: list[str] = []
    size = 0
    for piece in pieces:
        length = len(piece.encode())
        if batch and (len(batch) == most_texts or size + length > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(piece)
        size += length
    if batch:
        yield batch


def mean(vectors: Vectors, pieces: Sequence[Sequence[str]]) -> Vectors:
    """Return one vector a text from one a piece: the mean, weighted by the pieces' bytes."""
    # An empty piece weighs 1, for no weight at all has no mean.
    weights = np.array([max(len(piece.encode()), 1) for parts in pieces for piece in parts], np.float32)
    counts = [len(parts) for parts in pieces]
    starts = np.cumsum([0, *counts[:-1]])
    sums = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
    return np.asarray(sums / np.add.reduceat(weights, starts)[:, None], np.float32)
