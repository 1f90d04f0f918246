"""Cursors: opaque texts that mark where the next page of a listing starts."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from datetime import datetime
from typing import Any, TypeVar

from ebb.contract.faults import show
from ebb.contract.values import LONGEST_CURSOR, storable
from pydantic import TypeAdapter, ValidationError

from workers.errors import InvalidInputError

Row = TypeVar("Row")
Place = TypeVar("Place")
"""A frozen dataclass: the sort key of the last row of a page."""


def following(place: Any) -> str | None:
    """Return the cursor after a place in a listing, as text for a URL; None at the end."""
    if place is None:
        return None
    said = json.dumps([_listing(type(place)), *astuple(place)], default=str, separators=(",", ":"))
    return urlsafe_b64encode(said.encode()).decode().rstrip("=")


def page(found: Sequence[Row], limit: int, after: Callable[[Row], Any]) -> tuple[Sequence[Row], str | None]:
    """Return the rows of a page and the cursor of the next, as of a listing that was read with one row more."""
    shown = found[:limit]
    return shown, following(after(shown[-1])) if len(found) > limit else None


def place(given: Any, kind: type[Place]) -> Place | None:
    """Return the place that a cursor of this listing encodes, or None without cursor.

    Raises:
        InvalidInputError: it is not a cursor of this listing.
    """
    if given is None:
        return None
    try:
        return _read(given, kind)
    except (ValueError, TypeError, RecursionError, ValidationError):
        raise InvalidInputError(
            f"cursor: {show(given)} is none of this listing; give the `next` of its page before, or leave it out to "
            "begin again."
        ) from None


def _read(given: Any, kind: type[Place]) -> Place:
    if not isinstance(given, str) or len(given) > LONGEST_CURSOR:
        raise ValueError("no text, or too long")
    name, *values = json.loads(urlsafe_b64decode(given.encode() + b"=" * (-len(given) % 4)))
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass
    if name != _listing(kind):
        raise ValueError("of another listing")
    known = TypeAdapter(kind).validate_python(dict(zip(names, map(storable, values), strict=True)))
    if any(isinstance(one, datetime) and one.tzinfo is None for one in astuple(known)):  # type: ignore[call-overload]  # always a dataclass
        raise ValueError("an instant without time zone")
    return known


def _listing(kind: type[Any]) -> str:
    """Return the name of the listing that has these places: those of its module and class."""
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"
