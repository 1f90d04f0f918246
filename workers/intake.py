"""What may be stored: every door's facts are checked here, by the same rule, before anything is written."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictBool,
    ValidationError,
)
from pydantic_core import ErrorDetails

from workers.core.lifetime import DecayClass
from workers.core.text import strip_injected
from workers.errors import InvalidInputError

NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
FEW_DIGITS = re.compile(r"\d{1,8}")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
LONGEST_FIELD = 1_024
LONGEST_VALUE = 8_192
MOST_TAGS = 64
LONGEST_TAG = 128
SHOWN = 80

DERIVED = (
    "tier", "fidelity", "dims", "retention", "effective_confidence", "decay_summary", "expires_at", "due_at",
    "forgotten_at", "forgotten_reason", "pinned", "pinned_until", "valid_from", "valid_until", "superseded_at",
    "superseded_by", "supersedes_id",
)  # fmt: skip
"""What an exported fact says beyond what can be stored: it follows from the rest."""

ClassSource = Literal["auto", "explicit"]
Kind = Literal["semantic", "episodic", "chunk"]


def _storable(value: Any) -> Any:
    """Return what PostgreSQL can store as text, and anything that is no text at all as it is."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError("must not contain NUL characters; remove them")
    if isinstance(value, str) and LONE_SURROGATE.search(value):
        raise ValueError("must not contain lone surrogates, which are halves of characters; remove them")
    return value


def _midnight(value: Any) -> Any:
    """Return a date as the instant at which it begins in UTC (C-S16), anything else as it is."""
    if isinstance(value, str) and FEW_DIGITS.fullmatch(value):
        raise ValueError("may be a date or epoch seconds; write a date as 2025-01-31, seconds as a number")
    return f"{value}T00:00:00Z" if isinstance(value, str) and DATE.fullmatch(value) else value


def _in_utc(instant: datetime) -> datetime:
    """Return the instant if it lies in years that UTC's calendar has, which not every local time does."""
    try:
        instant.astimezone(UTC)
    except OverflowError:
        raise ValueError("must lie in the years 1 to 9999 of UTC") from None
    return instant


def _session(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a text or a whole number")  # noqa: TRY004 - pydantic collects ValueErrors
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("must be below 2^63 if it is a number; give it as text")
    value = _storable(value)
    # In bytes, for sessions stand in an index, whose entries must fit a third of a page.
    if isinstance(value, str) and len(value.encode()) > LONGEST_FIELD:
        raise ValueError(f"must have at most {LONGEST_FIELD} bytes of UTF-8")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("input should be a number")  # noqa: TRY004 - pydantic collects ValueErrors
    return value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank; leave it out instead")
    return text


def _tags(value: Any) -> Any:
    """Return tags from a list, or from a text with commas (S89)."""
    return [tag for tag in value.split(",") if tag.strip()] if isinstance(value, str) else value


def _tag(tag: str) -> str:
    cleaned = " ".join(tag.lower().split())
    if not cleaned or "," in cleaned:
        raise ValueError("a tag must not be blank and has no comma")
    return cleaned


Text = Annotated[str, BeforeValidator(_storable)]
Name = Annotated[str, Field(max_length=LONGEST_FIELD), BeforeValidator(_storable), AfterValidator(_not_blank)]
Value = Annotated[str, Field(max_length=LONGEST_VALUE), BeforeValidator(_storable)]
Session = Annotated[str | int, BeforeValidator(_session)]
Tag = Annotated[str, Field(max_length=LONGEST_TAG), BeforeValidator(_storable), AfterValidator(_tag)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), BeforeValidator(_tags)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1), BeforeValidator(_number)]
Count = Annotated[int, Field(ge=0, lt=2**31), BeforeValidator(_number)]
Instant = Annotated[AwareDatetime, BeforeValidator(_midnight), AfterValidator(_in_utc)]


class NewFact(BaseModel):
    """A fact as somebody gives it; whatever is missing gets its default when it is stored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Text
    id: UUID | None = None
    kind: Kind = "semantic"
    session: Session | None = None
    turn: Count | None = None
    source_date: Instant | None = None
    created_at: Instant | None = None
    last_seen_at: Instant | None = None
    category: Name | None = None
    entity: Name | None = None
    key: Name | None = None
    value: Value | None = None
    summary: Value | None = None
    source: Name | None = None
    tags: Tags = []
    importance: Share = 0.5
    salience: Share = 0.5
    strength: Share | None = None
    coactivations: Count = 0
    confidence: Share = 1.0
    decay_class: DecayClass | None = None
    decay_class_source: ClassSource | None = None
    supersedes: UUID | None = None
    again: StrictBool = False


def new_fact(given: Any, max_text: int) -> NewFact:
    """Return the fact that a JSON object describes.

    Raises:
        InvalidInputError: it is none, or a field is unknown or has a value that cannot be; all faults are named.
    """
    if not isinstance(given, dict):
        raise InvalidInputError(f"A fact is a JSON object with at least a `text`; given {_show(given)}.")
    try:
        fact = NewFact.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError("; ".join(_fault(detail) for detail in error.errors()) + ".") from None
    text = _own_words(fact.text, "text", max_text)
    if not text:
        raise InvalidInputError("text: cannot store empty fact text; give at least one visible character.")
    if fact.supersedes is not None and fact.supersedes == fact.id:
        raise InvalidInputError(f"supersedes: {fact.id} is the fact's own id; give the id of the one that it replaces.")
    return fact.model_copy(update={"text": text, "tags": list(dict.fromkeys(fact.tags))})


def namespace_name(given: Any) -> str:
    """Return a namespace's name.

    Raises:
        InvalidInputError: it has characters that no name has, or too many.
    """
    if not isinstance(given, str) or not NAMESPACE.fullmatch(given):
        raise InvalidInputError(
            f"namespace: {_show(given)} is no name; use up to 128 letters, digits and . _ : @ / + -, "
            "a letter or digit first."
        )
    return given


def fact_id(given: Any) -> UUID:
    """Return a fact's id.

    Raises:
        InvalidInputError: it is no UUID.
    """
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInputError(f"id: {_show(given)} is no UUID; give the id that `store` printed.") from None


def fact_ids(given: Any, most: int) -> list[UUID]:
    """Return the ids of up to `most` facts, in order.

    Raises:
        InvalidInputError: it is no list, is empty or too long, or has something else than UUIDs in it.
    """
    if not isinstance(given, list) or not 0 < len(given) <= most:
        raise InvalidInputError(f"ids: {_show(given)} is not allowed; give a list of 1 to {most} ids.")
    return [fact_id(one) for one in given]


def instant(given: Any, name: str) -> datetime:
    """Return an instant from ISO 8601 with time zone, a date (its midnight in UTC), or epoch seconds.

    Raises:
        InvalidInputError: it is none of these; `name` says whose value it was.
    """
    try:
        parsed = _Instant.model_validate({"at": given}).at
    except ValidationError as error:
        raise InvalidInputError(f"{name}: {_fault(error.errors()[0], named=False)}.") from None
    return parsed.astimezone(UTC)


def query_text(given: Any, max_text: int) -> str:
    """Return what somebody asks.

    Raises:
        InvalidInputError: it is blank, no text, too long, or has NUL characters or lone surrogates.
    """
    if not isinstance(given, str):
        raise InvalidInputError(f"query: {_show(given)} is no text; ask in words.")
    try:
        query = _own_words(_storable(given), "query", max_text)
    except ValueError as error:
        raise InvalidInputError(f"query: {error}; given {_show(given)}.") from None
    if not query:
        raise InvalidInputError(f"query: {_show(given)} is blank; ask in words.")
    return query


def share(given: Any, name: str) -> float:
    """Return a number in (0, 1].

    Raises:
        InvalidInputError: it is none; `name` says whose value it was.
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
        raise InvalidInputError(f"{name}: {_show(given)} is not allowed; give a number above 0 and up to 1.")
    return float(given)


def whole(given: Any, name: str, most: int) -> int:
    """Return a whole number from 1 to `most`.

    Raises:
        InvalidInputError: it is none; `name` says whose value it was.
    """
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        raise InvalidInputError(f"{name}: {_show(given)} is not allowed; give a whole number from 1 to {most}.")
    return given


def optional_name(given: Any, name: str) -> str | None:
    """Return a short text or nothing.

    Raises:
        InvalidInputError: it is neither; `name` says whose value it was.
    """
    if given is None:
        return None
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST_FIELD:
        raise InvalidInputError(
            f"{name}: {_show(given)} is not allowed; give a text of 1 to {LONGEST_FIELD} characters."
        )
    try:
        return str(_storable(given))
    except ValueError as error:
        raise InvalidInputError(f"{name}: {error}; given {_show(given)}.") from None


class _Instant(BaseModel):
    at: Instant


def _own_words(text: str, name: str, max_text: int) -> str:
    """Return a text without the recalled context in it, which may be nothing, unless it is too long."""
    text = strip_injected(text)
    size = len(text.encode())
    if size > max_text:
        raise InvalidInputError(
            f"{name}: has {size} bytes, more than the limit of {max_text} (EBB_MAX_TEXT); split it."
        )
    return text


def _fault(detail: ErrorDetails, *, named: bool = True) -> str:
    where = ".".join(str(part) for part in detail["loc"] if part not in ("int", "str")) or "a field's name"
    if detail["type"] == "extra_forbidden":
        return f"{_show(where)[1:-1]}: is no field of a fact; known are {', '.join(NewFact.model_fields)}"
    if detail["type"] == "timezone_aware":
        message = "needs a time zone, such as Z or +01:00 at its end"
    else:
        message = detail["msg"].removeprefix("Value error, ")
    said = message if message.startswith("UUID") else f"{message[0].lower()}{message[1:]}"
    given = "" if detail["type"] == "missing" else f"; given {_show(detail['input'])}"
    return f"{where}: {said}{given}" if named else f"{said}{given}"


def _show(value: Any) -> str:
    shown = ascii(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
