"""Endings: the facts that end soon without use, with their value, and notices to their owners."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core.fading import ends
from workers.core.value import value
from workers.memory.lifetime import Ending, endings_at
from workers.memory.namespace_settings import hygiene, rules_of
from workers.storage import due, facts, namespaces
from workers.storage.connection import snapshot

BATCH = 10_000
MOST = 100


@dataclass(frozen=True, slots=True)
class EndingFact:
    """A fact that ends soon: the beginning of its text, its ending, and its value in [0, 1]."""

    id: UUID
    text: str
    ending: Ending
    value: float


def ending(
    context: Context,
    namespace: str,
    days: int,
    now: datetime,
    *,
    by_value: bool,
    most: int = MOST,
    after: datetime | None = None,
) -> list[EndingFact]:
    """Return the facts that end within `days`, and later than `after`; most valuable first, or earliest.

    Held facts, which have ended already, are left out. Its cost depends on the number of due facts.
    """
    until, begin = now + timedelta(days=days), max(now, after or now)
    with snapshot(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return []
        rules = rules_of(context, hygiene(context, tenant.settings))
        first: list[tuple[float, UUID, Ending, float]] = []
        for rows in due.coming(db, tenant.id, until, BATCH):
            at, reasons = ends(rows.anchors, rules)
            places = np.flatnonzero((at > begin.timestamp()) & (at <= until.timestamp()) & ~rows.held)
            order = -rows.value_rank if by_value else at
            found = endings_at(at[places], reasons[places])
            keys = zip(order[places].tolist(), places.tolist(), found, strict=True)
            first += [(key, rows.ids[place], one, float(rows.value_rank[place])) for key, place, one in keys]
            first = sorted(first, key=lambda one: one[:2])[:most]
        texts = facts.beginnings(db, tenant.id, [id_ for _, id_, _, _ in first])
    values = value(np.array([rank for *_, rank in first], np.float64), now.timestamp()).tolist()
    return [EndingFact(id_, texts[id_], one, worth) for (_, id_, one, _), worth in zip(first, values, strict=True)]
