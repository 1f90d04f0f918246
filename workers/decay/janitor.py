"""Janitor: hygiene of one namespace at once. What passes do to all over time it does to one, and reports it.

It is a pass over the facts of the namespace that are due: those with too little confidence are culled, episodes
age out, and permanent ones that were silent for long get stale. No model is asked.
"""

from datetime import datetime
from uuid import UUID

from workers.context import Context
from workers.core.fading import ends
from workers.decay import passes
from workers.decay.passes import PartOf
from workers.memory.namespace_settings import hygiene, namespace_rules, settings_of
from workers.memory.turn_limit import counted
from workers.storage import due as owed
from workers.storage import duplicate_pairs, janitors, namespaces
from workers.storage.connection import Connection, transaction
from workers.storage.janitors import Snapshot

BATCH = 10_000

MOST_IDS = 1_000
"""Ids that a snapshot keeps of each kind; the history of each fact has the rest."""


def plan(context: Context, namespace: str, run: UUID, now: datetime) -> list[PartOf]:
    """Begin a run over what is due of a namespace and return its parts; none where nothing was stored yet.

    Repeating it changes nothing, and returns the parts that are not done.
    """
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is not None and hygiene(context, tenant.settings).by_hand:
            _make_due(context, db, tenant.id, now)
    return passes.plan(context, run, now, work="janitor", namespace=namespace)


def _make_due(context: Context, db: Connection, tenant: int, now: datetime) -> None:
    """Make due what passes leave to the janitor: it is over by the janitor's rules alone, so no index finds it."""
    over: list[UUID] = []
    for rows in owed.coming(db, tenant, now, BATCH, every=True):
        own = namespace_rules(context, db, rows.namespaces, janitor=True)
        ends_at, _ = ends(counted(rows, own, now).anchors, own.rules)
        over += rows.only((ends_at < now.timestamp()) & ~rows.held).ids
    for begin in range(0, len(over), BATCH):
        owed.make_due(db, tenant, over[begin : begin + BATCH], now)


def conclude(context: Context, namespace: str, run: UUID, now: datetime) -> Snapshot | None:
    """Write what a run whose parts are done, and passes since the one before, did to the namespace; return that.

    Repeating it changes nothing.
    """
    passes.finish(context, run)
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return None
        janitors.write(db, tenant.id, run, now, MOST_IDS)
        return janitors.read(db, tenant.id)


def last(context: Context, namespace: str) -> Snapshot | None:
    """Return what the last run wrote, if there was one."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return None if tenant is None else janitors.read(db, tenant.id)


def schedule(context: Context, namespace: str) -> str | None:
    """Return when the janitor of a namespace comes by itself; nothing where hygiene is switched off."""
    whole = settings_of(context, namespace).settings["hygiene"]
    return str(whole["schedule"]) if whole else None


def due(context: Context, now: datetime) -> list[str]:
    """Return the namespaces in which something is due."""
    with transaction(context.database_url) as db:
        return janitors.due_namespaces(db, now)


def untidy(context: Context, now: datetime) -> list[str]:
    """Return the namespaces in which something is due, or was not compared yet; the others need no upkeep."""
    with transaction(context.database_url) as db:
        return sorted({*janitors.due_namespaces(db, now), *duplicate_pairs.uncompared_namespaces(db)})
