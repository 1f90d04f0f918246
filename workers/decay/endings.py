"""Endings: the facts that end soon without use, with their value, and notices to their owners."""

import logging
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import numpy as np
from ebb.contract.reports import EndingFact

from workers.context import Context
from workers.coordination import signals
from workers.core.fading import GUARD, ends
from workers.core.value import value
from workers.decay.outlook import outlook, visited
from workers.memory.lifetime import Ending, endings_at
from workers.storage import branches, facts, namespaces
from workers.storage.connection import snapshot, transaction

log = logging.getLogger(__name__)

BATCH = 10_000
MOST = 100


def ending(
    context: Context,
    namespace: str,
    days: int,
    now: datetime,
    *,
    by_value: bool,
    most: int = MOST,
    without: AbstractSet[UUID] = frozenset(),
    given: Sequence[str] = (),
) -> list[EndingFact]:
    """Return the facts that end within `days`, other than `without`; most valuable first, or earliest.

    Held facts, which have ended already, are left out. Its cost depends on the number of due facts, or of all facts
    with other settings, such as those `given` as `PATH=VALUE`; what is over by these ends now.
    """
    until = now + timedelta(days=days)
    with snapshot(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return []
        settings = outlook(context, db, tenant, given)
        first: list[tuple[float, UUID, Ending, float]] = []
        for rows in visited(db, tenant, settings, now, until):
            at, reasons = ends(rows.anchors, settings.rules.rules)
            over, at = at <= now.timestamp(), np.maximum(at, now.timestamp())
            ends_now = over & (rows.due_at > now.timestamp() + GUARD)
            others = np.array([id_ not in without for id_ in rows.ids])
            places = np.flatnonzero((~over | ends_now) & (at <= until.timestamp()) & ~rows.held & others)
            order = -rows.value_rank if by_value else at
            found = endings_at(at[places], reasons[places])
            keys = zip(order[places].tolist(), places.tolist(), found, strict=True)
            first += [(key, rows.ids[place], one, float(rows.value_rank[place])) for key, place, one in keys]
            first = sorted(first, key=lambda one: one[:2])[:most]
        texts = facts.excerpts(db, tenant.id, [id_ for _, id_, _, _ in first])
        first = [one for one in first if one[1] in texts]  # others were erased meanwhile
    values = value(np.array([rank for *_, rank in first], np.float64), now.timestamp()).tolist()
    return [
        EndingFact(id=id_, text=texts[id_], ends_at=one.at, ends_for=one.reason, value=round(worth, 4))
        for (_, id_, one, _), worth in zip(first, values, strict=True)
    ]


EVENT = "memory.ending"
WEBHOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Notice:
    """Facts of a namespace that end soon and were in no earlier notice, most valuable first."""

    namespace: str
    sent_at: datetime
    facts: list[EndingFact]

    @property
    def document(self) -> dict[str, Any]:
        """Return the notice as JSON, with the request that keeps its facts."""
        facts = [one.model_dump(mode="json") for one in self.facts]
        ids = [fact["id"] for fact in facts]
        headers = {"X-Ebb-Namespace": self.namespace}
        keep = {"method": "POST", "path": "/memory/held/keep", "headers": headers, "body": {"ids": ids}}
        return {"event": EVENT, "namespace": self.namespace, "facts": facts, "keep": keep}


def notices(context: Context, now: datetime) -> Iterator[Notice]:
    """Yield notices of the facts that end within `EBB_ENDING_NOTICE_DAYS`, each for up to `MOST` facts of a namespace.

    A namespace with more than `BATCH` such facts gets the rest on the next call. Branches get none: their facts only
    show what time would do.
    """
    days = context.settings.ending_notice_days
    with transaction(context.database_url) as db:
        copies = {branch.name for branch in branches.listed(db, None)} if days else set()
        names = [name for name in namespaces.all_names(db) if name not in copies] if days else []
    for name in names:
        noticed = signals.noticed(context.redis, name, now)
        found = ending(context, name, days, now, by_value=True, most=BATCH, without=noticed)
        for begin in range(0, len(found), MOST):
            yield Notice(name, now, found[begin : begin + MOST])


def deliver(context: Context, notice: Notice) -> None:
    """Send a notice to the webhook, if configured; after a failure its facts are in the next notice again."""
    if url := context.settings.ending_webhook:
        try:
            httpx2.post(url, json=notice.document, timeout=WEBHOOK_SECONDS).raise_for_status()
        except httpx2.HTTPError as error:
            log.warning("the webhook for facts that end soon failed, and gets them again later: %s", error)
            return
    ends = {one.id: one.ends_at for one in notice.facts}
    signals.note_noticed(context.redis, notice.namespace, ends, notice.sent_at)
