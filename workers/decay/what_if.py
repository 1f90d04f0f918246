"""What if: hypothetical settings for a forecast."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from workers.context import Context
from workers.core.hygiene import SECTIONS, Document, changed
from workers.errors import InvalidInputError
from workers.settings import Settings

OPERATORS = ("cold_threshold", "forget_limit", "forget_limit_week")
"""Settings of the operator, which namespaces cannot override."""


def with_settings(context: Context, own: Document, given: Sequence[str]) -> tuple[Context, Document]:
    """Return a context and namespace settings with each `PATH=VALUE` applied, in the format of `ebb settings --set`.

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
    try:
        return Context(settings), changed(own, document, None)
    except InvalidInputError as fault:
        raise InvalidInputError(f"set: {fault} A forecast also takes {', '.join(OPERATORS)}.") from None


def _whole_path(path: str) -> str:
    """Return the full path of a setting; `hygiene.` may be omitted."""
    return f"hygiene.{path}" if path.split(".", maxsplit=1)[0] in (*SECTIONS, "schedule") else path


def _assignment(given: str) -> tuple[str, Any]:
    path, sign, value = given.partition("=")
    if not sign or not path.strip():
        raise InvalidInputError(f"set: {given!r} is no PATH=VALUE.")
    try:
        return path.strip(), json.loads(value)
    except ValueError:
        return path.strip(), value
