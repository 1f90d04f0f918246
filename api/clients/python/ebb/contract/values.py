"""Types of single values for the parameters of operations."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from math import isfinite
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, FiniteFloat, WithJsonSchema

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
BEYOND_CALENDAR = re.compile(r"\d{5,}-")
FEW_DIGITS = re.compile(r"\d{1,8}")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
LONGEST_FIELD = 1_024
LONGEST_VALUE = 8_192
LONGEST_METADATA = 1_048_576
MOST_LEVELS = 100
"""Maximum nesting of JSON values, which all encoders support."""

MOST_ACCENTS = 1_000
"""Maximum number of accents in a row: the time in which normalisation sorts them grows with the square."""

ACCENTS = {"Mn", "Mc", "Me", "Cf"}
"""Categories of accents, and of unseen characters, which are left out before accents are brought in order again."""

TATWEEL = "\u0640"
"""A character that only lengthens Arabic words; it is left out too."""

MOST_TAGS = 64
LONGEST_TAG = 128
LONGEST_CURSOR = 16_384
FIRST_INSTANT = datetime(1, 1, 2, tzinfo=UTC)
LAST_INSTANT = datetime(9999, 12, 30, tzinfo=UTC)
"""Range of instants: a day within that of `datetime`, so that they can be shown in each time zone."""

MOST_TIMES = 1_000_000
"""Maximum number of uses; more than some fifty make no difference."""

TYPED = {"__type__", "__value__"}

UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Zs"}
"""Categories of characters that are not seen."""

FILLERS = "\u034f\u115f\u1160\u2800\u3164\uffa0"
"""Characters of other categories that are not seen either: fillers of Hangul, blank Braille, a joiner."""

ClassSource = Literal["auto", "explicit"]
DecayClass = Literal[
    "permanent", "durable", "normal", "short", "ephemeral", "stable", "active", "session", "checkpoint"
]
Kind = Literal["semantic", "episodic", "chunk", "item"]
Durability = Literal["persistent", "permanent"]
Role = Literal["user", "assistant", "system", "tool"]
Tier = Literal["hot", "warm", "cold"]
Reason = Literal["expired", "faded", "culled", "aged", "crowded", "asked", "merged", "pruned"]
"""Why a fact was forgotten."""

ArchivedReason = Literal[Reason, "retracted"]
"""As an archive may say it. Nothing writes `retracted`: what is retracted is superseded."""

REQUESTED: tuple[ArchivedReason, ...] = ("asked", "retracted")
"""Reasons of requested deletions, which are not stored again automatically; the other reasons belong to decay."""

LOGGED = re.compile(r"\Amem_(?=[0-9A-Fa-f-]{32})")
"""Prefix of ids in the log, before 32 hexadecimal digits."""

NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}")
NAMESPACE_SCHEMA = {"type": "string", "pattern": f"^{NAMESPACE.pattern}$"}
MOST_RESULTS = 1_000
"""Maximum number of results of a question."""

MOST_NAMESPACES = 32
"""Maximum number of namespaces of a question."""

MOST_QUESTIONS = 100
"""Maximum number of questions of a task."""

MOST_FACTS = 10_000
"""Maximum number of facts of a task."""

DAYS = re.compile(r"\d{1,6}d?", re.ASCII)
MOST_DAYS = 36_525
MOST_AHEAD = 366


def unprefixed(value: Any) -> Any:
    """Return an id without the prefix of the log, and other values unchanged."""
    return LOGGED.sub("", value) if isinstance(value, str) else value


def storable(value: Any) -> Any:
    """Refuse text that PostgreSQL cannot store, or only after minutes; return other values unchanged."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError("must not contain NUL characters; remove them")
    if isinstance(value, str) and LONE_SURROGATE.search(value):
        raise ValueError("must not contain lone surrogates, which are halves of characters; remove them")
    return few_accents(value)


def few_accents(value: Any) -> Any:
    """Refuse text with too many accents in a row; return other values unchanged."""
    if isinstance(value, str) and len(value) > MOST_ACCENTS and not value.isascii():
        accents = {one for one in set(value) if one == TATWEEL or _category(one) in ACCENTS}
        if accents and max(map(len, bytes(one in accents for one in value).split(b"\0"))) > MOST_ACCENTS:
            raise ValueError(f"must not have more than {MOST_ACCENTS:,} accents in a row; remove some")
    return value


def _category(letter: str) -> str:
    """Return the category of a character after normalisation, where a half-width voicing mark of kana is an accent."""
    return unicodedata.category(unicodedata.normalize("NFKD", letter)[0])


def _midnight(value: Any) -> Any:
    """Return a date, such as one in a Celery message, as its midnight in UTC, other values unchanged."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str) and FEW_DIGITS.fullmatch(value):
        raise ValueError("may be a date or epoch seconds; write a date as 2025-01-31, seconds as a number")
    if not isinstance(value, str) or not DATE.fullmatch(value):
        return value
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"input should be a valid day of the calendar: {error}") from None


def _in_utc(instant: datetime) -> datetime:
    """Return the instant in UTC; refuse one outside of the allowed range."""
    if not FIRST_INSTANT <= instant <= LAST_INSTANT:
        raise ValueError("must lie in the years 1 to 9999, a day from their ends at least")
    return instant.astimezone(UTC)


def _amid(now: datetime) -> datetime:
    """Return the instant of an operation; refuse one from which a century back or ahead cannot be computed."""
    if min(now - FIRST_INSTANT, LAST_INSTANT - now) < timedelta(days=MOST_DAYS):
        raise ValueError("must lie in the years 101 to 9899")
    return now


def _in_calendar(value: Any) -> Any:
    """Return an instant in PostgreSQL's format that is outside of `datetime`'s range, clamped."""
    if not isinstance(value, str):
        return value
    if value.endswith(" BC"):
        return FIRST_INSTANT
    return LAST_INSTANT if BEYOND_CALENDAR.match(value) else value


def _clamped(instant: datetime) -> datetime:
    """Return the instant, clamped to the allowed range."""
    return min(max(instant, FIRST_INSTANT), LAST_INSTANT).astimezone(UTC)


def _session(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a text or a whole number")  # noqa: TRY004 - pydantic collects ValueErrors
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("must be below 2^63 if it is a number; give it as text")
    value = storable(value)
    # In bytes, as sessions are indexed, and an index entry must fit a third of a page.
    if isinstance(value, str) and len(value.encode()) > LONGEST_FIELD:
        raise ValueError(f"must have at most {LONGEST_FIELD} bytes of UTF-8")
    return value


def _not_blank_session(value: str | int) -> str | int:
    return not_blank(value) if isinstance(value, str) else value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("input should be a number")  # noqa: TRY004 - pydantic collects ValueErrors
    return value


def _flag(value: Any) -> Any:
    """Refuse values other than true and false, as `"false"` would count as true."""
    if not isinstance(value, bool):
        raise ValueError("input should be true or false")  # noqa: TRY004 - pydantic collects ValueErrors
    return value


def whole_days(value: Any, *, most: int = MOST_DAYS) -> Any:
    """Return a number of days, at most `most`, given as a number or as text such as `365d`."""
    days = int(value.removesuffix("d")) if isinstance(value, str) and DAYS.fullmatch(value) else value
    if isinstance(days, bool) or not isinstance(days, int) or not 0 < days <= most:
        raise ValueError(f"is not allowed; give whole days, 1d to {most}d")
    return days


def days_of_a_year(value: Any) -> Any:
    """Return a number of days as `whole_days` does, at most 366."""
    return whole_days(value, most=MOST_AHEAD)


def one_or_all(value: Any) -> Any:
    """Refuse null as a namespace, which meant all namespaces in earlier versions."""
    if value is None:
        raise ValueError(
            "null is no name; give the name of one, or `everywhere` as true for all of them. "
            "A client of an earlier version sends none where it means all; upgrade it, or use `--all` of this version"
        )
    return value


def _namespace(value: Any) -> Any:
    if not isinstance(value, str) or not NAMESPACE.fullmatch(value):
        raise ValueError("is no name; use up to 128 letters, digits and . _ : @ / + -, a letter or digit first")
    return value


def _asked(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank; ask in words")
    return text


def is_visible(text: str) -> bool:
    """Return whether a text has a character that is seen: no blank, and none that only controls or formats others."""
    return any(unicodedata.category(one) not in UNSEEN and one not in FILLERS for one in text)


def not_blank(text: str) -> str:
    """Return a text; refuse one without visible characters."""
    if not text.strip():
        raise ValueError("is blank; give a text, or leave out what is optional")
    return text


def single_blanks(text: str) -> str:
    """Return a name with one blank in place of each run of blanks, tabs and line breaks, and none around it."""
    return " ".join(text.split())


def none_if_blank(text: str | None) -> str | None:
    """Return a text, or None for one without visible characters, which says nothing."""
    return text if text and text.strip() else None


def parsed(text: Any) -> Any:
    """Return the value of JSON; anything else unchanged."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


def _metadata(value: Any) -> Any:
    """Return a JSON object, given as such or as text."""
    if isinstance(value, str):
        value = parsed(value)
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
    """Return a JSON value whose strings and names PostgreSQL can store.

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
    """Return a JSON value; refuse one that is nested too deeply."""
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [below for one in level for below in _below(one)]
    if level:
        raise ValueError(f"must be nested at most {MOST_LEVELS} levels deep")
    return value


def finite(value: Any) -> Any:
    """Return a JSON value; refuse NaN and infinities, which JSON does not have."""
    level = [value]
    while level:
        if any(isinstance(one, float) and not isfinite(one) for one in level):
            raise ValueError("must be JSON, without NaN or infinity")
        level = [below for one in level for below in _below(one)]
    return value


def _below(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    for one in _below(value):
        yield from _objects(one)


def split_names(value: Any) -> Any:
    """Return names from a list, or from comma-separated text."""
    return [name for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def _tag(tag: str) -> str:
    cleaned = _plain(tag)
    if not cleaned or "," in cleaned:
        raise ValueError("a tag must not be blank and has no comma")
    return cleaned


def _plain(tag: str) -> str:
    """Return a tag in lower case and composed form (NFC), with single blanks."""
    return " ".join(unicodedata.normalize("NFC", tag.lower()).split())


def _once(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


def text_as(name: str) -> BeforeValidator:
    """Return the validator that takes a text for an object which has only this, under a name."""
    return BeforeValidator(lambda given: {name: given} if isinstance(given, str) else given)


Text = Annotated[str, BeforeValidator(storable)]
Name = Annotated[str, Field(max_length=LONGEST_FIELD), BeforeValidator(storable), AfterValidator(not_blank)]
Named = Annotated[Name, AfterValidator(single_blanks)]
Value = Annotated[str, Field(max_length=LONGEST_VALUE), BeforeValidator(storable)]
KeptSession = Annotated[str | int, BeforeValidator(_session)]
"""A session of an archive, which may be blank in archives of earlier versions."""

Session = Annotated[KeptSession, AfterValidator(_not_blank_session)]
Tag = Annotated[str, Field(max_length=LONGEST_TAG), BeforeValidator(storable), AfterValidator(_tag)]
FactId = Annotated[UUID, BeforeValidator(unprefixed)]
FactIds = list[FactId]
Prefix = Annotated[str, Field(max_length=128), BeforeValidator(storable)]
Names = Annotated[list[Name], BeforeValidator(split_names)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS), BeforeValidator(split_names), AfterValidator(_once)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1), BeforeValidator(_number)]
Count = Annotated[int, Field(ge=0, lt=2**31), BeforeValidator(_number)]
Times = Annotated[int, Field(ge=0, le=MOST_TIMES), BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Whole = BeforeValidator(_number)
Limit = Annotated[int, Field(ge=1, le=MOST_RESULTS), Whole]
ListLimit = Annotated[int, Field(ge=1, le=MOST_FACTS), Whole]
Cursor = Annotated[
    str,
    Field(max_length=LONGEST_CURSOR),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_CURSOR, "pattern": "^[A-Za-z0-9_-]*$"}),
]
Namespace = Annotated[str, BeforeValidator(_namespace), WithJsonSchema(NAMESPACE_SCHEMA)]
Namespaces = Annotated[list[Namespace], BeforeValidator(split_names), AfterValidator(_once)]
Query = Annotated[str, Field(min_length=1), BeforeValidator(storable), AfterValidator(_asked)]
Shallow = AfterValidator(shallow)
Document = Annotated[dict[str, Any], AfterValidator(storable_within)]
Metadata = Annotated[dict[str, Any], BeforeValidator(_metadata)]
Instant = Annotated[AwareDatetime, BeforeValidator(_midnight), AfterValidator(_in_utc)]
Now = Annotated[Instant, AfterValidator(_amid)]
KeptInstant = Annotated[
    AwareDatetime, BeforeValidator(_in_calendar), BeforeValidator(_midnight), AfterValidator(_clamped)
]
"""An instant of an archive, which may be out of range in archives of earlier versions."""


def cleaned_tags(given: Iterable[str]) -> list[str]:
    """Return valid tags: without commas, duplicates, and those that are too long or too many."""
    cleaned = (_plain(tag.replace(",", " "))[:LONGEST_TAG].strip() for tag in given)
    return [tag for tag in dict.fromkeys(cleaned) if tag][:MOST_TAGS]
