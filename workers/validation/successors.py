"""What a task leaves to its successor: where to go on, what was done so far, and which task waits for the answer.

Ebb sends that itself, but a message may come from any program.
"""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from ebb.contract.faults import fault, show
from ebb.contract.values import LONGEST_FIELD, Text, storable
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from workers.errors import InvalidInputError

MOST_NAMESPACE = 2**31 - 1
MOST_ID = 2**63 - 1
FAULTS_SHOWN = 3
PAIR = 2

Total = Annotated[int, Field(ge=0, le=MOST_ID)]


class SoFar(BaseModel):
    """What the tasks before have to answer."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Change(SoFar):
    """How many facts went from a decay class to another."""

    was: Text = Field(alias="from")
    to: Text
    facts: Total


class Backfilled(SoFar):
    """What a backfill did so far."""

    examined: Total
    changes: list[Change]
    overdue: Total


class Fault(SoFar):
    """How many facts have a fault, and the first of them."""

    fault: Text
    facts: Total
    meaning: Text
    first: list[Annotated[UUID, Field(strict=False)]]


class Examined(SoFar):
    """What an examination found so far."""

    examined: Total
    faults: list[Fault]
    mended: bool


class Member(SoFar):
    """A fact that others are merged into."""

    id: Text
    text: Text


class Merged(Member):
    """A fact that is merged into another, and how alike they are."""

    similarity: FiniteFloat


class Group(SoFar):
    """Facts that say nearly the same."""

    keep: Member
    merge: list[Merged]


class Consolidated(SoFar):
    """What a consolidation did so far."""

    compared: Total
    merged: Total
    groups: list[Group]


class Refused(SoFar):
    """A fact that was not restored, and why."""

    id: Text
    action: Text = ""
    error: Text


class Restored(SoFar):
    """What a restore of many facts did so far."""

    restored: Total
    pinned: Total
    unchanged: Total
    refused: Total
    errors: list[Refused]


def so_far(given: Any, kind: type[SoFar]) -> dict[str, Any] | None:
    """Return what the tasks before have to answer, as it came, or nothing where there were none.

    Raises:
        InvalidInputError: it is nothing that such a task answers.
    """
    if given is None:
        return None
    try:
        kind.model_validate(given)
    except ValidationError as error:
        faults = [f"so_far: {fault(detail)}" for detail in error.errors()[:FAULTS_SHOWN]]
        raise InvalidInputError("; ".join(faults) + ".") from None
    return dict(given)


def fact_place(given: Any, start: tuple[int, UUID]) -> tuple[int, UUID]:
    """Return behind which namespace's number and fact a walk goes on, or where it begins.

    Raises:
        InvalidInputError: it is no such place.
    """
    if given is None:
        return start
    number, id_ = _pair(given, "a namespace's number and a fact's id")
    try:
        return number, UUID(id_)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInputError(f"after: {show(id_)} is no UUID; leave `after` out to begin anew.") from None


def waiting(given: Any) -> str | None:
    """Return the id of the task that waits for the answer, or nothing if none does.

    Raises:
        InvalidInputError: it is no id that a task may have.
    """
    if given is None:
        return None
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST_FIELD:
        raise InvalidInputError(f"asked_by: {show(given)} is no task's id; leave it out.")
    try:
        return str(storable(given))
    except ValueError as error:
        raise InvalidInputError(f"asked_by: {error}; given {show(given)}.") from None


def _pair(given: Any, what: str) -> Sequence[Any]:
    if not isinstance(given, list) or len(given) != PAIR or not _is_number(given[0], MOST_NAMESPACE):
        raise InvalidInputError(f"after: {show(given)} is no place; give {what}, or leave it out to begin anew.")
    return given


def _is_number(given: Any, most: int) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= most
