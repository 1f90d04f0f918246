"""What may be linked and related: the names of entities, types of edges, and their weights."""

from typing import Any

from ebb.contract.faults import show
from ebb.contract.values import storable

from workers.errors import InvalidInputError

TYPES = ("SUPERSEDES", "CAUSED_BY", "PART_OF", "RELATED_TO", "DEPENDS_ON")
LONGEST_NAME = 200
LONGEST_TYPE = 64


def entity_name(given: Any, name: str) -> str:
    """Return the name of an entity, trimmed, blanks collapsed.

    Raises:
        InvalidInputError: it is none; `name` says whose value it was.
    """
    return _short_text(given, name, LONGEST_NAME)


def relation_type(given: Any) -> str:
    """Return a relation's type, which is free.

    Raises:
        InvalidInputError: it is no short text.
    """
    return _short_text(given, "type", LONGEST_TYPE)


def related(source: Any, target: Any) -> tuple[str, str]:
    """Return the names of two different entities.

    Raises:
        InvalidInputError: one is no name, or both are the same but for their case.
    """
    one, two = entity_name(source, "from"), entity_name(target, "to")
    if one.lower() == two.lower():
        raise InvalidInputError(f"to: {show(two)} is the entity itself; give two different ones.")
    return one, two


def link_type(given: Any) -> str:
    """Return a link's type, in upper case.

    Raises:
        InvalidInputError: it is none of the five.
    """
    kind = given.strip().upper() if isinstance(given, str) else None
    if kind not in TYPES:
        raise InvalidInputError(f"type: {show(given)} is no type of link; give one of {', '.join(TYPES)}.")
    return kind


def weight(given: Any, name: str) -> float:
    """Return a number in [0, 1].

    Raises:
        InvalidInputError: it is none; `name` says whose value it was.
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give a number from 0 to 1.")
    return float(given)


def flag(given: Any, name: str) -> bool:
    """Return true or false.

    Raises:
        InvalidInputError: it is neither; `name` says whose value it was.
    """
    if not isinstance(given, bool):
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give true or false.")
    return given


def _short_text(given: Any, name: str, longest: int) -> str:
    text = " ".join(given.split()) if isinstance(given, str) else ""
    if not 0 < len(text) <= longest:
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give a text of 1 to {longest} characters.")
    try:
        return str(storable(text))
    except ValueError as error:
        raise InvalidInputError(f"{name}: {error}; given {show(given)}.") from None
