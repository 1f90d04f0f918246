"""Notices: owners hear of facts that end soon, once of each, and with it how to keep them."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx2

from workers.context import Context
from workers.coordination import signals
from workers.decay.endings import EndingFact, ending
from workers.storage import namespaces
from workers.storage.connection import transaction

log = logging.getLogger(__name__)

EVENT = "memory.ending"
MOST = 100
"""Maximum number of facts in a notice, the most valuable ones."""

WEBHOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Notice:
    """The facts of a namespace that end until an instant and were in no earlier notice, most valuable first."""

    namespace: str
    until: datetime
    facts: list[EndingFact]

    @property
    def document(self) -> dict[str, Any]:
        """Return the notice as JSON, with the request that keeps its facts."""
        facts = [
            {
                "id": str(one.id),
                "text": one.text,
                "ends_at": None if one.ending.at is None else one.ending.at.isoformat(),
                "ends_for": one.ending.reason,
                "value": round(one.value, 4),
            }
            for one in self.facts
        ]
        ids = [fact["id"] for fact in facts]
        keep = {"method": "POST", "path": "/memory/held/keep", "body": {"namespace": self.namespace, "ids": ids}}
        return {"event": EVENT, "namespace": self.namespace, "facts": facts, "keep": keep}


def waiting(context: Context, now: datetime) -> Iterator[Notice]:
    """Yield a notice for each namespace with facts that end within `EBB_ENDING_NOTICE_DAYS`."""
    days = context.settings.ending_notice_days
    with transaction(context.database_url) as db:
        names = namespaces.all_names(db) if days else []
    for name in names:
        noticed = signals.noticed_until(context.redis, name)
        found = ending(context, name, days, now, by_value=True, most=MOST, after=noticed)
        if found:
            yield Notice(name, now + timedelta(days=days), found)


def deliver(context: Context, notice: Notice) -> None:
    """Send a notice to the webhook, if configured; after a failure its facts are in the next notice again."""
    if url := context.settings.ending_webhook:
        try:
            httpx2.post(url, json=notice.document, timeout=WEBHOOK_SECONDS).raise_for_status()
        except httpx2.HTTPError as error:
            log.warning("the webhook for facts that end soon failed, and gets them again later: %s", error)
            return
    signals.note_noticed(context.redis, notice.namespace, notice.until)
