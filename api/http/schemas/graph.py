"""Schemas of the two graphs: links between facts, edges between entities."""

from datetime import date
from uuid import UUID

from pydantic import ConfigDict, Field

from api.http.schemas.shape import EXAMPLE_ID, EXAMPLE_OTHER_ID, Answer, Request


class LinkRequest(Request):
    """A link from one fact to another."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"source": EXAMPLE_ID, "target": EXAMPLE_OTHER_ID, "type": "CAUSED_BY"}]}
    )

    source: UUID
    target: UUID
    type: str
    strength: float = Field(1.0, ge=0, le=1)


class EdgeRequest(Request):
    """An edge from one entity to another, as it was just observed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"from": "CoreAuthModule", "to": "JWTLibrary", "type": "depends_on", "weight": 1.0, "pinned": True}
            ]
        },
    )

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    type: str
    weight: float | None = Field(None, ge=0, le=1)
    pinned: bool | None = None


class EdgesDecayRequest(Request):
    """A pass over all edges."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dryRun": False}]})

    dry_run: bool = Field(default=False, alias="dryRun", description="only say which edges would change")


class Link(Answer):
    """A link between two facts."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    strength: float


class Edge(Answer):
    """An edge between two entities, with its weight as of now."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {"from": "Alex", "to": "ProjectAlpha", "type": "works_on", "weight": 0.08, "lastObserved": "2025-09-01"}
            ]
        },
    )

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    type: str
    weight: float
    last_observed: date = Field(alias="lastObserved")


class EdgesDecayed(Answer):
    """What a pass over the edges did."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"processed": 843, "decayed": 31, "belowMinimum": 9, "pinned": 12}]},
    )

    processed: int
    decayed: int
    below_minimum: int = Field(alias="belowMinimum")
    pinned: int
