"""Schemas of single facts: stored, read, pinned, forgotten, and what happened to them."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ebb.contract.values import Instant, Shallow
from pydantic import ConfigDict, Field

from api.http.schemas.shape import EXAMPLE_ID, MOST_FACTS, Answer, Page, Request
from workers.validation import NewFact
from workers.validation.archived import Reason
from workers.validation.edits import FactEdit


class StoreRequest(NewFact):
    """A fact to remember, and whether it counts as used if it is known, and gets a decay class by its words."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "The spare key hangs behind the kitchen clock", "tags": ["home"]},
                {"text": "Mira's phone is 0341 555 0172", "entity": "Mira", "key": "phone", "value": "0341 555 0172"},
            ]
        }
    )

    touch: bool = True
    classify: bool = True
    count_turns: bool = True

    def arguments(self) -> dict[str, Any]:
        """Return what was given, as plain JSON."""
        return self.model_dump(mode="json", exclude_unset=True)


class BatchRequest(Request):
    """Facts to remember together; one that cannot be stored does not keep the others out."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"facts": [{"text": "Mira moved to Leipzig"}, {"text": "Anselm bakes"}]}]}
    )

    facts: list[Annotated[dict[str, Any], Shallow]] = Field(
        min_length=1, max_length=MOST_FACTS, description="facts as `POST /memory/facts`"
    )
    touch: bool = True
    classify: bool = True
    count_turns: bool = Field(default=True, description="whether their turns age episodes")


class ReinforceRequest(Request):
    """How much stronger a fact shall become."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"boost": 0.2}]})

    boost: float = Field(0.2, gt=0, le=1)


class PinRequest(Request):
    """Until when a fact shall stay as it is; for good if left out."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"until": "2027-06-01"}, {}]})

    until: Instant | None = None


class EditRequest(FactEdit):
    """What to change of a fact; what is left out stays, and null removes."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"decay_class": "permanent", "tags": ["home"], "importance": 0.9}]}
    )

    def arguments(self) -> dict[str, Any]:
        """Return what was given, as plain JSON."""
        return self.model_dump(mode="json", exclude_unset=True)


class Edited(Answer):
    """Which fields of a fact changed, and how long it lives since."""

    id: UUID
    action: str = Field(description="updated or unchanged")
    changed: list[str]
    decay_class: str | None = None
    class_reason: str | None = None
    ends_at: datetime | None = None
    ends_for: str | None = None


class Stored(Answer):
    """What became of a fact; of a known one `changed` names what was changed, `ignored` what was left out."""

    id: UUID = Field(examples=[EXAMPLE_ID])
    action: str = Field(examples=["added"], description="added, duplicate, updated, retracted, unchanged or forgotten")
    embedded: bool = Field(description="whether it has its vector; without, it is found by its words until it has")
    decay_class: str | None = None
    class_reason: str | None = Field(None, description="`given`, or which words gave it its class")
    ends_at: datetime | None = Field(None, description="when it ends if it is never used; null if it never does")
    ends_for: str | None = Field(None, description="why it ends then: expired, faded, culled or aged")


class StoredMany(Answer):
    """What became of each fact, in order, or the error that kept it out."""

    results: list[dict[str, Any]]


class Fate(Answer):
    """What became of a fact that was to be forgotten or restored."""

    id: UUID
    action: str
    forgotten_at: datetime | None = None
    reason: str | None = None
    pinned: bool = Field(False, description="restored for the second time, so that it does not end by itself any more")


class RestoreRequest(Request):
    """The ids of facts to bring back, or any of the others: when, why and by which run they were forgotten."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"since": "2026-11-22T12:00:00Z", "dry_run": True}, {"ids": [EXAMPLE_ID]}]}
    )

    ids: list[UUID] | None = Field(None, min_length=1, max_length=MOST_FACTS)
    since: Instant | None = None
    until: Instant | None = None
    reason: Reason | None = None
    run: UUID | None = None
    dry_run: bool = Field(False, description="only count what matches")


class Restored(Answer):
    """What became of each of the ids, or how many of the matching facts became what."""

    results: list[dict[str, Any]] | None = None
    matching: int | None = None
    restored: int | None = None
    pinned: int | None = Field(None, description="those restored for the second time, which do not end by themselves")
    refused: int | None = None
    errors: list[dict[str, Any]] | None = None


class Forgotten(Page):
    """What was forgotten and can be restored, newest first."""

    facts: list[dict[str, Any]]


class Reinforced(Answer):
    """How strong a fact is now."""

    id: UUID
    salience: float


class Pinned(Answer):
    """Whether a fact is pinned, and until when; no instant: for good."""

    id: UUID
    action: str
    pinned: bool
    until: datetime | None


class History(Page):
    """A fact as it stands, and what happened to it, oldest first."""

    id: UUID
    text: str
    state: str
    ends_at: datetime | None = None
    ends_for: str | None = None
    events: list[dict[str, Any]]
