"""Messages about invalid values."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

MOST_FAULTS = 20
"""Maximum number of faults in a message."""

SHOWN = 80
"""Maximum characters of a value in a message."""

UNKNOWN = "extra_forbidden"
OF_SEVERAL = "value_error"
"""The type of a fault of an object whose fields do not go together."""

INSTANTS = ("datetime_parsing", "datetime_from_date_parsing", "datetime_type")
NO_OBJECT = ("dict_type", "model_type", "model_attributes_type", "dataclass_type")
MESSAGES = {
    "timezone_aware": "needs a time zone, such as Z or +01:00 at its end",
    "bool_parsing": "input should be true or false",
    "float_parsing": "input should be a number",
    "int_parsing": "input should be a valid integer",
    **dict.fromkeys(("uuid_parsing", "uuid_type"), "input should be a valid UUID"),
    "string_unicode": "input should be a valid string",
    **dict.fromkeys(INSTANTS, "input should be a valid instant, such as 2026-01-31T12:00:00Z, or a date"),
    **dict.fromkeys(NO_OBJECT, "input should be an object"),
}
"""Messages that replace Pydantic's, by type of fault."""


def fault(detail: ErrorDetails, *, named: bool = True, known: Iterable[str] = ()) -> str:
    """Return the message about one fault, with the given value, or the known fields for an unknown one."""
    where = _where(detail)
    if detail["type"] == UNKNOWN:
        fields = f" of a fact; known are {', '.join(known)}" if known else " that is known here; see its schema"
        return f"{show(where)[1:-1]}: is no field{fields}"
    own = detail["msg"].removeprefix("Value error, ").replace(" after validation", "")
    message = MESSAGES.get(detail["type"], own)
    said = message if message[1:2].isupper() else f"{message[0].lower()}{message[1:]}"
    if not where and detail["type"] == OF_SEVERAL and isinstance(detail["input"], Mapping):
        return said
    given = "" if detail["type"] == "missing" else f"; given {show(detail['input'])}"
    place = where or "a field's name"
    return f"{place}: {said}{given}" if named else f"{said}{given}"


def few_unknown(given: Mapping[str, Any], known: Container[str]) -> tuple[dict[str, Any], int]:
    """Return an object with at most as many unknown fields as are reported, and the number of others."""
    unknown = [name for name in given if name not in known]
    left_out = set(unknown[MOST_FAULTS:])
    return {name: value for name, value in given.items() if name not in left_out}, len(left_out)


def faults(error: ValidationError, *, known: Iterable[str] = (), more: int = 0) -> str:
    """Return a message about the first faults, and the number of others; known fields are listed once."""
    details = error.errors(include_url=False, include_context=False)
    return joined(first_faults(details, known), max(len(details) - MOST_FAULTS, 0) + more)


def first_faults(details: Sequence[ErrorDetails], known: Iterable[str] = ()) -> list[str]:
    """Return the messages about the first faults; only the first unknown field lists the known ones."""
    named, listed = [], False
    for detail in details[:MOST_FAULTS]:
        again = detail["type"] == UNKNOWN and listed
        named.append(f"{show(_where(detail))[1:-1]}: is no field" if again else fault(detail, known=known))
        listed = listed or detail["type"] == UNKNOWN
    return named


def joined(named: Sequence[str], more: int = 0) -> str:
    """Return faults as one message, with the number of further ones."""
    more += max(len(named) - MOST_FAULTS, 0)
    return "; ".join(named[:MOST_FAULTS]) + (f"; and {more} more faults." if more else ".")


def show(value: Any) -> str:
    """Return a value for an error message, in ASCII and shortened."""
    shown = ""
    for piece in _pieces(value):
        shown += piece
        if len(shown) > SHOWN:
            return f"{shown[:SHOWN]}…"
    return shown


def _where(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"] if part not in ("int", "str"))


def _pieces(value: Any) -> Iterator[str]:
    """Yield the representation of a value in pieces, so that only the beginning of a long one is computed."""
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
