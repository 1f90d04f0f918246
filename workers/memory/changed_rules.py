"""Changed settings: in which namespaces the next pass computes every fact again."""

from typing import Any

from workers.context import Context
from workers.core.hygiene import effective
from workers.storage import due, namespaces
from workers.storage.connection import Connection


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
