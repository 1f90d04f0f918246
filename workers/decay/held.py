"""Held facts: list what the forget limit holds back, and forget or keep it as the owner decides."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from ebb.contract.decay import HeldFacts, ListHeld

from workers.context import Context
from workers.core.fading import REASONS, as_written, ends
from workers.memory.forget import forget_within
from workers.memory.namespace_settings import namespace_rules, rules_for
from workers.memory.restore import as_recalled
from workers.storage import activity, events, limits, turns
from workers.storage.activity import Activity
from workers.storage.connection import Connection
from workers.storage.limits import HeldCursor
from workers.validation import cursors

BATCH = 500
"""Facts per transaction."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The facts that were forgotten or kept, and the number still held."""

    ids: list[UUID]
    left: int


def listed(context: Context, asked: ListHeld) -> HeldFacts:
    """Return a page of a namespace's held facts, by the time when they ended."""
    behind = cursors.place(asked.cursor, HeldCursor)
    with context.namespace(asked.namespace) as (db, tenant):
        found = limits.held_page(db, tenant, asked.limit + 1, behind)
        shown, following = cursors.page(found, asked.limit, lambda one: HeldCursor(one.ended_at, one.id))
        reasons = _reasons(context, db, activity.read(db, tenant, [one.id for one in shown]))
        total = limits.count_held(db, tenant)
    facts = [one.model_copy(update={"reason": reasons.get(one.id)}) for one in shown]
    return HeldFacts(held=facts, total=total, next=following)


def let_go(context: Context, namespace: str, ids: Sequence[UUID] | None, now: datetime, until: float) -> Decided:
    """Forget the given held facts, or all of them; they do not count against the forget limit.

    It stops at `until`, on the monotonic clock. Idempotent.
    """
    return _decide(context, namespace, ids, until, lambda db, rows: _let_go(context, db, rows, now))


def keep(context: Context, namespace: str, ids: Sequence[UUID] | None, now: datetime, until: float) -> Decided:
    """Keep the given live facts, or all held ones: confirmed now, with a full lifetime, as by a restore.

    It stops at `until`, on the monotonic clock. Idempotent.
    """
    if ids is None:
        return _decide(context, namespace, None, until, lambda db, rows: _keep(context, db, rows, now))
    with context.namespace(namespace) as (db, tenant):
        activity.lock(db, tenant, ids)
        rows = activity.read_live(db, tenant, ids)
        rows = rows.among(set(rows.ids) - activity.ended(db, tenant, rows.ids, now))
        if rows.ids:
            _keep(context, db, rows, now)
        limits.settle_held(db, tenant)
        return Decided(rows.ids, limits.count_held(db, tenant))


def _decide(
    context: Context,
    namespace: str,
    ids: Sequence[UUID] | None,
    until: float,
    decide: Callable[[Connection, Activity], None],
) -> Decided:
    done: list[UUID] = []
    while True:
        with context.namespace(namespace) as (db, tenant):
            rows = activity.lock(db, tenant, limits.held_among(db, tenant, ids, BATCH))
            rows = rows.only(rows.held)
            if rows.ids:
                decide(db, rows)
            limits.settle_held(db, tenant)
            done += rows.ids
            if not rows.ids or time.monotonic() >= until:
                return Decided(done, limits.count_held(db, tenant))


def _reasons(context: Context, db: Connection, rows: Activity) -> dict[UUID, str]:
    _, why = ends(rows.anchors, namespace_rules(context, db, rows.namespaces, janitor=True).rules)
    return {id_: REASONS[code] for id_, code in zip(rows.ids, why.tolist(), strict=True)}


def _let_go(context: Context, db: Connection, rows: Activity, now: datetime) -> None:
    reasons = _reasons(context, db, rows)
    forget_within(db, rows.namespaces.tolist(), rows.ids, [reasons[id_] for id_ in rows.ids], now)


def _keep(context: Context, db: Connection, rows: Activity, now: datetime) -> None:
    rules = rules_for(context, db, rows.namespaces)
    anchors = as_recalled(rows, now, rules)
    tenant = int(rows.namespaces[0])
    turns.encode_again(db, tenant, rows.ids, now)
    faded = as_written(anchors, now.timestamp(), rules)
    activity.write_used(db, rows, anchors, faded, np.zeros(len(rows), dtype=np.int64), now)
    events.add_all(db, rows.namespaces.tolist(), rows.ids, now, "kept")
