"""The embedder that needs no model: counts of character n-grams, hashed into a few hundred dimensions.

The counts are those of scikit-learn's `HashingVectorizer` with the analyzer `char_wb`, without loading scikit-learn and
SciPy, which take 60 MiB in each worker and a second at each start.
"""

import unicodedata
from collections.abc import Iterator, Sequence

import mmh3
import numpy as np

from workers.core.arrays import Ints, Vectors
from workers.embedding.vectors import unit_rows
from workers.settings import Settings

DIMS = 256
NGRAMS = (3, 5)
WEIGHT = 0.2
"""Parts of words add little to the words: at half of relevance, meaning took away more than it brought.

Chosen of 0.1 to 0.5 on conversations and checked on those left out, where recall@10 gains 1.5 points. On each of five,
0.2 is better than 0.5, by 0.4 to 4.8 points. Less is as good there, but finds less of what is asked in other words.
"""

BATCH = 2_048
"""Each word of a batch is hashed once, so a larger one hashes fewer; but it must end within a fraction of a second."""


class HashingEmbedder:
    """Finds texts that share parts of words, in any language, whatever their case and accents."""

    def __init__(self, settings: Settings, dims: int = DIMS) -> None:
        self.dims = min(dims, settings.max_vector_dim)
        self.batch = BATCH
        self.weights = (WEIGHT, WEIGHT)
        self.name = f"hashing:char{NGRAMS[0]}-{NGRAMS[1]}-log-centred:{self.dims}"

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:  # noqa: ARG002 - nothing here heals by it
        """Return (n, dims) vectors of length 1."""
        if not texts:
            return np.empty((0, self.dims), np.float32)
        return from_counts(self.counts(texts), texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries."""
        return self.embed(texts)

    def counts(self, texts: Sequence[str]) -> Vectors:
        """Return how many n-grams of each of n texts fall into each dimension, as (n, dims); a word is hashed once.

        There are no signs, and `from_counts` takes logarithms: measured on real conversations, the fused recall gains
        more than a point by that, and keeps it when only signatures are left.
        """
        known: dict[str, Ints] = {}
        counted = np.zeros((len(texts), self.dims), np.float32)
        for row, text in enumerate(texts):
            words = _prepared(text).split()
            for word in words:
                if word not in known:
                    known[word] = _dimensions(word, self.dims)
            if words:
                found = np.concatenate([known[word] for word in words])
                counted[row] = np.bincount(found, minlength=self.dims)
        return counted


def _prepared(text: str) -> str:
    """Return a text in lower case and without accents."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered
    return "".join(letter for letter in unicodedata.normalize("NFKD", lowered) if not unicodedata.combining(letter))


def _dimensions(word: str, dims: int) -> Ints:
    """Return the dimension of each n-gram of a word."""
    return np.array([abs(mmh3.hash(ngram)) % dims for ngram in _ngrams(f" {word} ")], np.int64)


def _ngrams(padded: str) -> Iterator[str]:
    """Yield the character n-grams of a word between spaces; one that is shorter than n counts whole, but once."""
    for size in range(NGRAMS[0], NGRAMS[1] + 1):
        if len(padded) <= size:
            yield padded
            return
        for start in range(len(padded) - size + 1):
            yield padded[start : start + size]


def from_counts(counts: Vectors, texts: Sequence[str]) -> Vectors:
    """Return the vectors of n texts whose (n, dims) hashed n-grams were counted.

    Counts are never negative, so all vectors would lie in one corner and their signatures crowd together. Around their
    own mean, texts that have nothing in common have a cosine near 0.
    """
    weights = np.log1p(counts)
    return unit_rows(weights - weights.mean(axis=1, keepdims=True), texts)
