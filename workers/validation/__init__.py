"""Validation of single values by the contract's rules: namespaces, ids, instants and names."""

import re
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from ebb.contract.faults import fault
from ebb.contract.values import FactId, Instant, Name, Namespace
from pydantic import ConfigDict, TypeAdapter, ValidationError

from workers.errors import InvalidInputError

Value = TypeVar("Value")

DEFERRED = ConfigDict(defer_build=True)
NAMESPACE: TypeAdapter[str] = TypeAdapter(Namespace, config=DEFERRED)
FACT_ID: TypeAdapter[UUID] = TypeAdapter(FactId, config=DEFERRED)
INSTANT: TypeAdapter[datetime] = TypeAdapter(Instant, config=DEFERRED)
NAME: TypeAdapter[str | None] = TypeAdapter(Name | None, config=DEFERRED)

BRANCH = re.compile(r".+-older-\d+d")
"""Names of branches. Users who choose their names could take that of a coming copy of another namespace."""


def namespace_name(given: Any) -> str:
    """Return a namespace's name.

    Raises:
        InvalidInputError: it has characters that are not allowed, or too many.
    """
    return _read(NAMESPACE, given, "namespace")


def fact_id(given: Any) -> UUID:
    """Return a fact's id from a UUID, with or without the prefix `mem_` of log files.

    Raises:
        InvalidInputError: it is not a UUID.
    """
    return _read(FACT_ID, given, "id")


def instant(given: Any, name: str) -> datetime:
    """Return an instant from ISO 8601 with time zone, a date (its midnight in UTC), or epoch seconds.

    Raises:
        InvalidInputError: it is none of these; `name` is the field for the message.
    """
    return _read(INSTANT, given, name)


def optional_name(given: Any, name: str) -> str | None:
    """Return a short text or None.

    Raises:
        InvalidInputError: it is neither; `name` is the field for the message.
    """
    return _read(NAME, given, name)


def _read(kind: TypeAdapter[Value], given: Any, name: str) -> Value:
    try:
        return kind.validate_python(given)
    except ValidationError as error:
        raise InvalidInputError(f"{name}: {fault(error.errors()[0], named=False)}.") from None
