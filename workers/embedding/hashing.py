"""The embedder that needs no model: counts of character n-grams, hashed into a few hundred dimensions."""

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from workers.core.arrays import Vectors
from workers.embedding.unit import unit_rows
from workers.settings import Settings

DIMS = 256
NGRAMS = (3, 5)


class HashingEmbedder:
    """Finds texts that share parts of words, in any language, whatever their case and accents."""

    def __init__(self, settings: Settings) -> None:
        self.dims = min(DIMS, settings.max_vector_dim)
        self.name = f"hashing:char{NGRAMS[0]}-{NGRAMS[1]}:{self.dims}"
        # With alternating signs collisions cancel out, and unrelated texts have a cosine near 0. Without them
        # it grows with a text's length, and a long text comes out near to every question.
        self._vectorizer = HashingVectorizer(
            analyzer="char_wb",
            ngram_range=NGRAMS,
            n_features=self.dims,
            strip_accents="unicode",
            alternate_sign=True,
            norm=None,
            dtype=np.float32,
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dims) vectors of length 1."""
        if not texts:
            return np.empty((0, self.dims), np.float32)
        return unit_rows(self._vectorizer.transform(texts).toarray(), texts)
