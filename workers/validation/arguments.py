"""What arguments of tasks may be: names, ids, instants, numbers and queries."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ebb.contract.faults import fault, show
from ebb.contract.values import LONGEST_FIELD, Instant, Tag, storable, unprefixed
from pydantic import (
    BaseModel,
    ValidationError,
)

from workers.errors import InvalidInputError
from workers.validation.words import own_words

NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}")


def namespace_name(given: Any) -> str:
    """Return a namespace's name.

    Raises:
        InvalidInputError: it has characters that no name has, or too many.
    """
    if not isinstance(given, str) or not NAMESPACE.fullmatch(given):
        raise InvalidInputError(
            f"namespace: {show(given)} is no name; use up to 128 letters, digits and . _ : @ / + -, "
            "a letter or digit first."
        )
    return given


def fact_id(given: Any) -> UUID:
    """Return a fact's id from a UUID, with or without the prefix `mem_` that the log writes before it.

    Raises:
        InvalidInputError: it is no UUID.
    """
    try:
        return given if isinstance(given, UUID) else UUID(unprefixed(given))
    except (ValueError, AttributeError, TypeError):
        raise InvalidInputError(f"id: {show(given)} is no UUID; give the id that `store` printed.") from None


def run_id(given: Any) -> UUID:
    """Return the id of a run.

    Raises:
        InvalidInputError: it is no UUID.
    """
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInputError(f"run: {show(given)} is no UUID; give the id that `ebb forgotten` shows.") from None


def fact_ids(given: Any, most: int) -> list[UUID]:
    """Return the ids of up to `most` facts, in order.

    Raises:
        InvalidInputError: it is no list, is empty or too long, or has something else than UUIDs in it.
    """
    if not isinstance(given, list) or not 0 < len(given) <= most:
        raise InvalidInputError(f"ids: {show(given)} is not allowed; give a list of 1 to {most} ids.")
    return [fact_id(one) for one in given]


def instant(given: Any, name: str) -> datetime:
    """Return an instant from ISO 8601 with time zone, a date (its midnight in UTC), or epoch seconds.

    Raises:
        InvalidInputError: it is none of these; `name` says whose value it was.
    """
    try:
        parsed = _Instant.model_validate({"at": given}).at
    except ValidationError as error:
        raise InvalidInputError(f"{name}: {fault(error.errors()[0], named=False)}.") from None
    return parsed.astimezone(UTC)


def query_text(given: Any, max_text: int) -> str:
    """Return what somebody asks.

    Raises:
        InvalidInputError: it is blank, no text, too long, or has NUL characters or lone surrogates.
    """
    if not isinstance(given, str):
        raise InvalidInputError(f"query: {show(given)} is no text; ask in words.")
    try:
        query = own_words(storable(given), "query", max_text)
    except ValueError as error:
        raise InvalidInputError(f"query: {error}; given {show(given)}.") from None
    if not query:
        raise InvalidInputError(f"query: {show(given)} is blank; ask in words.")
    return query


def share(given: Any, name: str) -> float:
    """Return a number in (0, 1].

    Raises:
        InvalidInputError: it is none; `name` says whose value it was.
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give a number above 0 and up to 1.")
    return float(given)


def choice(given: Any, name: str, allowed: Sequence[str]) -> Any:
    """Return one of the allowed words.

    Raises:
        InvalidInputError: it is none of them; `name` says whose value it was.
    """
    if given not in allowed:
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give one of {', '.join(allowed)}.")
    return given


def flag(given: Any, name: str) -> bool:
    """Return true or false.

    Raises:
        InvalidInputError: it is neither; `name` says whose value it was.
    """
    if not isinstance(given, bool):
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give true or false.")
    return given


def names(given: Any, name: str, most: int) -> tuple[str, ...]:
    """Return up to `most` short texts, from a list or from a text with commas.

    Raises:
        InvalidInputError: it is neither, or one of them is blank or too long; `name` says whose value it was.
    """
    parts = [part for part in given.split(",") if part.strip()] if isinstance(given, str) else given
    if not isinstance(parts, list) or len(parts) > most:
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give a list of up to {most} names.")
    found = [optional_name(part, name) for part in parts]
    return tuple(" ".join(part.split()) for part in found if part is not None)


def whole(given: Any, name: str, most: int) -> int:
    """Return a whole number from 1 to `most`.

    Raises:
        InvalidInputError: it is none; `name` says whose value it was.
    """
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        raise InvalidInputError(f"{name}: {show(given)} is not allowed; give a whole number from 1 to {most}.")
    return given


def required_name(given: Any, name: str) -> str:
    """Return a short text.

    Raises:
        InvalidInputError: it is none; `name` says whose value it was.
    """
    if given is None:
        raise InvalidInputError(f"{name}: is missing; give a text of 1 to {LONGEST_FIELD} characters.")
    return str(optional_name(given, name))


def optional_tag(given: Any) -> str | None:
    """Return a tag as tags are stored, or nothing.

    Raises:
        InvalidInputError: it is no text, blank or too long, or has a comma, for it names one tag.
    """
    if given is None:
        return None
    try:
        return _OneTag.model_validate({"tag": given}).tag
    except ValidationError as error:
        raise InvalidInputError(f"tag: {fault(error.errors()[0], named=False)}.") from None


def optional_name(given: Any, name: str) -> str | None:
    """Return a short text or nothing.

    Raises:
        InvalidInputError: it is neither; `name` says whose value it was.
    """
    if given is None:
        return None
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST_FIELD:
        raise InvalidInputError(
            f"{name}: {show(given)} is not allowed; give a text of 1 to {LONGEST_FIELD} characters."
        )
    try:
        return str(storable(given))
    except ValueError as error:
        raise InvalidInputError(f"{name}: {error}; given {show(given)}.") from None


class _Instant(BaseModel):
    at: Instant


class _OneTag(BaseModel):
    tag: Tag
