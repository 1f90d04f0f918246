"""A client of a `/rerank` endpoint, which scores how well documents answer a query.

It speaks what Cohere, Jina, vLLM, llama.cpp, Infinity and LiteLLM have in common, and the variant of Text Embeddings
Inference.
"""

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import numpy as np
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from workers.core.arrays import Floats
from workers.endpoint import Endpoint, Service
from workers.errors import RerankerAwayError, RerankerError, UnusableScoresError
from workers.settings import Settings
from workers.threads import within

RERANK = Service(
    path="/rerank",
    settings="EBB_RERANK",
    failure=RerankerError,
    away=RerankerAwayError,
    when_slow="raise EBB_RERANK_TIMEOUT or lower EBB_RERANK_CANDIDATES if it is slow",
    advice={
        HTTPStatus.UNAUTHORIZED: "Check EBB_RERANK_KEY.",
        HTTPStatus.BAD_REQUEST: "Check EBB_RERANK_MODEL.",
        HTTPStatus.NOT_FOUND: "Check EBB_RERANK_URL and EBB_RERANK_MODEL.",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Lower EBB_RERANK_CANDIDATES.",
    },
)

OTHER_NAME = {"documents": "texts", "texts": "documents"}
"""What servers call the documents; Text Embeddings Inference says `texts`, and its refusal names the missing field."""


BYTES_OF_A_BYTE = 6
"""Some servers repeat the documents, and some write a letter as `\\u0000`."""


class _Rank(BaseModel):
    index: int
    score: float = Field(validation_alias=AliasChoices("relevance_score", "score"), allow_inf_nan=False)


class _Ranks(BaseModel):
    results: list[_Rank]


_ANSWER: TypeAdapter[_Ranks | list[_Rank]] = TypeAdapter(_Ranks | list[_Rank])


class Reranker:
    """A reranker behind an endpoint."""

    def __init__(self, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._model: dict[str, Any] = {"model": settings.rerank_model} if settings.rerank_model else {}
        self._name = "documents"
        self._seconds = settings.rerank_timeout
        self._endpoint = Endpoint(RERANK, settings.rerank_url, settings.rerank_key, settings.rerank_timeout, sleep)

    def __str__(self) -> str:
        """Return the URL without credentials."""
        return str(self._endpoint)

    def scores(self, query: str, documents: Sequence[str]) -> Floats:
        """Return the scores of n documents, (n,), after one attempt and within EBB_RERANK_TIMEOUT; higher is better.

        Their scale is the server's: some return probabilities, others logits.

        Raises:
            RerankerError: the server does not answer in time, refuses, or its answer has not one score for each.
        """
        try:
            return within(self._seconds, lambda: self._ask(query, documents))
        except TimeoutError:
            raise RerankerAwayError(
                f"{self} did not answer within {self._seconds:g} s. Check that it is up; {RERANK.when_slow}."
            ) from None

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._endpoint.close()

    def _ask(self, query: str, documents: Sequence[str]) -> Floats:
        name = self._name
        try:
            return self._request(name, query, documents)
        except RerankerError as error:
            if OTHER_NAME[name] not in str(error):
                raise
        scores = self._request(OTHER_NAME[name], query, documents)
        self._name = OTHER_NAME[name]
        return scores

    def _request(self, name: str, query: str, documents: Sequence[str]) -> Floats:
        payload = self._model | {"query": query, name: list(documents), "top_n": len(documents)}
        if name == "texts":
            payload["truncate"] = True
        longest = BYTES_OF_A_BYTE * sum(len(one.encode()) for one in documents)
        return self._read(self._endpoint.post(payload, longest=longest, attempts=1), len(documents))

    def _read(self, body: bytes, count: int) -> Floats:
        try:
            answer = _ANSWER.validate_json(body)
        except ValidationError:
            ranks = []
        else:
            ranks = sorted(answer if isinstance(answer, list) else answer.results, key=lambda rank: rank.index)
        if [rank.index for rank in ranks] != list(range(count)):
            said = repr(self._endpoint.excerpt(body.decode(errors="replace")))
            raise UnusableScoresError(
                f"{self} answered {said}, where one score for each of {count} facts was expected. "
                "Check EBB_RERANK_URL and EBB_RERANK_MODEL.",
                said,
            )
        return np.array([rank.score for rank in ranks], dtype=np.float64)
