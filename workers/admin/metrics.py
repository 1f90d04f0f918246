"""Measure: the figures of the whole system that only the database knows, for whoever watches it."""

from collections import Counter
from datetime import datetime
from typing import Any

from workers.context import Context
from workers.core import fidelity
from workers.core.tiers import Tier
from workers.storage import due, measures
from workers.storage.connection import transaction


def measure(context: Context, now: datetime) -> dict[str, Any]:
    """Return how many facts there are by tier and by fidelity, forgotten and due, and how the last pass went.

    All of it is counted already or read from indexes, so that it may be asked for often.
    """
    tiers, kept, forgotten = Counter[str](), Counter[str](), Counter[str]()
    with transaction(context.database_url) as db:
        rows, oldest, last = measures.held(db), measures.oldest_due(db, now), measures.last_pass(db)
        waiting = sum(due.segments(db, now).values())
    for tier, code, reason, facts in rows:
        if reason is not None:
            forgotten[reason] += facts
        elif tier is not None and code is not None:
            tiers[Tier(tier).name.lower()] += facts
            kept[fidelity.name(code)] += facts
    return {
        "at": now.timestamp(),
        "tiers": {tier.name.lower(): tiers[tier.name.lower()] for tier in Tier},
        "fidelity": {name: kept[name] for name in ("full", "pooled", "fingerprint", "pending")},
        "forgotten": dict(forgotten),
        "due": waiting,
        "oldest_due_seconds": 0.0 if oldest is None else (now - oldest).total_seconds(),
        "last_pass": None if last is None else {"at": last[0].timestamp(), "seconds": last[1], "worked_ms": last[2]},
    }
