"""Fields of answers that the contract does not declare."""

from collections.abc import Iterator
from typing import Any

from ebb.contract.operation import Answer


def undeclared(value: Any, at: str = "") -> Iterator[str]:
    """Yield the paths of all undeclared fields in an answer, at any depth."""
    if isinstance(value, Answer):
        yield from (f"{at}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from undeclared(getattr(value, name), f"{at}.{name}")
    elif isinstance(value, list):
        for one in value:
            yield from undeclared(one, f"{at}[]")
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from undeclared(one, f"{at}.{name}")
