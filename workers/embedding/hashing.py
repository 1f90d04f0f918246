"""Embedder without a model: counts of character n-grams, hashed into a few hundred dimensions.

The counts equal those of scikit-learn's `HashingVectorizer` with the analyzer `char_wb`. Loading scikit-learn and SciPy
would take 60 MiB per worker and a second per start.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import mmh3
import numpy as np

from workers.core.arrays import Vectors
from workers.embedding.vectors import KNOWN_WORDS, LONGEST_KNOWN, unit_rows
from workers.settings import Settings

DIMS = 256
NGRAMS = (3, 5)
WEIGHT = 0.2
"""Character n-grams add little to words: with half of the weight, similarity did more harm than good.

Chosen from 0.1 to 0.5 on conversations and checked on held-out ones, where recall@10 gains 1.5 points. On each of five,
0.2 is better than 0.5, by 0.4 to 4.8 points. Lower values are as good there, but find fewer paraphrases.
"""

BATCH = 2_048
"""A batch must take only a fraction of a second."""


class HashingEmbedder:
    """Finds texts that share parts of words, in any language, ignoring case and accents."""

    def __init__(self, settings: Settings, dims: int = DIMS) -> None:
        self.dims = min(dims, settings.max_vector_dim)
        self.batch = BATCH
        self.weights = (WEIGHT, WEIGHT)
        self.quick = True
        self.name = f"hashing:char{NGRAMS[0]}-{NGRAMS[1]}-log-centred:{self.dims}"

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:  # noqa: ARG002 - a retry would not help
        """Return (n, dims) vectors of length 1."""
        return from_counts(self.counts(texts), texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries."""
        return self.embed(texts)

    def counts(self, texts: Sequence[str]) -> Vectors:
        """Return the number of n-grams of each of n texts per dimension, as (n, dims).

        There are no signs, and `from_counts` takes logarithms: on real conversations this gains more than a point of
        fused recall, also with signatures only.
        """
        counted = np.zeros((len(texts), self.dims), np.float32)
        for row, text in enumerate(texts):
            words = _prepared(text).split()
            if words:
                found = b"".join([_of_word(word, self.dims) for word in words])  # faster than a concatenation of arrays
                counted[row] = np.bincount(np.frombuffer(found, np.uint16), minlength=self.dims)
        return counted


def _prepared(text: str) -> str:
    """Return a text in lower case and without accents."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered
    return "".join(letter for letter in unicodedata.normalize("NFKD", lowered) if not unicodedata.combining(letter))


def _of_word(word: str, dims: int) -> bytes:
    return _known(word, dims) if len(word) <= LONGEST_KNOWN else _dimensions(word, dims)


def _dimensions(word: str, dims: int) -> bytes:
    """Return the dimension of each n-gram of a word, two bytes each."""
    return np.array([abs(mmh3.hash(ngram)) % dims for ngram in _ngrams(f" {word} ")], np.uint16).tobytes()


_known = lru_cache(maxsize=KNOWN_WORDS)(_dimensions)


def _ngrams(padded: str) -> list[str]:
    """Return the character n-grams of a padded word; one shorter than n counts once as a whole."""
    found: list[str] = []
    for size in range(NGRAMS[0], NGRAMS[1] + 1):
        if len(padded) <= size:
            return [*found, padded]
        found += [padded[start : start + size] for start in range(len(padded) - size + 1)]
    return found


def from_counts(counts: Vectors, texts: Sequence[str]) -> Vectors:
    """Return the vectors of n texts from their (n, dims) hashed n-gram counts.

    Counts are never negative, so all vectors would be similar. Centred on their own mean, unrelated texts have a cosine
    near 0.
    """
    weights = np.log1p(counts)
    return unit_rows(weights - weights.mean(axis=1, keepdims=True), texts)
