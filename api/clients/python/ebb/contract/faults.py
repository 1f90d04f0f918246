"""Sentences that say what is wrong with given values."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

MOST_FAULTS = 20
"""How many faults are named; of the others their number."""

SHOWN = 80
"""The most characters of a given value that a sentence shows."""

UNKNOWN = "extra_forbidden"
NO_OBJECT = ("dict_type", "model_type", "model_attributes_type", "dataclass_type")


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
