"""Hygiene settings of an operator or a namespace, and the decay parameters that follow from them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ebb.contract.faults import joined, show
from ebb.contract.values import MOST_DAYS

from workers.errors import InvalidInputError

Document: TypeAlias = dict[str, Any]
"""Settings as nested objects; false switches a section off."""

SECTIONS = ("confidenceDecay", "episodicTTL")
FADING = ("half_life", "cull_floor", "persistent_days", "both_limits", "stale_days")
MOST_TURNS = 10**9
MOST_HELD = 10**15


@dataclass(frozen=True, slots=True)
class Defaults:
    """The operator's defaults: every field, the sections that are off, and whether all hygiene is off."""

    fields: Document
    off: frozenset[str] = frozenset()
    all_off: bool = False


@dataclass(frozen=True, slots=True)
class Hygiene:
    """Hygiene parameters of one namespace, in days and turns; infinite where a section is off.

    With `by_hand`, culling and aging run only when the janitor is called.
    """

    half_life: float = math.inf
    cull_floor: float = 0.0
    persistent_turns: float = math.inf
    persistent_days: float = math.inf
    both_limits: bool = True
    stale_days: float = math.inf
    by_hand: bool = False


def merged(known: Any, given: Any) -> Any:
    """Return settings with others merged over them, field by field; true only re-enables what was false."""
    if given is True:
        return known if isinstance(known, dict) else {}
    if not isinstance(given, dict):
        return given
    under = known if isinstance(known, dict) else {}
    return under | {name: merged(under.get(name), value) for name, value in given.items()}


def without(known: Document, path: list[str]) -> Document:
    """Return settings without the value at a path and without objects that this leaves empty."""
    name, *rest = path
    below = known.get(name)
    left = without(below, rest) if rest and isinstance(below, dict) else below if rest else None
    others = {key: value for key, value in known.items() if key != name}
    return others if left is None or left == {} else others | {name: left}


def effective(defaults: Defaults, own: Document) -> Document | Literal[False]:
    """Return the complete hygiene settings of a namespace; false where all of it or a section is off.

    A section that the namespace sets itself is on, whatever the defaults say.
    """
    given = own.get("hygiene")
    if given is False or (given is None and defaults.all_off):
        return False
    return defaults.fields | (given or {}) | {name: _section(defaults, given or {}, name) for name in SECTIONS}


def _section(defaults: Defaults, given: Document, name: str) -> Document | Literal[False]:
    own = given.get(name)
    if own is False or (own is None and name in defaults.off):
        return False
    return defaults.fields[name] | (own or {})


def parameters(whole: Document | Literal[False]) -> Hygiene:
    """Return the parameters of a complete document."""
    belief, episodes = (whole.get(name) if whole else None for name in SECTIONS)
    chosen: dict[str, Any] = {"by_hand": whole["schedule"] == "manual"} if whole else {}
    if belief:
        chosen |= {"half_life": belief["halfLife"], "cull_floor": belief["cullFloor"]}
    if episodes:
        chosen |= {
            "persistent_turns": episodes["persistentTurns"],
            "persistent_days": episodes["persistentDays"],
            "both_limits": episodes["operator"] == "AND",
            "stale_days": episodes["permanentStaleDays"],
        }
    return Hygiene(**chosen)


def for_passes(own: Hygiene) -> Hygiene:
    """Return the parameters for decay passes and readers: no culling or aging where the janitor is called by hand.

    The schedule `onCapture` only calls the janitor more often; passes run in between.
    """
    return replace(own, cull_floor=0.0, persistent_days=math.inf, both_limits=True) if own.by_hand else own


def fading(own: Hygiene) -> dict[str, Any]:
    """Return the parameters that are decay rules, which a namespace can override."""
    return {name: getattr(own, name) for name in FADING}


Rule = Callable[[Any], str | None]
"""Returns what is wrong with a value, or None."""


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
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


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
    },
    "lifetimes": _one_of("careful", "documented"),
    "notice_updates": lambda value: None if isinstance(value, bool) else "must be true or false",
    "capacity": {"facts": _whole(MOST_HELD), "bytes": _whole(MOST_HELD)},
}
"""The rule for each field; an object may also be false (off) or true (on again)."""


def _paths(rules: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, rule in rules.items():
        yield above + name
        if isinstance(rule, dict):
            yield from _paths(rule, f"{above}{name}.")


PATHS = tuple(_paths(RULES))


def changed(known: Document, given: Document | None, unset: Sequence[str] | None) -> Document:
    """Return a namespace's settings after setting fields, nested or by dotted paths, and unsetting others.

    Raises:
        InvalidInputError: a setting is unknown, its value is not allowed, or it is both set and unset; the first faults
            are listed.
    """
    given, unset, own = given or {}, unset or [], known
    _check(given, unset)
    for path, value in given.items():
        own = merged(own, _at(path.split("."), value))
    for path in unset:
        own = without(own, path.split("."))
    return own


def _check(given: Document, unset: Sequence[str]) -> None:
    if faults := [fault for path, value in given.items() for fault in _faults(path.split("."), value)]:
        raise InvalidInputError(joined(faults))
    if unknown := [path for path in unset if path not in PATHS]:
        raise InvalidInputError(f"unset: {show(unknown)}: no settings of a namespace; known are {', '.join(PATHS)}.")
    if both := [path for path in unset if any(f"{one}.".startswith(f"{path}.") for one in given)]:
        raise InvalidInputError(f"unset: {show(both)}: would also remove what is set; leave out one of them.")


def _at(path: list[str], value: Any) -> Document:
    name, *rest = path
    return {name: _at(rest, value) if rest else value}


def _faults(path: list[str], value: Any) -> Iterator[str]:
    """Yield what is wrong with the value at a path; objects are checked recursively."""
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
