"""Choices: what a namespace's owner has set otherwise, and the turns that its episodes are measured by."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from workers.storage.connection import Connection, lift_limits

OF = "select id, settings, turns from namespaces where id = any(%(ids)b)"

LOCK = "select settings, chosen_at from namespaces where id = %(namespace)s for no key update"

SET = """
    update namespaces set settings = %(settings)s, chosen_at = %(now)s, settings_changed_at = clock_timestamp()
    where id = %(namespace)s
"""

CHANGED = "select id from namespaces where settings_changed_at is not null order by id"

# Whoever began to write before the change may still write by the old settings, for as long as a task may take.
SETTLE = """
    update namespaces set settings_changed_at = null
    where id = any(%(ids)s) and settings_changed_at < clock_timestamp() - interval '2 minutes'
"""

# Forgotten and superseded facts stay out: nothing changes about them any more. That is read from the updated row,
# which alone PostgreSQL checks again after it has waited for a pass that forgets the fact.
ALL_DUE = """
    update activity set due_at = least(due_at, %(now)s)
    where namespace = any(%(ids)s) and not retired and not held
"""


def of(db: Connection, namespaces: Sequence[int]) -> dict[int, tuple[dict[str, Any], int]]:
    """Return by namespace what its owner has set, and how many turns were told."""
    rows = db.execute(OF, {"ids": list(namespaces)}, binary=True)
    return {id_: (settings, turns) for id_, settings, turns in rows.fetchall()}


def lock(db: Connection, namespace: int) -> tuple[dict[str, Any], datetime | None]:
    """Return what a namespace's owner has set, and when, as nobody else changes it before the commit."""
    return db.execute(LOCK, {"namespace": namespace}).fetchone() or ({}, None)


def put(db: Connection, namespace: int, settings: dict[str, Any], now: datetime) -> None:
    """Set what holds in a namespace; the next pass looks at all its facts."""
    db.execute(SET, {"namespace": namespace, "settings": Jsonb(settings), "now": now})


def changed(db: Connection) -> list[int]:
    """Return the namespaces whose settings changed since every fact was looked at by them."""
    return [id_ for (id_,) in db.execute(CHANGED)]


def make_due(db: Connection, namespaces: Sequence[int], now: datetime) -> int:
    """Make every live fact of some namespaces due, once more if the change is too fresh; return how many there are."""
    lift_limits(db)
    due = db.execute(ALL_DUE, {"ids": list(namespaces), "now": now}).rowcount
    db.execute(SETTLE, {"ids": list(namespaces)})
    return due
