"""What settings of a namespace may be; each fault is told by its path, what is allowed, and what was given (C-H5)."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from ebb.contract.faults import joined, show

from workers.core.hygiene import Document, merged, without
from workers.errors import InvalidInputError

MOST_DAYS = 36_525
MOST_TURNS = 10**9

Rule = Callable[[Any], str | None]
"""Says what a value must be, if it is not."""


def _positive(most: float) -> Rule:
    def rule(value: Any) -> str | None:
        if not _is_number(value):
            return "must be a number"
        return "must be > 0" if value <= 0 else f"must be at most {most}" if value > most else None

    return rule


def _whole(most: int) -> Rule:
    def rule(value: Any) -> str | None:
        fault = _positive(most)(value)
        return fault or (None if value == int(value) else "must be a whole number")

    return rule


def _floor(value: Any) -> str | None:
    if not _is_number(value):
        return "must be a number"
    return None if 0 <= value < 1 else "must be in [0, 1)"


def _one_of(*names: str) -> Rule:
    allowed = ", ".join(repr(name) for name in names[:-1]) + f" or {names[-1]!r}"
    return lambda value: None if value in names and isinstance(value, str) else f"must be {allowed}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


RULES: dict[str, Any] = {
    "hygiene": {
        "confidenceDecay": {"halfLife": _positive(MOST_DAYS), "cullFloor": _floor},
        "episodicTTL": {
            "persistentTurns": _whole(MOST_TURNS),
            "persistentDays": _positive(MOST_DAYS),
            "operator": _one_of("OR", "AND"),
            "permanentStaleDays": _positive(MOST_DAYS),
        },
        "schedule": _one_of("onConsolidation", "onCapture", "manual"),
    }
}
"""What each field must be; an object may be given as false, which switches it off, or true, which takes that back."""


def _paths(rules: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, rule in rules.items():
        yield above + name
        if isinstance(rule, dict):
            yield from _paths(rule, f"{above}{name}.")


PATHS = tuple(_paths(RULES))


def changed_settings(known: Document, given: Any, unset: Any) -> Document:
    """Return a namespace's settings after fields were set, given nested or by dotted paths, and others unset.

    Raises:
        InvalidInputError: a setting is unknown or its value is not allowed; all faults are named.
    """
    laid = known
    for one in _nested(given):
        laid = merged(laid, one)
    for path in _unset_paths(unset):
        laid = without(laid, path.split("."))
    return laid


def _nested(given: Any) -> list[Document]:
    if given is None:
        return []
    if not isinstance(given, dict):
        raise InvalidInputError(f"set: {show(given)} is no object; give fields by their paths, such as {PATHS[2]}.")
    faults = [fault for path, value in given.items() for fault in _faults(str(path).split("."), value)]
    if faults:
        raise InvalidInputError(joined(faults))
    return [_at(path.split("."), value) for path, value in given.items()]


def _at(path: list[str], value: Any) -> Document:
    name, *rest = path
    return {name: _at(rest, value) if rest else value}


def _faults(path: list[str], value: Any) -> Iterator[str]:
    """Yield what is wrong with a value at a path, and with what is in it if it is an object."""
    rule: Any = RULES
    for name in path:
        rule = rule.get(name) if isinstance(rule, dict) else None
    where = ".".join(path)
    if rule is None:
        yield f"{show(where)[1:-1]} is no setting of a namespace; known are {', '.join(PATHS)}"
    elif not isinstance(rule, dict):
        if wanted := rule(value):
            yield f"{where} {wanted}, got {show(value)}"
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from _faults([*path, str(name)], below)
    elif not isinstance(value, bool):
        yield f"{where} must be false, true or an object, got {show(value)}"


def _unset_paths(given: Any) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(path in PATHS for path in given):
        unknown = [path for path in given if path not in PATHS] if isinstance(given, list) else given
        raise InvalidInputError(f"unset: {show(unknown)}: no settings of a namespace; known are {', '.join(PATHS)}.")
    return given
