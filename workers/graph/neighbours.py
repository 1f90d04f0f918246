"""Neighbours: the facts that one is linked with, and what links these with each other."""

from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from workers.context import Context
from workers.storage import events, facts, links, namespaces
from workers.storage.connection import reading

LENGTH = 120
"""Characters of a neighbour's text."""


def neighbours(context: Context, namespace: str, id_: UUID, most: int, now: datetime) -> dict[str, Any]:
    """Return up to `most` facts that one is linked with, by the strongest links, and all links among them.

    What it took the place of, and what took its place, counts as linked with it. Forgotten facts are not there.
    """
    with reading(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        account = None if tenant is None else events.account(db, tenant.id, id_, now)
        if tenant is None or account is None:
            return {"facts": [], "links": [], "total": 0}
        own = links.strongest(db, tenant.id, id_, most)
        total = links.count(db, tenant.id, id_)
        others = {one.source if one.target == id_ else one.target for one in own}
        joined = {one for one in (account.supersedes_id, account.superseded_by) if one is not None}
        texts = facts.beginnings(db, tenant.id, [*others, *joined], LENGTH)
        among = links.among(db, tenant.id, [*others])
    succession = [
        {"source": str(newer), "target": str(older), "type": "SUPERSEDES", "strength": 1.0}
        for newer, older in ((id_, account.supersedes_id), (account.superseded_by, id_))
        if newer in {id_, *texts} and older in {id_, *texts}
    ]
    told = [
        {name: str(value) if isinstance(value, UUID) else value for name, value in asdict(one).items()}
        for one in [*own, *among]
    ]
    for one in told:
        del one["created_at"]
    known = {(one["source"], one["target"], one["type"]) for one in told}
    told += [one for one in succession if (one["source"], one["target"], one["type"]) not in known]
    return {"facts": [{"id": str(one), "text": text} for one, text in texts.items()], "links": told, "total": total}
