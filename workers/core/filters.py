"""Filters: whether the fields of a document are what somebody wants, by values or by operators."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def satisfies(value: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether each wanted field of an object is as wanted; objects within are compared field by field."""
    return isinstance(value, Mapping) and all(_is(value.get(name), wish) for name, wish in wanted.items())


def _is(value: Any, wish: Any) -> bool:
    if not isinstance(wish, Mapping):
        return bool(value == wish)
    if any(name.startswith("$") for name in wish):
        return all(_holds(value, name, bound) for name, bound in wish.items())
    return satisfies(value, wish)


def _holds(value: Any, name: str, bound: Any) -> bool:
    """Return whether a comparison holds; what cannot be compared with the bound does not satisfy it."""
    try:
        return bool(COMPARISONS[name](value, bound))
    except (KeyError, TypeError):
        return False
