"""Schemas of what asks: recall, lookup, and the context for a prompt."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from api.http.schemas.shape import MOST_RESULTS, Answer, Page, Request
from workers.validation.values import Instant, Kind

BY_MEANING = (
    "false: words alone decided, for example because the embedder does not answer; null: older workers do not say"
)


class RecallRequest(Request):
    """A question, and what the facts must have that answer it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where is the other key?", "limit": 3, "explain": True}]}
    )

    query: str = Field(min_length=1)
    limit: int = Field(10, ge=1, le=MOST_RESULTS)
    tag: str | None = None
    category: str | None = None
    kind: Kind | None = None
    as_of: Instant | None = Field(None, description="what was true then")
    known_as_of: Instant | None = Field(None, description="what had been told by then")
    explain: bool = Field(default=False, description="each score taken apart, and what was left out by which rule")
    why: UUID | None = Field(None, description="a fact: why it was recalled, or was not; touches nothing")
    touch: bool | None = Field(None, description="whether this counts as use; if left out: with a key that may write")


class ContextRequest(Request):
    """What an agent is about to answer, and how much of what it remembers fits before that.

    What is not given is as the settings have it.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Where does Mira live now?", "max_tokens": 400, "format": "short"}]}
    )

    query: str = Field(min_length=1)
    limit: int = Field(10, ge=1, le=MOST_RESULTS)
    max_tokens: int | None = Field(None, ge=1)
    format: Literal["full", "short", "minimal"] | None = None
    order: Literal["rank", "stable"] | None = None
    summary_threshold: int | None = Field(None, ge=1)
    prefer_long_term: bool | None = None
    use_importance_recency: bool | None = None
    min_similarity: float | None = Field(None, gt=0, le=1)
    entity_lookup: bool | None = Field(None, description="facts of entities that the query names")
    entities: list[str] | None = Field(None, max_length=2_000, description="only of these; else of all")
    documents: bool = Field(default=False, description="also chunks of indexed files")
    tag: str | None = None
    category: str | None = None
    kind: Kind | None = None
    explain: bool = False
    touch: bool | None = Field(None, description="whether this counts as use; if left out: with a key that may write")


class Result(Answer):
    """One recalled fact."""

    id: UUID
    text: str
    score: float
    tier: str
    fidelity: str
    ends_at: datetime | None = None
    ends_for: str | None = None


class Recalled(Answer):
    """The facts that fit best, best first."""

    results: list[Result]
    by_meaning: bool | None = Field(None, description=BY_MEANING)


class Known(Answer):
    """One fact about an entity."""

    id: UUID
    text: str
    confidence: float
    tier: str
    fidelity: str
    ends_at: datetime | None = None
    ends_for: str | None = None


class LookedUp(Page):
    """Facts about an entity, or one key of it, the most confident first."""

    results: list[Known]


class Injected(Answer):
    """What fits a prompt, as a block of text to put before it."""

    context: str
    tokens: int
    by_meaning: bool | None = Field(None, description=BY_MEANING)
