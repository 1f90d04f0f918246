"""Texts longer than a model reads: cut into pieces, and the pieces' vectors averaged."""

from collections.abc import Iterator, Sequence

import numpy as np

from workers.core.arrays import Vectors

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
