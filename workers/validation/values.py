"""What single values may be, as types for pydantic; and how a fault is told."""

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    FiniteFloat,
    ValidationError,
)
from pydantic_core import ErrorDetails

from workers.core.text import strip_injected
from workers.errors import InvalidInputError

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
BEYOND_CALENDAR = re.compile(r"\d{5,}-")
FEW_DIGITS = re.compile(r"\d{1,8}")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
LONGEST_FIELD = 1_024
LONGEST_VALUE = 8_192
LONGEST_METADATA = 1_048_576
MOST_LEVELS = 100
"""How deep values of JSON may be nested; what is deeper, some encoder on the way gives up on."""

MOST_TAGS = 64
LONGEST_TAG = 128
MOST_FAULTS = 20
"""How many faults are named; of the others their number."""

UNKNOWN = "extra_forbidden"
FIRST_INSTANT = datetime(1, 1, 2, tzinfo=UTC)
LAST_INSTANT = datetime(9999, 12, 30, tzinfo=UTC)
"""A day from the ends of Python's calendar, so that an instant can be shown in each time zone."""

MOST_TIMES = 1_000_000
"""The most that a fact may be said to have been used; past some fifty uses it makes no difference."""

SHOWN = 80
TYPED = {"__type__", "__value__"}
NO_OBJECT = ("dict_type", "model_type", "model_attributes_type", "dataclass_type")

ClassSource = Literal["auto", "explicit"]
Kind = Literal["semantic", "episodic", "chunk", "item"]
Durability = Literal["persistent", "permanent"]


LOGGED = "mem_"
"""What the log writes before the 32 hexadecimal digits of an id."""


def unprefixed(value: Any) -> Any:
    """Return an id as the log writes it without its prefix, and anything else as it is."""
    return value.removeprefix(LOGGED) if isinstance(value, str) else value


def storable(value: Any) -> Any:
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
    if not isinstance(value, str) or not DATE.fullmatch(value):
        return value
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"input should be a valid day of the calendar: {error}") from None


def _in_utc(instant: datetime) -> datetime:
    """Return the instant if it lies in years that every time zone's calendar has."""
    try:
        known = FIRST_INSTANT <= instant.astimezone(UTC) <= LAST_INSTANT
    except OverflowError:
        known = False
    if not known:
        raise ValueError("must lie in the years 1 to 9999, a day from their ends at least")
    return instant


def _in_calendar(value: Any) -> Any:
    """Return an instant beyond Python's calendar, as PostgreSQL writes it, as the end of that calendar."""
    if not isinstance(value, str):
        return value
    if value.endswith(" BC"):
        return FIRST_INSTANT
    return LAST_INSTANT if BEYOND_CALENDAR.match(value) else value


def _clamped(instant: datetime) -> datetime:
    """Return the instant, or the end of the calendar that it lies beyond."""
    try:
        return min(max(instant.astimezone(UTC), FIRST_INSTANT), LAST_INSTANT)
    except OverflowError:
        return FIRST_INSTANT if instant.year == 1 else LAST_INSTANT


def _session(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a text or a whole number")  # noqa: TRY004 - pydantic collects ValueErrors
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("must be below 2^63 if it is a number; give it as text")
    value = storable(value)
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


def _metadata(value: Any) -> Any:
    """Return an object as JSON can carry it, given as it is or as its text, which no transport looks into."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("must be an object, or the JSON of one") from None
    if not isinstance(value, dict):
        raise ValueError("must be an object, or the JSON of one")  # noqa: TRY004 - pydantic collects ValueErrors
    shallow(value)
    try:
        size = len(json.dumps(value, allow_nan=False))
    except ValueError:
        raise ValueError("must be JSON, without NaN or infinity") from None
    if size > LONGEST_METADATA:
        raise ValueError(f"must have at most {LONGEST_METADATA} bytes of JSON")
    storable_within(value)
    if any(one.keys() == TYPED for one in _objects(value)):
        raise ValueError("must have no object of just `__type__` and `__value__`, which transports take for theirs")
    return value


def storable_within(value: Any) -> Any:
    """Return a value of JSON of which PostgreSQL can store every text and every name, at any depth.

    Raises:
        ValueError: one has NUL characters or lone surrogates.
    """
    level = [shallow(value)]
    while level:
        for one in level:
            for text in one if isinstance(one, dict) else [one]:
                storable(text)
        level = [below for one in level for below in _below(one)]
    return value


def shallow(value: Any) -> Any:
    """Return a value of JSON that is not nested too deeply."""
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [below for one in level for below in _below(one)]
    if level:
        raise ValueError(f"must be nested at most {MOST_LEVELS} levels deep")
    return value


def _below(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a value of JSON."""
    if isinstance(value, dict):
        yield value
    for one in _below(value):
        yield from _objects(one)


def _tags(value: Any) -> Any:
    """Return tags from a list, or from a text with commas (S89)."""
    return [tag for tag in value.split(",") if tag.strip()] if isinstance(value, str) else value


def _tag(tag: str) -> str:
    cleaned = " ".join(tag.lower().split())
    if not cleaned or "," in cleaned:
        raise ValueError("a tag must not be blank and has no comma")
    return cleaned


Text = Annotated[str, BeforeValidator(storable)]
Name = Annotated[str, Field(max_length=LONGEST_FIELD), BeforeValidator(storable), AfterValidator(_not_blank)]
Value = Annotated[str, Field(max_length=LONGEST_VALUE), BeforeValidator(storable)]
Session = Annotated[str | int, BeforeValidator(_session)]
Tag = Annotated[str, Field(max_length=LONGEST_TAG), BeforeValidator(storable), AfterValidator(_tag)]
FactId = Annotated[UUID, BeforeValidator(unprefixed)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), BeforeValidator(_tags)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1), BeforeValidator(_number)]
Count = Annotated[int, Field(ge=0, lt=2**31), BeforeValidator(_number)]
Times = Annotated[int, Field(ge=0, le=MOST_TIMES), BeforeValidator(_number)]
Shallow = AfterValidator(shallow)
Document = Annotated[dict[str, Any], AfterValidator(storable_within)]
Metadata = Annotated[dict[str, Any], BeforeValidator(_metadata)]
Instant = Annotated[AwareDatetime, BeforeValidator(_midnight), AfterValidator(_in_utc)]
KeptInstant = Annotated[
    AwareDatetime, BeforeValidator(_in_calendar), BeforeValidator(_midnight), AfterValidator(_clamped)
]
"""An instant of an archive, which an earlier version may have let in beyond the calendar."""


def cleaned_tags(given: Iterable[str]) -> list[str]:
    """Return tags as facts may have them: without commas, neither too long nor too many, each once."""
    cleaned = (" ".join(tag.replace(",", " ").lower().split())[:LONGEST_TAG].strip() for tag in given)
    return [tag for tag in dict.fromkeys(cleaned) if tag][:MOST_TAGS]


def own_words(text: str, name: str, max_text: int) -> str:
    """Return a text without the recalled context in it, which may be nothing, unless it is too long."""
    text = strip_injected(text)
    size = len(text.encode())
    if size > max_text:
        raise InvalidInputError(
            f"{name}: has {size} bytes, more than the limit of {max_text} (EBB_MAX_TEXT); split it."
        )
    return text


def fault(detail: ErrorDetails, *, named: bool = True, known: Iterable[str] = ()) -> str:
    """Return what is wrong with a value, what was given, and which fields are known if it is none of them."""
    where = _where(detail) or "a field's name"
    if detail["type"] == UNKNOWN:
        fields = f" of a fact; known are {', '.join(known)}" if known else " that is known here; see its schema"
        return f"{show(where)[1:-1]}: is no field{fields}"
    if detail["type"] == "timezone_aware":
        message = "needs a time zone, such as Z or +01:00 at its end"
    elif detail["type"] in NO_OBJECT:
        message = "input should be an object"
    else:
        message = detail["msg"].removeprefix("Value error, ")
    said = message if message[1:2].isupper() else f"{message[0].lower()}{message[1:]}"
    given = "" if detail["type"] == "missing" else f"; given {show(detail['input'])}"
    return f"{where}: {said}{given}" if named else f"{said}{given}"


def few_unknown(given: Mapping[str, Any], known: Container[str]) -> tuple[dict[str, Any], int]:
    """Return an object with no more unknown fields than are reported, and how many it had beyond them."""
    unknown = [name for name in given if name not in known]
    left_out = set(unknown[MOST_FAULTS:])
    return {name: value for name, value in given.items() if name not in left_out}, len(left_out)


def faults(error: ValidationError, *, known: Iterable[str] = (), more: int = 0) -> str:
    """Return the first faults as a sentence, and how many more there are; known fields are listed once."""
    details = error.errors(include_url=False, include_context=False)
    return joined(first_faults(details, known), max(len(details) - MOST_FAULTS, 0) + more)


def first_faults(details: Sequence[ErrorDetails], known: Iterable[str] = ()) -> list[str]:
    """Return what is wrong by the first details; which fields are known is said of the first unknown one alone."""
    named, listed = [], False
    for detail in details[:MOST_FAULTS]:
        again = detail["type"] == UNKNOWN and listed
        named.append(f"{show(_where(detail))[1:-1]}: is no field" if again else fault(detail, known=known))
        listed = listed or detail["type"] == UNKNOWN
    return named


def joined(named: Sequence[str], more: int = 0) -> str:
    """Return faults as one sentence: the first, and how many more there are."""
    more += max(len(named) - MOST_FAULTS, 0)
    return "; ".join(named[:MOST_FAULTS]) + (f"; and {more} more faults." if more else ".")


def show(value: Any) -> str:
    """Return a value as an error message shows it: in ASCII, and not all of a long one."""
    shown = ""
    for piece in _pieces(value):
        shown += piece
        if len(shown) > SHOWN:
            return f"{shown[:SHOWN]}…"
    return shown


def _where(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"] if part not in ("int", "str"))


def _pieces(value: Any) -> Iterator[str]:
    """Yield how Python writes a value, piece by piece, so that the end of a long one costs nothing."""
    if isinstance(value, str):
        yield ascii(value[: SHOWN + 1])
    elif type(value) is dict or type(value) is list:
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        yield opening
        for place, one in enumerate(value):
            yield ", " if place else ""
            yield from _pieces(one)
            if isinstance(value, dict):
                yield ": "
                yield from _pieces(value[one])
        yield closing
    else:
        yield ascii(value)
