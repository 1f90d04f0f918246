"""Vectors of queries, the most recent ones remembered: agents ask the same again."""

from functools import lru_cache

from workers.core.arrays import Vectors
from workers.embedding import Embedder

REMEMBERED = 256


class Queries:
    """The queries that this process embedded lately."""

    def __init__(self, embedder: Embedder) -> None:
        def one(text: str) -> Vectors:
            return embedder.embed_query(text)

        self._embed = lru_cache(maxsize=REMEMBERED)(one)

    def embed(self, text: str) -> Vectors:
        """Return the (dims,) vector of a query.

        Raises:
            EmbeddingError: the embedder fails.
        """
        return self._embed(text)
