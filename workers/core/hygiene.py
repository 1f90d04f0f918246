"""The settings of hygiene, as an operator names them, and the numbers that follow from them."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

Document: TypeAlias = dict[str, Any]
"""Settings as they are written: objects in objects, or false where a whole is switched off."""

SECTIONS = ("confidenceDecay", "episodicTTL")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds where a namespace says nothing: every field, which sections are off, and whether all of it is."""

    fields: Document
    off: frozenset[str] = frozenset()
    all_off: bool = False


@dataclass(frozen=True, slots=True)
class Hygiene:
    """The numbers of one namespace, in days and turns; infinite where a branch is switched off.

    `by_hand` is whether the janitor alone culls and ages, when its owner calls it.
    """

    half_life: float = math.inf
    cull_floor: float = 0.0
    persistent_turns: float = math.inf
    persistent_days: float = math.inf
    both_limits: bool = True
    stale_days: float = math.inf
    by_hand: bool = False


def merged(known: Any, given: Any) -> Any:
    """Return settings with others laid over them, field by field; true takes back a false, and no more."""
    if given is True:
        return known if isinstance(known, dict) else {}
    if not isinstance(given, dict):
        return given
    under = known if isinstance(known, dict) else {}
    return under | {name: merged(under.get(name), value) for name, value in given.items()}


def without(known: Document, path: list[str]) -> Document:
    """Return settings without what stands at a path, nor the objects that are empty by that."""
    name, *rest = path
    below = known.get(name)
    left = without(below, rest) if rest and isinstance(below, dict) else below if rest else None
    others = {key: value for key, value in known.items() if key != name}
    return others if left is None or left == {} else others | {name: left}


def effective(defaults: Defaults, own: Document) -> Document | Literal[False]:
    """Return the whole hygiene of a namespace with settings of its own: each section complete, or false.

    What it says anything about is switched on, whatever holds elsewhere.
    """
    given = own.get("hygiene")
    if given is False or (given is None and defaults.all_off):
        return False
    return defaults.fields | (given or {}) | {name: _section(defaults, given or {}, name) for name in SECTIONS}


def _section(defaults: Defaults, given: Document, name: str) -> Document | Literal[False]:
    own = given.get(name)
    if own is False or (own is None and name in defaults.off):
        return False
    complete: Document = defaults.fields[name] | (own or {})
    return complete


def numbers(whole: Document | Literal[False]) -> Hygiene:
    """Return what a complete document comes to."""
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


def by_passes(own: Hygiene) -> Hygiene:
    """Return the numbers that passes and readers go by: without culling and aging where the janitor is called by hand.

    The schedule `onCapture` calls the janitor more often; passes do in between what it does.
    """
    return replace(own, cull_floor=0.0, persistent_days=math.inf, both_limits=True) if own.by_hand else own
