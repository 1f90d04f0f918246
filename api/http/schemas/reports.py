"""Schemas of reports on a namespace: figures, forecast, contradictions."""

from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field

from api.http.schemas.shape import EXAMPLE_ID, EXAMPLE_OTHER_ID, MOST_FACTS, Answer, Page, Request


class ResolveRequest(Request):
    """Two facts of which both hold, or the fact to keep and those that it supersedes."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [EXAMPLE_OTHER_ID], "keep": EXAMPLE_ID}]})

    ids: list[UUID] = Field(min_length=1, max_length=MOST_FACTS)
    keep: UUID | None = None
    both: bool = False


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


class Stats(Answer):
    """What a namespace holds, by tier, fidelity and decay class, and what is due."""

    facts: int
    tiers: dict[str, int]
    fidelity: dict[str, int]


class Forecast(Answer):
    """What passes will do on each of the coming days."""

    days: list[dict[str, Any]]


class Contradictions(Page):
    """Pairs of facts that say different values of the same."""

    contradictions: list[dict[str, Any]]
    total: int


class Resolved(Answer):
    """Which fact was kept and which it superseded, or which two both hold."""
