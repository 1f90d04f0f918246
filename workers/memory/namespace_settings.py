"""The settings of a namespace, and the decay rules that follow from them where they differ from the defaults."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from ebb.contract.admin import ChangeSettings

from workers.context import Context
from workers.core.arrays import Floats, Ints
from workers.core.fading import FadingRules
from workers.core.hygiene import Document, Hygiene, by_passes, changed, effective, numbers
from workers.errors import InvalidInputError
from workers.storage import namespaces
from workers.storage.connection import Connection, transaction

BY_NAMESPACE = ("half_life", "cull_floor", "persistent_days", "both_limits", "stale_days")
"""The rules that a namespace may have otherwise."""

NOT_FADING = {"capacity": None, "notice_updates": None}
"""Settings that change nothing of when facts fade."""


@dataclass(frozen=True, slots=True)
class NamespaceRules:
    """The decay rules of n facts, the turns of their namespaces so far, and after how many turns their episodes end."""

    rules: FadingRules
    turns: Ints
    most_turns: Floats


def hygiene(context: Context, own: dict[str, Any]) -> Hygiene:
    """Return the numbers of a namespace that has such settings of its own."""
    return numbers(effective(context.settings.hygiene_defaults, own)) if own else context.hygiene


def careful(context: Context, own: Document) -> bool:
    """Return whether words alone give no short lifetime in a namespace that has such settings of its own."""
    return bool(own.get("lifetimes", context.settings.lifetimes) == "careful")


def notices_updates(context: Context, own: Document) -> bool:
    """Return whether newer statements rank above outdated ones in a namespace that has such settings of its own."""
    noticed = bool(own.get("notice_updates", context.settings.notice_updates))
    return noticed and context.settings.ranking == "default"


def rules_of(context: Context, own: Hygiene) -> FadingRules:
    """Return by which rules the facts of one namespace fade."""
    rules = by_passes(own)
    return replace(context.rules, **{name: getattr(rules, name) for name in BY_NAMESPACE})


def namespace_rules(context: Context, db: Connection, owners: Ints, *, janitor: bool = False) -> NamespaceRules:
    """Return by what n facts fade that belong to these namespaces, or by what the janitor ends them."""
    tenants, places = np.unique(owners, return_inverse=True)
    known = namespaces.settings_of(db, tenants.tolist())
    own = [hygiene(context, known[id_][0]) for id_ in tenants.tolist()]
    turns = np.array([known[id_][1] for id_ in tenants.tolist()], dtype=np.int64)
    most = np.array([one.persistent_turns for one in own], dtype=np.float64)
    rules = own if janitor else [by_passes(one) for one in own]
    return NamespaceRules(_rules(context, rules, places), turns[places], most[places])


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
    return namespace_rules(context, db, namespaces).rules


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """What holds in a namespace, what of that it has set itself, and whether that was changed just now."""

    settings: Document
    own: Document
    changed: bool


def settings_of(context: Context, namespace: str) -> NamespaceSettings:
    """Return what holds in a namespace."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
    return _shown(context, {} if tenant is None else tenant.settings, changed=False)


def change(context: Context, asked: ChangeSettings, now: datetime) -> NamespaceSettings:
    """Set some settings of a namespace and unset others; return what holds then. Repeating it changes nothing.

    What follows for its facts comes with the next pass.

    Raises:
        InvalidInputError: a setting is unknown, its value is not allowed, or others were chosen after `now`; nothing
            was changed.
    """
    changed({}, asked.set, asked.unset)
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, asked.namespace)
        known, chosen_at = namespaces.lock_settings(db, tenant.id)
        if chosen_at is not None and chosen_at > now:
            raise InvalidInputError(f"set: others were chosen at {chosen_at}, later than these at {now}; choose again.")
        own = changed(known, asked.set, asked.unset)
        if own != known:
            fading = own | NOT_FADING != known | NOT_FADING
            namespaces.put_settings(db, tenant.id, own, now, fading=fading)
    return _shown(context, own, changed=own != known)


def _shown(context: Context, own: Document, *, changed: bool) -> NamespaceSettings:
    whole = {
        "hygiene": effective(context.settings.hygiene_defaults, own),
        "lifetimes": own.get("lifetimes", context.settings.lifetimes),
        "notice_updates": own.get("notice_updates", context.settings.notice_updates),
        "capacity": {"facts": None, "bytes": None} | (own.get("capacity") or {}),
    }
    return NamespaceSettings(whole, own, changed)
