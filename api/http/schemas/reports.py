"""Schemas of reports on a namespace: figures, forecast, contradictions."""

from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field

from api.http.schemas.shape import EXAMPLE_ID, MOST_FACTS, Answer, Page, Request


class DecideRequest(Request):
    """Held facts, or all that are held."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [EXAMPLE_ID]}, {"everything": True}]})

    ids: list[UUID] | None = Field(None, min_length=1, max_length=MOST_FACTS)
    everything: bool = False

    def named(self) -> list[str] | None:
        """Return the ids as text, or nothing where none were given."""
        return None if self.ids is None else [str(id_) for id_ in self.ids]


class HeldFacts(Page):
    """Facts that are over but stay visible, those that were over first in front."""

    held: list[dict[str, Any]]
    total: int


class Decided(Answer):
    """About how many held facts was decided, the ids of the first of them, and how many are still held."""

    decided: int
    ids: list[UUID]
    left: int
