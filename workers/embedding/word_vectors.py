"""Static vectors of single words: what a word says by itself, and which words of a text mean about the same.

They are those that the static embedder adds up, learnt from a model: the longer the vector of a word, the more the word
decides about the meaning of a text.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workers.core.arrays import Floats, Vectors
from workers.core.fidelity import normalise
from workers.core.names import folded
from workers.core.summary import ENGLISH_STOP_WORDS
from workers.embedding.wordpiece import encode

PIECES = Path(__file__).parent / "weights" / "pieces.npy"
"""Vectors of the vocabulary's pieces, in 8 bits; made by `tests/benchmarks/pieces.py` and `distil.py`."""

LATIN_WORD = re.compile("[a-z0-9\u00df-\u024f]+")
"""Words in other scripts fall into pieces of one letter each, whose vectors say nothing."""

KNOWN = 20_000
"""Number of recent words whose vectors are kept; they take about 9 MB."""

_recent: dict[str, bytes] = {}
"""The vectors of length 1 of recent words, in half precision."""

USUAL_WEIGHT = 77_000.0
"""The weight of words without such a vector: the median of the words of questions (LoCoMo 1-5, BEAM-100K 1-10)."""


@cache
def pieces() -> NDArray[np.int8]:
    """Return the pieces' (30522, 128) vectors, memory-mapped: all processes of a machine share the pages they use."""
    return np.asarray(np.load(PIECES, mmap_mode="r"))


def sums(texts: Sequence[str]) -> Vectors:
    """Return the (n, 128) sums of the vectors of the pieces of n texts or words."""
    vectors = np.zeros((len(texts), pieces().shape[1]), np.float32)
    for row, numbers in enumerate(encode(texts)):
        vectors[row] = pieces()[numbers].sum(axis=0, dtype=np.int32)
    return vectors


def of_words(words: Sequence[str]) -> Vectors:
    """Return the same sums for n words, piece by piece, in a sixth of the time: words have few pieces, texts many."""
    numbers = encode(words)
    vectors = np.zeros((len(words), pieces().shape[1]), np.float32)
    for place in range(max(map(len, numbers), default=0)):
        rows = [row for row, one in enumerate(numbers) if len(one) > place]
        vectors[rows] += pieces()[[numbers[row][place] for row in rows]]
    return vectors


def weights(words: Sequence[str], vectors: Vectors) -> Floats:
    """Return how much each of n words says, given their (n, 128) vectors: the squared lengths."""
    latin = np.array([LATIN_WORD.fullmatch(word) is not None for word in words], np.bool_)
    lengths = np.square(vectors, dtype=np.float64).sum(axis=1)
    return np.where(latin & (lengths > 0), lengths, USUAL_WEIGHT)


def most_similar(vectors: Vectors, texts: Sequence[str]) -> Floats:
    """Return the greatest cosine of each of k words with a word of each of n texts, (n, k), given (k, 128) vectors.

    Negative ones are 0, as are those of texts without words in Latin letters.
    """
    said = [[word for word in LATIN_WORD.findall(folded(text)) if word not in ENGLISH_STOP_WORDS] for text in texts]
    found = np.zeros((len(texts), len(vectors)))
    if not any(said):
        return found
    cosines = _units([word for words in said for word in words]) @ normalise(vectors).T
    end = 0
    for row, words in enumerate(said):
        if words:
            begin, end = end, end + len(words)
            found[row] = cosines[begin:end].max(axis=0)
    return np.clip(found, 0.0, 1.0)  # half precision may exceed 1


def _units(words: Sequence[str]) -> Vectors:
    """Return the vectors of n words with length 1; those of recent words are not computed again."""
    known = {word: vector for word in words if (vector := _recent.get(word))}
    if unknown := [word for word in dict.fromkeys(words) if word not in known]:
        computed = normalise(of_words(unknown)).astype(np.float16)
        known |= zip(unknown, map(bytes, computed), strict=True)
        if len(_recent) > KNOWN:
            _recent.clear()
        _recent.update((word, known[word]) for word in unknown)
    packed = b"".join(known[word] for word in words)
    return np.frombuffer(packed, np.float16).reshape(len(words), -1).astype(np.float32)
