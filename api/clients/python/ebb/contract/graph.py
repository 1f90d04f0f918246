"""Operations on the two graphs: links between facts, and relations between entities."""

from datetime import date
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from ebb.contract.faults import show
from ebb.contract.operation import (
    EXAMPLE_ID,
    EXAMPLE_OTHER_ID,
    STORE_SECONDS,
    Answer,
    Page,
    Reaching,
    Scoped,
    Timed,
    administers,
    examples,
    reads,
    writes,
)
from ebb.contract.values import Cursor, FactId, Flag, Instant, ListLimit, Named, Share, single_blanks, storable


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _named(value: Any) -> Any:
    return single_blanks(value) if isinstance(value, str) else value


LinkType = Annotated[
    Literal["SUPERSEDES", "UPDATES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON"], BeforeValidator(_upper)
]
Entity = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(storable), BeforeValidator(_named)]
RelationType = Annotated[str, Field(min_length=1, max_length=64), BeforeValidator(storable), BeforeValidator(_named)]
KIND = "SUPERSEDES, UPDATES, CAUSED_BY, PART_OF, RELATED_TO or DEPENDS_ON, from source to target"
RELATED_BY = "how it is related to the other, such as works_on or knows"


def check_two(source: str, target: str) -> None:
    """Raise `ValueError` if the entities of a relation are the same."""
    if source.lower() == target.lower():
        raise ValueError(f"target: a relation needs two different entities; given {show(target)} for both")


class Link(Timed):
    """Link two facts, or change their link's strength: if one is recalled, the other is found too."""

    model_config = examples({"source": EXAMPLE_ID, "target": EXAMPLE_OTHER_ID, "type": "CAUSED_BY"})

    source: FactId = Field(description="the fact that the link leads from")
    target: FactId = Field(description="the fact that it leads to")
    type: LinkType = Field(description=KIND)
    strength: Share = Field(default=1.0, description="how close they are, 0 to 1")

    @model_validator(mode="after")
    def _two_facts(self) -> Self:
        if self.source == self.target:
            raise ValueError(f"target: {self.target} is the source itself; give two different facts")
        return self


class Unlink(Scoped):
    """Remove the links between two facts, of one type or all; the facts stay."""

    source: FactId = Field(description="the fact that the link leads from")
    target: FactId = Field(description="the fact that it leads to")
    type: LinkType | None = Field(default=None, description="which link; else all between the two")


class Relate(Timed):
    """Record that an entity is related to another; a known relation counts as observed again.

    Its weight halves every 90 days (EBB_RELATION_HALF_LIFE) unless it is observed again or pinned.
    """

    model_config = examples(
        {"from": "CoreAuthModule", "to": "JWTLibrary", "type": "depends_on", "weight": 1.0, "pinned": True}
    )

    source: Entity = Field(description="an entity, such as a person or a project")
    target: Entity = Field(description="the other entity")
    type: RelationType = Field(description=RELATED_BY)
    weight: Share | None = Field(default=None, description="how sure it is, 0 to 1; else 1")
    pinned: Flag | None = Field(default=None, description="whether it never fades; else as it was")
    last_observed: Instant | None = Field(
        default=None, description="when it was observed, from which it fades; else now"
    )

    @model_validator(mode="after")
    def _two_entities(self) -> Self:
        check_two(self.source, self.target)
        return self


class Unrelate(Scoped):
    """Delete a relation."""

    source: Entity = Field(description="an entity, such as a person or a project")
    target: Entity = Field(description="the other entity")
    type: RelationType = Field(description=RELATED_BY)


class ListRelations(Timed):
    """Return relations with their current weights, strongest first: those in use, or those below the minimum weight."""

    decayed: Flag | None = Field(
        default=False, description="relations below the minimum weight, which recall does not use; null: all"
    )
    entity: Named | None = Field(default=None, description="only relations from or to this entity")
    limit: ListLimit = Field(default=1_000, description="how many at most")
    cursor: Cursor | None = Field(default=None, description="the `next` of the page before; else the first page")


class DecayRelations(Reaching):
    """Update the stored weights of relations, or report what would change."""

    model_config = examples({"dryRun": False})

    dry_run: Flag = Field(default=False, description="only report which relations would change")


class Linked(Answer):
    """A link between two facts."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    strength: float


class Removed(Answer):
    """The number of removed ones."""

    removed: int


class Edge(Answer):
    """A relation between two entities, with its current weight."""

    model_config = ConfigDict(
        validate_by_name=True,
        json_schema_extra={
            "examples": [
                {"from": "Alex", "to": "ProjectAlpha", "type": "works_on", "weight": 0.08, "lastObserved": "2025-09-01"}
            ]
        },
    )

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    type: str
    weight: FiniteFloat
    last_observed: date = Field(alias="lastObserved")
    pinned: bool = Field(default=False, description="whether it never fades")
    decayed: bool | None = Field(default=None, description="whether it is below the minimum, if all were asked for")


class Relations(Page):
    """A page of relations, strongest first, and the total number."""

    edges: list[Edge]
    total: int


class RelationsDecayed(Answer):
    """The counts of a pass over relations; `newly_below` were not below the minimum after the previous pass."""

    model_config = ConfigDict(
        validate_by_name=True,
        json_schema_extra={
            "examples": [{"processed": 843, "decayed": 31, "belowMinimum": 9, "newlyBelow": 2, "pinned": 12}]
        },
    )

    processed: int
    decayed: int
    below_minimum: int = Field(alias="belowMinimum")
    newly_below: int = Field(default=0, alias="newlyBelow")
    pinned: int
    edges: list[Edge] = Field(default_factory=list, description="of a dry run, the first relations that would change")


ENDS = {"source": "from", "target": "to"}
LINK = writes("memory.link", Link, Linked, "POST /memory/links")
UNLINK = writes("memory.unlink", Unlink, Removed, "DELETE /memory/links")
RELATE = writes(
    "memory.relate", Relate, Edge, "POST /memory/graph/edges", spelled=ENDS | {"last_observed": "lastObserved"}
)
UNRELATE = writes("memory.unrelate", Unrelate, Removed, "DELETE /memory/graph/edges", spelled=ENDS)
RELATIONS = reads("memory.relations", ListRelations, Relations, "GET /memory/relations", STORE_SECONDS)
DECAY_RELATIONS = administers(
    "relations.decay",
    DecayRelations,
    RelationsDecayed,
    "POST /memory/graph/decay",
    accepted=True,
    spelled={"dry_run": "dryRun"},
)
