"""What if: settings as they would be, for a forecast that changes nothing."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from workers.context import Context
from workers.core.hygiene import SECTIONS, Document, changed
from workers.errors import InvalidInputError
from workers.settings import Settings

OPERATORS = ("cold_threshold", "forget_limit", "forget_limit_week")
"""Settings that no namespace has of its own."""


def supposed(context: Context, own: Document, given: Sequence[str]) -> tuple[Context, Document]:
    """Return a context and a namespace's settings in which each `PATH=VALUE` holds, as `ebb settings --set` has them.

    Raises:
        InvalidInputError: a setting is unknown, or its value is not allowed.
    """
    values = dict(_assignment(one) for one in given)
    operators = {name: value for name, value in values.items() if name in OPERATORS}
    document = {_whole_path(name): value for name, value in values.items() if name not in OPERATORS}
    try:
        settings = Settings(**(context.settings.model_dump() | operators))
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInputError(f"set: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return Context(settings), changed(own, document, None)


def _whole_path(path: str) -> str:
    """Return the path of a setting of hygiene, whose first name may be left out."""
    return f"hygiene.{path}" if path.split(".", maxsplit=1)[0] in (*SECTIONS, "schedule") else path


def _assignment(given: str) -> tuple[str, Any]:
    path, sign, value = given.partition("=")
    if not sign or not path.strip():
        raise InvalidInputError(f"set: {given!r} is no PATH=VALUE.")
    try:
        return path.strip(), json.loads(value)
    except ValueError:
        return path.strip(), value
