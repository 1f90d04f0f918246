"""The rules by which the stored instants of change were computed."""

from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from workers.storage.connection import Connection, lift_limits

CURRENT = "select rules from fading_rules"

SET = """
    insert into fading_rules (rules) values (%(rules)s)
    on conflict (only_row) do update set rules = excluded.rules
"""

# Forgotten and superseded facts stay out: nothing changes about them any more. That is read from the updated row,
# which alone PostgreSQL checks again after it has waited for a pass that forgets the fact.
ALL_DUE = "update activity set due_at = least(due_at, %(now)s) where not retired and not held"


def current(db: Connection) -> dict[str, Any] | None:
    """Return the rules that the last pass went by, or nothing before the first."""
    row = db.execute(CURRENT).fetchone()
    return None if row is None else dict(row[0])


def replace(db: Connection, rules: dict[str, Any]) -> None:
    """Note the rules that the next pass goes by."""
    db.execute(SET, {"rules": Jsonb(rules)})


def make_all_due(db: Connection, now: datetime) -> int:
    """Make every live fact of every namespace due; return how many there are."""
    lift_limits(db)
    return db.execute(ALL_DUE, {"now": now}).rowcount
