"""Choose: a namespace's owner sets how its own memory is kept; no other namespace notices (H21-H25, H38)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from workers import validation
from workers.context import Context
from workers.core.hygiene import Document, effective
from workers.errors import InvalidInputError
from workers.storage import choices, namespaces
from workers.storage.connection import transaction


@dataclass(frozen=True, slots=True)
class Chosen:
    """What holds in a namespace, what of that it has set itself, and whether that was changed just now."""

    settings: Document
    own: Document
    changed: bool


def chosen(context: Context, namespace: str) -> Chosen:
    """Return what holds in a namespace."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
    return _shown(context, {} if tenant is None else tenant.settings, changed=False)


def choose(context: Context, namespace: str, given: Any, unset: Any, now: datetime) -> Chosen:
    """Set some settings of a namespace and unset others; return what holds then. Repeating it changes nothing.

    What follows for its facts comes with the next pass.

    Raises:
        InvalidInputError: a setting is unknown, its value is not allowed, or others were chosen after `now`; nothing
            was changed.
    """
    validation.changed_settings({}, given, unset)
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace)
        known, chosen_at = choices.lock(db, tenant.id)
        if chosen_at is not None and chosen_at > now:
            raise InvalidInputError(f"set: others were chosen at {chosen_at}, later than these at {now}; choose again.")
        own = validation.changed_settings(known, given, unset)
        if own != known:
            choices.put(db, tenant.id, own, now)
    return _shown(context, own, changed=own != known)


def _shown(context: Context, own: Document, *, changed: bool) -> Chosen:
    return Chosen({"hygiene": effective(context.settings.hygiene_defaults, own)}, own, changed)
