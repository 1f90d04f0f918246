"""What items may be: paths of labels, keys, documents as JSON, and which of them somebody wants."""

import json
from typing import Any

from ebb.contract.faults import show
from ebb.contract.values import LONGEST_FIELD, LONGEST_METADATA

from workers.errors import InvalidInputError
from workers.validation.arguments import optional_name

LONGEST_DOCUMENT = LONGEST_METADATA // 2
MOST_MINUTES = 10**9
OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")


def item_path(given: Any) -> str:
    """Return a path of labels as one text, which that of every path below begins with.

    Raises:
        InvalidInputError: it is no list of texts, or too long.
    """
    if not isinstance(given, list | tuple) or not all(isinstance(label, str) and label for label in given):
        raise InvalidInputError(f"path: {show(given)} is not allowed; give a list of labels, none of them empty.")
    path = "".join(f"{json.dumps(label, ensure_ascii=_escaped(label))}/" for label in given)
    if len(path) > LONGEST_FIELD:
        raise InvalidInputError(f"path: {show(given)} is longer than {LONGEST_FIELD} characters; shorten its labels.")
    return path


def item_place(given: Any) -> str:
    """Return the path at which something is kept, which has a label at least.

    Raises:
        InvalidInputError: it is no list of texts, empty or too long.
    """
    path = item_path(given)
    if not path:
        raise InvalidInputError("path: is empty; give a list of one label or more.")
    return path


def labels(path: str) -> list[str]:
    """Return the labels of a path."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(path):
        label, at = decoder.raw_decode(path, at)
        found.append(label)
        at += 1
    return found


def item_key(given: Any) -> str:
    """Return an item's key.

    Raises:
        InvalidInputError: it is none.
    """
    key = optional_name(given, "key")
    if key is None:
        raise InvalidInputError("key: is missing; give the item's name at its path.")
    return key


def document(given: Any) -> str:
    """Return a document's JSON.

    Raises:
        InvalidInputError: it is no JSON of an object, or too long.
    """
    try:
        is_one = isinstance(given, str) and isinstance(json.loads(given), dict)
    except (ValueError, RecursionError):
        is_one = False
    if not is_one or not given.isascii():
        raise InvalidInputError(f"document: {show(given)} is not allowed; give the JSON of an object, in ASCII.")
    if len(given) > LONGEST_DOCUMENT:
        raise InvalidInputError(f"document: has {len(given)} bytes, more than {LONGEST_DOCUMENT}; split it.")
    return str(given)


def optional_text(given: Any) -> str | None:
    """Return the words by which an item is found, or none.

    Raises:
        InvalidInputError: it is no text.
    """
    if given is not None and not isinstance(given, str):
        raise InvalidInputError(f"text: {show(given)} is no text; give words, or leave it out.")
    return given


def minutes(given: Any) -> float | None:
    """Return how many minutes an item lives after each use, or none.

    Raises:
        InvalidInputError: it is no number above 0, or beyond all calendars.
    """
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= MOST_MINUTES:
        raise InvalidInputError(
            f"ttl: {show(given)} is not allowed; give minutes above 0 and up to {MOST_MINUTES:,}, or leave it out."
        )
    return float(given)


def filters(given: Any) -> dict[str, Any]:
    """Return what an item's fields must be: values, or objects of operators.

    Raises:
        InvalidInputError: it is no object, or names an operator that is none.
    """
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidInputError(f"filter: {show(given)} is not allowed; give an object of fields.")
    for wish in given.values():
        asked = [name for name in wish if name.startswith("$")] if isinstance(wish, dict) else []
        if unknown := [name for name in asked if name not in OPERATORS]:
            raise InvalidInputError(f"filter: {show(unknown[0])} is no operator; known are {', '.join(OPERATORS)}.")
    return dict(given)


def _escaped(label: str) -> bool:
    """Tell whether a label must be written in ASCII, for PostgreSQL cannot store it as it is."""
    return any("\ud800" <= letter <= "\udfff" for letter in label)
