"""Lenient loaders: values that Python cannot represent, which earlier versions accepted, are clamped or replaced."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import adapters
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.json import set_json_loads

FIRST = datetime(1, 1, 2, tzinfo=UTC)
LAST = datetime(9999, 12, 30, tzinfo=UTC)
"""Range to which timestamps are clamped; a day within the limits of `datetime`."""

ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACED = "\N{REPLACEMENT CHARACTER}"


def read_leniently(db: psycopg.Connection[Any]) -> None:
    """Make a connection clamp timestamps and replace lone surrogates in JSON."""
    set_json_loads(loads, db)
    for form in (_SaturatingText, _SaturatingBinary):
        db.adapters.register_loader("timestamptz", form)


def loads(text: str | bytes) -> Any:
    """Parse JSON, with lone surrogates replaced."""
    if isinstance(text, bytes):
        text = text.decode()
    value = json.loads(text)
    return _whole(value) if ESCAPED_SURROGATE.search(text) else value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return LONE_SURROGATE.sub(REPLACED, value)
    if isinstance(value, dict):
        return {_whole(name): _whole(one) for name, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


class _Saturating(Loader):
    """Loader of `timestamptz` that clamps values outside of `datetime`'s range."""

    def __init__(self, oid: int, context: Any = None) -> None:
        super().__init__(oid, context)
        original = adapters.get_loader(oid, self.format)
        assert original is not None  # noqa: S101 - psycopg has one for each of its own types
        self._exact = original(oid, context)

    def load(self, data: Buffer) -> Any:
        """Return the timestamp, clamped."""
        try:
            return self._exact.load(data)
        except psycopg.DataError as error:
            return FIRST if "small" in str(error) else LAST


class _SaturatingText(_Saturating):
    format = Format.TEXT


class _SaturatingBinary(_Saturating):
    format = Format.BINARY
