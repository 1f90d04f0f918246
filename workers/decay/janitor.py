"""Janitor: a pass over the due facts of one namespace, with a report.

Facts with too little confidence are culled, episodes age out, and unused permanent ones become stale.
"""

from datetime import datetime
from uuid import UUID

from ebb.contract.decay import Janitor

from workers.context import Context
from workers.core.fading import ends
from workers.decay import passes
from workers.decay.passes import PartOf
from workers.memory.namespace_settings import hygiene, namespace_rules, settings_of
from workers.memory.turn_limit import with_turn_limit
from workers.storage import due as owed
from workers.storage import duplicate_pairs, namespaces, runs
from workers.storage.connection import Connection, transaction

MOST_IDS = 1_000
"""Maximum number of ids of each kind in a report."""


def plan(context: Context, namespace: str, run: UUID, now: datetime) -> list[PartOf]:
    """Begin a run over the due facts of a namespace and return its parts; idempotent, returning the open parts."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is not None and hygiene(context, tenant.settings).by_hand:
            _make_due(context, db, tenant.id, now)
    return passes.plan(context, run, now, work="janitor", namespace=namespace)


def _make_due(context: Context, db: Connection, tenant: int, now: datetime) -> None:
    """Make facts due that have ended by the janitor's rules only, which no index finds."""
    over: list[UUID] = []
    for rows in owed.due_by(db, tenant, now, every=True):
        own = namespace_rules(context, db, rows.namespaces, janitor=True)
        ends_at, _ = ends(with_turn_limit(rows, own, now).anchors, own.rules)
        over += rows.only((ends_at < now.timestamp()) & ~rows.held).ids
    for begin in range(0, len(over), owed.BATCH):
        owed.make_due(db, tenant, over[begin : begin + owed.BATCH], now)


def conclude(context: Context, namespace: str, run: UUID, now: datetime) -> Janitor:
    """Write and return the report of a run whose parts are done, including passes since the last run. Idempotent."""
    passes.finish(context, run)
    with transaction(context.database_url) as db:
        runs.record_janitor(db, namespaces.id_of(db, namespace), run, now, MOST_IDS)
    return last(context, namespace)


def last(context: Context, namespace: str) -> Janitor:
    """Return the report of the last run, with no runs if there was none."""
    with transaction(context.database_url) as db:
        found = runs.last_janitor(db, namespaces.id_of(db, namespace))
    return found or Janitor(namespace=namespace, totalRuns=0)


def schedule(context: Context, namespace: str) -> str | None:
    """Return the janitor's schedule of a namespace; None if hygiene is disabled."""
    whole = settings_of(context, namespace).settings["hygiene"]
    return str(whole["schedule"]) if whole else None


def due(context: Context, now: datetime, *, own: bool = False, uncompared: bool = False) -> list[str]:
    """Return the namespaces with due, or also `uncompared` facts, on all shards or those of the `own` group."""
    found: set[str] = set()
    for _ in context.each_shard(own=own):
        with transaction(context.database_url) as db:
            found.update(runs.due_namespaces(db, now))
            found.update(duplicate_pairs.uncompared_namespaces(db) if uncompared else ())
    return sorted(found)
