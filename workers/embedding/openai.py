"""Embedder that calls an OpenAI-compatible endpoint: OpenAI, Ollama, Gemini, vLLM."""

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from workers.core.arrays import Floats, Vectors
from workers.core.fidelity import normalise
from workers.core.ranking import EVEN
from workers.embedding import vectors as pieces
from workers.embedding.vectors import unit_rows
from workers.endpoint import ATTEMPTS, Endpoint, Service
from workers.errors import EmbedderAwayError, EmbeddingError, SettingsError
from workers.settings import Settings
from workers.threads import within

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "text-embedding-3-small"
KNOWN_DIMS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
SHORTENS = {"text-embedding-3-small", "text-embedding-3-large"}
"""Models that accept `dimensions` and shorten their vectors themselves."""

EMBEDDINGS = Service(
    path="/embeddings",
    settings="EBB_EMBEDDING",
    failure=EmbeddingError,
    away=EmbedderAwayError,
    when_slow="raise EBB_EMBEDDING_TIMEOUT or lower EBB_EMBEDDING_BATCH if it is slow",
    advice={
        HTTPStatus.BAD_REQUEST: "Check EBB_EMBEDDING_MODEL, and whether the model takes texts that long.",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Lower EBB_EMBEDDING_BATCH.",
    },
)

PIECE_BYTES = 8_000
"""OpenAI's models read 8,192 tokens, and a byte is at most one token, so no piece is too long."""

NUMBER_BYTES = 48
"""A number has at most 25 characters; some servers put each on a line of its own, indented."""

MANY_DIMS = 16_000
"""Dimensions that an answer may have, if no more are due: how many it has instead is worth reading."""


class _Item(BaseModel):
    embedding: list[float]
    index: int | None = None


class _Answer(BaseModel):
    data: list[_Item]


class OpenAIEmbedder:
    """A model behind an endpoint; a text that is too long gets the mean of its pieces' vectors."""

    def __init__(self, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        if not settings.embedding_url and not settings.embedding_key:
            raise SettingsError(
                "The embedder 'openai' has neither key nor endpoint. Set EBB_EMBEDDING_KEY (or "
                "OPENAI_API_KEY) for OpenAI, or EBB_EMBEDDING_URL for another server."
            )
        self._model = settings.embedding_model or DEFAULT_MODEL
        self._max_dims = settings.max_vector_dim
        documented = KNOWN_DIMS.get(self._model)
        self._known_dims = min(documented, self._max_dims) if documented and self._model in SHORTENS else documented
        self._query_seconds = settings.embedding_query_timeout
        self.batch = settings.embedding_batch
        self.weights = (EVEN, EVEN)
        self.quick = False
        url = settings.embedding_url or OPENAI_URL
        self._endpoint = Endpoint(EMBEDDINGS, url, settings.embedding_key, settings.embedding_timeout, sleep)

    @property
    def name(self) -> str:
        """`openai`, the model, and the dimensions."""
        return f"openai:{self._model}:{self.dims}"

    @property
    def dims(self) -> int:
        """The model's dimensions, at most EBB_MAX_VECTOR_DIM; an unknown model is called once to find out."""
        if self._known_dims is None:
            self._request(["dimensions"], ATTEMPTS)
        return min(self._known_dims or self._max_dims, self._max_dims)

    def embed(self, texts: Sequence[str], *, retry: bool = True) -> Vectors:
        """Return (n, dims) vectors of length 1."""
        if not texts:
            return np.empty((0, self.dims), np.float32)
        parts = [pieces.split(text, PIECE_BYTES) for text in texts]
        flat = [piece for text in parts for piece in text]
        requests = pieces.batches(flat, self.batch, pieces.REQUEST_BYTES)
        attempts = ATTEMPTS if retry else 1
        vectors = np.concatenate([self._request(batch, attempts) for batch in requests])
        cut = normalise(vectors[:, : self._max_dims])
        if not cut.any(axis=1).all():
            raise self._unusable("a vector of zeros")
        return unit_rows(pieces.mean(cut, parts), texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the (n, dims) vectors of queries, after one attempt and at most EBB_EMBEDDING_QUERY_TIMEOUT."""
        try:
            return within(self._query_seconds, lambda: self.embed(texts, retry=False))
        except TimeoutError:
            raise EmbedderAwayError(
                f"{self._endpoint} did not answer a query within {self._query_seconds:g} s. Check that it is up; "
                "raise EBB_EMBEDDING_QUERY_TIMEOUT if it is slow."
            ) from None

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._endpoint.close()

    def _request(self, texts: Sequence[str], attempts: int) -> Vectors:
        payload: dict[str, Any] = {"model": self._model, "input": list(texts)}
        if self._model in SHORTENS and self._max_dims < KNOWN_DIMS[self._model]:
            payload["dimensions"] = self._max_dims
        longest = len(texts) * max(self._known_dims or 0, MANY_DIMS) * NUMBER_BYTES
        body = self._endpoint.post(payload, longest=longest, attempts=attempts)
        vectors = self._read(body, len(texts))
        self._known_dims = vectors.shape[1]
        return vectors

    def _read(self, body: bytes, count: int) -> Vectors:
        try:
            items = _Answer.model_validate_json(body).data
        except ValidationError:
            said = self._endpoint.excerpt(body.decode(errors="replace"))
            raise self._unusable(f"no list of embeddings but {said!r}") from None
        places = [place if item.index is None else item.index for place, item in enumerate(items)]
        if sorted(places) != list(range(count)):
            raise self._unusable(f"{len(items)} embeddings, numbered {_some(places)}, for {count} texts")
        return self._checked([items[place].embedding for place in np.argsort(places)])

    def _checked(self, vectors: list[list[float]]) -> Vectors:
        dims = self._known_dims
        lengths = sorted({len(vector) for vector in vectors})
        if lengths != [dims or lengths[0]] or lengths == [0]:
            expected = "dimensions" if dims is None else f"dimensions where {dims} are due"
            raise self._unusable(f"vectors of {_some(lengths)} {expected}")
        array: Floats = np.array(vectors)
        if not np.isfinite(array).all():
            raise self._unusable("numbers that are not finite")
        if not array.any(axis=1).all():
            raise self._unusable("a vector of zeros")
        # Scaled before the cast, which would overflow for numbers beyond float32.
        return (array / np.abs(array).max(axis=1, keepdims=True)).astype(np.float32)

    def _unusable(self, what: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self._endpoint} answered {what}, which is no use as embeddings of {self._model!r}. "
            "Check EBB_EMBEDDING_URL and EBB_EMBEDDING_MODEL; if the model changed, run `ebb reembed`."
        )


def _some(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:8])
    return f"{shown}, …" if len(numbers) > 8 else shown or "none"  # noqa: PLR2004 - more would be no message
