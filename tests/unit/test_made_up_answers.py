"""Arbitrary answers of an LLM or embedder: they are used, or refused with a message that names the server."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from made_up import JSON, NUMBERS, examples, spoilt
from pydantic import ValidationError

from workers.core.intent import ADD, Action
from workers.decay.review import _Review
from workers.embedding.openai import OpenAIEmbedder
from workers.errors import EmbeddingError, UnusableJudgementError
from workers.llm import Statement
from workers.llm.chat import Chat
from workers.memory.classify import Case, _intent, _Verdict, _Verdicts
from workers.settings import Settings

HERE = "http://127.0.0.1:9/v1"
SETTINGS = Settings(embedder="openai", embedding_url=HERE, embedding_model="made-up", llm_url=HERE)
ONE = UUID(int=1)
VERDICT = {"number": 1, "action": "NOOP", "id": str(ONE)}
VECTOR = {"embedding": [0.5, 1.0], "index": 0}
NEEDLESS = {"id": str(ONE), "because_of": str(ONE), "why": "repeats"}
BODIES = st.one_of(st.binary(), st.text().map(str.encode), JSON.map(lambda one: json.dumps(one).encode()))


def statement(id_: UUID | None) -> Statement:
    return Statement(id_, "Mira moved.", None, None, None, datetime(2026, 1, 1, tzinfo=UTC))


def completion(content: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content, "refusal": None}}]}).encode()


def said(verdicts: Any) -> bytes:
    return completion(json.dumps(verdicts))


@examples(200)
@given(body=st.one_of(
    BODIES,
    JSON.map(completion),
    JSON.map(said),
    st.lists(spoilt(VERDICT), max_size=2).map(lambda one: said({"verdicts": one})),
    st.lists(spoilt(NEEDLESS), max_size=2).map(lambda one: said({"forget": one})),
))  # fmt: skip
def test_any_answer_of_an_llm_is_a_judgement_or_refused(body: bytes) -> None:
    for wanted in (_Verdicts, _Review):
        try:
            result = type(Chat(SETTINGS)._read(body, wanted)).__name__
        except UnusableJudgementError as refused:
            result = str(refused)
        assert result == wanted.__name__ or HERE in result


@examples(100)
@given(said=spoilt(VERDICT))
def test_a_verdict_concerns_a_fact_that_was_shown_or_adds_the_new_one(said: dict[str, Any]) -> None:
    case = Case(statement(None), [statement(ONE)])
    try:
        verdict = _Verdict.model_validate(said)
    except ValidationError:
        return
    intent = _intent(case, verdict)
    assert intent == ADD or (intent.target == ONE and intent.action is not Action.ADD)


@examples(200)
@given(
    body=st.one_of(
        BODIES,
        st.lists(st.one_of(JSON, spoilt(VECTOR)), max_size=3).map(lambda data: json.dumps({"data": data}).encode()),
        st.lists(NUMBERS, max_size=4).map(lambda one: json.dumps({"data": [{"embedding": one}]}).encode()),
    ),
    count=st.integers(1, 3),
    dims=st.sampled_from([None, 2, 3]),
)
def test_any_answer_of_an_embedding_endpoint_is_vectors_or_refused(body: bytes, count: int, dims: int | None) -> None:
    refused, vectors, embedder = "", np.empty((0, 0), np.float32), OpenAIEmbedder(SETTINGS)
    embedder._known_dims = dims
    try:
        vectors = embedder._read(body, count)
    except EmbeddingError as error:
        refused = str(error)
    assert HERE in refused or vectors.shape == (count, dims or vectors.shape[1])
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()


def test_valid_input_is_accepted() -> None:
    assert Chat(SETTINGS)._read(said({"verdicts": [VERDICT]}), _Verdicts).verdicts[0].action == "NOOP"
    assert Chat(SETTINGS)._read(said({"forget": [NEEDLESS]}), _Review).forget[0].id == str(ONE)
    body = json.dumps({"data": [VECTOR]}).encode()
    assert OpenAIEmbedder(SETTINGS)._read(body, 1).tolist() == [[0.5, 1.0]]
