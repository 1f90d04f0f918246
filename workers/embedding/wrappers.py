"""Wrappers of an embedder: a circuit breaker, and a cache for the vectors of recent queries."""

from collections.abc import Callable, Sequence
from typing import Protocol

from workers.core.arrays import Vectors
from workers.embedding import Embedder
from workers.errors import EmbedderAwayError

QUERY_SECONDS = 5.0
"""Time for a query that tries the embedder again after a pause."""

BATCH_SECONDS = 60.0
"""The same for facts, which are retried."""


class Pause(Protocol):
    """Decides for all processes whether the embedder may be called."""

    def enter(self, seconds: float) -> bool:
        """Return whether this request is the one that tries the embedder again, within `seconds`.

        Raises:
            EmbedderPausedError: the embedder must not be called now.
        """

    def failed(self, error: EmbedderAwayError) -> None:
        """Start a pause."""

    def answered(self) -> None:
        """End the pause."""


class PausingEmbedder:
    """Wraps an embedder that is paused when it does not answer; requests then fail at once."""

    def __init__(self, embedder: Embedder, pause: Pause) -> None:
        self._embedder = embedder
        self._pause = pause
        self.batch = embedder.batch
        self.weights = embedder.weights
        self.quick = embedder.quick

    @property
    def name(self) -> str:
        """Name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dims(self) -> int:
        """Length of every vector."""
        return self._embedder.dims

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:
        """Return (n, dims) vectors of length 1, or raise `EmbedderPausedError`."""
        return self._asked(BATCH_SECONDS, lambda: self._embedder.embed(texts, retry=retry))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries, or raise `EmbedderPausedError`."""
        return self._asked(QUERY_SECONDS, lambda: self._embedder.embed_queries(texts))

    def close(self) -> None:
        """Close the connections of the wrapped embedder."""
        close = getattr(self._embedder, "close", None)
        if close is not None:
            close()

    def _asked(self, seconds: float, ask: Callable[[], Vectors]) -> Vectors:
        trying = self._pause.enter(seconds)
        try:
            vectors = ask()
        except EmbedderAwayError as error:
            self._pause.failed(error)
            raise
        if trying:
            self._pause.answered()
        return vectors


REMEMBERED = 256


class QueryCache:
    """A cache of the vectors of this process's recent queries."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def embed(self, text: str) -> Vectors:
        """Return the (dims,) vector of a query.

        Raises:
            EmbeddingError: the embedder fails.
        """
        return self.embed_all([text])[0]

    def embed_all(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the (dims,) vectors of queries; unknown ones are embedded together.

        Raises:
            EmbeddingError: the embedder fails.
        """
        known = {text: self._known.pop(text) for text in dict.fromkeys(texts) if text in self._known}
        unknown = [text for text in dict.fromkeys(texts) if text not in known]
        size = self._embedder.batch
        try:
            for batch in (unknown[start : start + size] for start in range(0, len(unknown), size)):
                known |= zip(batch, self._embedder.embed_queries(batch), strict=True)
        finally:
            self._known |= known  # the latest are last
            for oldest in list(self._known)[:-REMEMBERED]:
                del self._known[oldest]
        return [known[text] for text in texts]
