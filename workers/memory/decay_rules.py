"""Terms: by what the facts of each namespace fade, where settings of its own differ from those of the whole."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workers.context import Context
from workers.core.arrays import Floats, Ints
from workers.core.fading import FadingRules
from workers.core.hygiene import Hygiene, by_passes, effective, numbers
from workers.storage import choices
from workers.storage.connection import Connection

BY_NAMESPACE = ("half_life", "cull_floor", "persistent_days", "both_limits", "stale_days")
"""The rules that a namespace may have otherwise."""


@dataclass(frozen=True, slots=True)
class Terms:
    """By what n facts fade: their rules, how many turns were told in all, and how many their episodes outlive."""

    rules: FadingRules
    turns: Ints
    most_turns: Floats


def hygiene(context: Context, own: dict[str, Any]) -> Hygiene:
    """Return the numbers of a namespace that has such settings of its own."""
    return numbers(effective(context.settings.hygiene_defaults, own)) if own else context.hygiene


def rules_of(context: Context, own: Hygiene) -> FadingRules:
    """Return by which rules the facts of one namespace fade."""
    rules = by_passes(own)
    return replace(context.rules, **{name: getattr(rules, name) for name in BY_NAMESPACE})


def terms(context: Context, db: Connection, namespaces: Ints, *, janitor: bool = False) -> Terms:
    """Return by what n facts fade that belong to these namespaces, or by what the janitor ends them."""
    tenants, places = np.unique(namespaces, return_inverse=True)
    known = choices.of(db, tenants.tolist())
    own = [hygiene(context, known[id_][0]) for id_ in tenants.tolist()]
    turns = np.array([known[id_][1] for id_ in tenants.tolist()], dtype=np.int64)
    most = np.array([one.persistent_turns for one in own], dtype=np.float64)
    rules = own if janitor else [by_passes(one) for one in own]
    return Terms(_rules(context, rules, places), turns[places], most[places])


def rules_of_each(context: Context, own: Sequence[Hygiene]) -> FadingRules:
    """Return by which rules n facts fade whose namespaces have these numbers, one for each fact."""
    return _rules(context, own, np.arange(len(own)))


def _rules(context: Context, own: Sequence[Hygiene], places: Ints) -> FadingRules:
    if all(one == by_passes(context.hygiene) for one in own):
        return context.rules
    columns: dict[str, Any] = {name: np.array([getattr(one, name) for one in own])[places] for name in BY_NAMESPACE}
    return replace(context.rules, **columns)


def rules_for(context: Context, db: Connection, namespaces: Ints) -> FadingRules:
    """Return by which rules n facts fade that belong to these namespaces."""
    return terms(context, db, namespaces).rules
