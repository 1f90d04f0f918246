"""Vectors of texts: unit length, and means over the pieces of texts that are too long for a model."""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from workers.core.arrays import Vectors
from workers.core.fidelity import normalise

KNOWN_WORDS, LONGEST_KNOWN = 16_384, 32
"""Number of recent words, each of at most so many letters, that are not split again; they take about 5 MB."""

REQUEST_BYTES = 300_000
"""OpenAI accepts 300,000 tokens per request, and a byte is at most one token."""


def unit_rows(vectors: Vectors, texts: Sequence[str]) -> Vectors:
    """Return the rows scaled to length 1; a row of zeros becomes the text's axis."""
    unit = normalise(vectors)
    for row in np.flatnonzero(~unit.any(axis=1)).tolist():
        unit[row, axis(texts[row], unit.shape[1])] = 1
    return unit


def axis(text: str, dims: int) -> int:
    """Return the dimension of a text without features: CRC-32 of its UTF-8, modulo `dims`.

    Equal texts get equal axes, different ones mostly orthogonal ones, in all processes and versions.
    """
    return zlib.crc32(text.encode()) % dims


def split(text: str, limit: int) -> list[str]:
    """Return the text in pieces of at most `limit` bytes of UTF-8, cut after a space if possible."""
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
    while text[limit] & 0b1100_0000 == 0b1000_0000:  # noqa: PLR2004 - a continuation byte of UTF-8
        limit -= 1
    return limit


def batches(pieces: Sequence[str], most_texts: int, most_bytes: int) -> Iterator[list[str]]:
    """Yield the pieces in order, in lists of at most `most_texts` texts and `most_bytes` bytes of UTF-8."""
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
    """Return one vector per text from one per piece: the mean, weighted by the pieces' bytes."""
    # An empty piece weighs 1: a mean needs weights above 0.
    weights = np.array([max(len(piece.encode()), 1) for parts in pieces for piece in parts], np.float32)
    counts = [len(parts) for parts in pieces]
    starts = np.cumsum([0, *counts[:-1]])
    sums = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
    return np.asarray(sums / np.add.reduceat(weights, starts)[:, None], np.float32)
