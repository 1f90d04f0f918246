"""Embedder with static word vectors: each piece of a word has a fixed vector, and a text has their sum.

No model runs. The other half of the vector comes from the hashing embedder, which also covers what no vocabulary
contains: names, numbers, misspellings and other languages.
"""

from collections.abc import Sequence

import numpy as np

from workers.core.arrays import Vectors
from workers.core.fidelity import normalise
from workers.embedding import hashing
from workers.embedding.vectors import unit_rows
from workers.embedding.word_vectors import sums
from workers.settings import Settings

DIMS = 256
"""Half for meaning, half for parts of words."""

SHARE = 0.7
"""Share of meaning in the cosine of two texts; the rest is parts of words."""

WEIGHTS = 0.5, 0.4
"""In chats of short turns 0.5 finds one point more of the evidence than 0.4, in long messages two points less."""


class StaticEmbedder:
    """Finds texts of similar meaning in English, and shared parts of words in any language."""

    def __init__(self, settings: Settings) -> None:
        self.dims = min(DIMS, settings.max_vector_dim)
        self.batch = hashing.BATCH
        self.weights = WEIGHTS
        self.quick = True
        self.name = f"static:minilm-distilled:{self.dims}"
        self._parts = hashing.HashingEmbedder(settings, self.dims - self.dims // 2)

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:  # noqa: ARG002 - a retry would not help
        """Return (n, dims) vectors of length 1."""
        parts = self._parts.embed(texts) * np.float32(np.sqrt(1 - SHARE))
        meaning = normalise(sums(texts)[:, : self.dims // 2]) * np.float32(np.sqrt(SHARE))
        return unit_rows(np.concatenate([parts, meaning], axis=1), texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries."""
        return self.embed(texts)
