"""A client of an OpenAI-compatible chat endpoint with structured output (JSON schema)."""

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from workers.endpoint import Endpoint, Service
from workers.errors import JudgementAwayError, JudgementError, UnusableJudgementError
from workers.llm import StrictAnswer
from workers.settings import Settings

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4o-mini"
CHAT = Service(
    path="/chat/completions",
    settings="EBB_LLM",
    failure=JudgementError,
    away=JudgementAwayError,
    when_slow="raise EBB_LLM_TIMEOUT or choose a faster EBB_LLM_MODEL if it is slow",
    advice={
        HTTPStatus.BAD_REQUEST: "Check EBB_LLM_MODEL, which must take `temperature` 0 and answer by a JSON schema.",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Choose an EBB_LLM_MODEL that reads longer questions.",
    },
)

ANSWER_BYTES = 4 << 20
"""Some models can write 128,000 tokens, and some servers write a letter in six bytes."""

Answer = TypeVar("Answer", bound=StrictAnswer)


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice]


class Chat:
    """A chat model behind an endpoint."""

    def __init__(self, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._model = settings.llm_model or DEFAULT_MODEL
        self._endpoint = Endpoint(CHAT, settings.llm_url or OPENAI_URL, settings.llm_key, settings.llm_timeout, sleep)

    def __str__(self) -> str:
        """Return the model's name and the URL without credentials."""
        return f"{self._model!r} at {self._endpoint}"

    def ask(self, instructions: str, question: Any, answer: type[Answer], seconds: float) -> Answer:
        """Return the answer to a question (JSON) within `seconds`.

        Raises:
            JudgementError: the server does not answer in time, or refuses.
            UnusableJudgementError: the answer does not match the schema.
        """
        schema = {"name": answer.__name__.strip("_"), "strict": True, "schema": answer.model_json_schema()}
        payload = {
            "model": self._model,
            "temperature": 0,
            "messages": [
                {"role": "system", "content": instructions},
                {"role": "user", "content": json.dumps(question, ensure_ascii=False)},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        return self._read(self._endpoint.post(payload, seconds, longest=ANSWER_BYTES), answer)

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._endpoint.close()

    def _read(self, body: bytes, answer: type[Answer]) -> Answer:
        try:
            message = _Completion.model_validate_json(body).choices[0].message
            if message.refusal:
                raise self._unusable("refused", message.refusal)
            return answer.model_validate_json(message.content or "")
        except (ValidationError, IndexError):
            raise self._unusable("answered what was not asked", body.decode(errors="replace")) from None

    def _unusable(self, what: str, answer: str) -> UnusableJudgementError:
        said = self._endpoint.excerpt(answer)
        message = f"{self} {what}: {said}. Check EBB_LLM_MODEL, which must answer by a JSON schema."
        return UnusableJudgementError(message, said)
