"""The settings of namespaces, the decay rules that follow from them, and where a pass has yet to apply changed ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from ebb.contract.admin import ChangeSettings, NamespaceSettings

from workers.context import Context
from workers.core.arrays import Floats, Ints
from workers.core.fading import FadingRules
from workers.core.hygiene import FADING, Document, Hygiene, changed, effective, fading, for_passes, parameters
from workers.errors import InvalidInputError
from workers.storage import due, namespaces
from workers.storage.connection import Connection, transaction

NOT_FADING = {"capacity": None, "notice_updates": None}
"""Settings that do not affect decay."""


@dataclass(frozen=True, slots=True)
class NamespaceRules:
    """The decay rules of n facts, and the number of turns and turn limit of each fact's namespace."""

    rules: FadingRules
    turns: Ints
    most_turns: Floats


def hygiene(context: Context, own: dict[str, Any]) -> Hygiene:
    """Return the hygiene numbers of a namespace with these settings."""
    return parameters(effective(context.settings.hygiene_defaults, own)) if own else context.hygiene


def careful(context: Context, own: Document) -> bool:
    """Return whether words alone never give a short lifetime in a namespace with these settings."""
    return bool(own.get("lifetimes", context.settings.lifetimes) == "careful")


def notices_updates(context: Context, own: Document) -> bool:
    """Return whether newer statements rank above outdated ones in a namespace with these settings."""
    noticed = bool(own.get("notice_updates", context.settings.notice_updates))
    return noticed and context.settings.ranking == "default"


def rules_of(context: Context, own: Hygiene, *, janitor: bool = False) -> FadingRules:
    """Return the decay rules of one namespace; `janitor` gives the rules of the janitor."""
    return replace(context.rules, **fading(own if janitor else for_passes(own)))


def namespace_rules(context: Context, db: Connection, owners: Ints, *, janitor: bool = False) -> NamespaceRules:
    """Return the decay rules of n facts by their namespaces; `janitor` gives the rules of the janitor."""
    tenants, places = np.unique(owners, return_inverse=True)
    known = namespaces.settings_of(db, tenants.tolist())
    own = [hygiene(context, known[id_][0]) for id_ in tenants.tolist()]
    turns = np.array([known[id_][1] for id_ in tenants.tolist()], dtype=np.int64)
    most = np.array([one.persistent_turns for one in own], dtype=np.float64)
    rules = own if janitor else [for_passes(one) for one in own]
    return NamespaceRules(_rules(context, rules, places), turns[places], most[places])


def rules_of_each(context: Context, own: Sequence[Hygiene]) -> FadingRules:
    """Return the decay rules of n facts, given the hygiene numbers of each."""
    return _rules(context, [for_passes(one) for one in own], np.arange(len(own)))


def _rules(context: Context, own: Sequence[Hygiene], places: Ints) -> FadingRules:
    if all(one == for_passes(context.hygiene) for one in own):
        return context.rules
    columns: dict[str, Any] = {name: np.array([getattr(one, name) for one in own])[places] for name in FADING}
    return replace(context.rules, **columns)


def rules_for(context: Context, db: Connection, namespaces: Ints) -> FadingRules:
    """Return the decay rules of n facts by their namespaces."""
    return namespace_rules(context, db, namespaces).rules


def rules_in_words(context: Context) -> dict[str, Any]:
    """Return the default decay rules, as JSON."""
    return {
        "widest_bucket": context.rules.widest_bucket,
        "cold_threshold": context.rules.cold_threshold,
        "hygiene": effective(context.settings.hygiene_defaults, {}),
    }


def unapplied(context: Context, db: Connection, tenant: int | None) -> list[int]:
    """Return the namespaces, or `tenant` alone, whose facts a pass would compute again by changed settings."""
    changed = namespaces.with_changed_settings(db)
    if due.rules(db) not in (None, rules_in_words(context)):
        changed = namespaces.all_ids(db)
    return [one for one in changed if tenant in (None, one)]


def settings_of(context: Context, namespace: str) -> NamespaceSettings:
    """Return the settings of a namespace."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
    return _shown(context, {} if tenant is None else tenant.settings, changed=False)


def change(context: Context, asked: ChangeSettings, now: datetime) -> NamespaceSettings:
    """Set and unset settings of a namespace; return the result. Idempotent.

    The next pass applies them to existing facts.

    Raises:
        InvalidInputError: a setting is unknown, its value is not allowed, or they were changed after `now`; nothing
            was changed.
    """
    changed({}, asked.set, asked.unset)
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, asked.namespace)
        known, chosen_at = namespaces.lock_settings(db, tenant.id)
        if chosen_at is not None and chosen_at > now and context.may_be_later(db, chosen_at):
            raise InvalidInputError(f"set: others were chosen at {chosen_at}, later than these at {now}; choose again.")
        own = changed(known, asked.set, asked.unset)
        if own != known:
            namespaces.put_settings(db, tenant.id, own, now, fading=affects_decay(known, own))
    return _shown(context, own, changed=own != known)


def affects_decay(known: Document, own: Document) -> bool:
    """Return whether a change of a namespace's settings affects decay."""
    return own | NOT_FADING != known | NOT_FADING


def _shown(context: Context, own: Document, *, changed: bool) -> NamespaceSettings:
    whole = {
        "hygiene": effective(context.settings.hygiene_defaults, own),
        "lifetimes": own.get("lifetimes", context.settings.lifetimes),
        "notice_updates": own.get("notice_updates", context.settings.notice_updates),
        "capacity": {"facts": None, "bytes": None} | (own.get("capacity") or {}),
    }
    return NamespaceSettings(settings=whole, own=own, changed=changed, limits=context.settings.limits)
