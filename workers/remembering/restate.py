"""Restate: a fact that is stated again lives as long from then on as a new one, whatever its class."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core import lifetime
from workers.core.episodes import NOT_YET, Branch
from workers.core.fading import Anchors, written
from workers.forgetting.terms import rules_for
from workers.storage import activity, outrunning
from workers.storage.activity import Activity
from workers.storage.connection import Connection

EPISODES = (Branch.PERSISTENT, Branch.PERMANENT)


def restate_within(context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime) -> None:
    """Let the lifetimes of live facts start again at `now`; what was confirmed later stays as it is."""
    instant = now.timestamp()
    there = activity.lock(db, tenant, ids)
    rows = there.only(there.anchors.confirmed_at < instant)
    if not rows.ids:
        return
    outrunning.encode_anew(db, tenant, rows.ids, now)
    anchors = _confirmed(rows, instant)
    faded = written(anchors, instant, rules_for(context, db, rows.namespaces))
    activity.write_used(db, rows, anchors, faded, np.zeros(len(rows), dtype=np.int64), now)


def _confirmed(rows: Activity, instant: float) -> Anchors:
    """Return anchors confirmed at an instant; the lifetime of a pinned fact begins when its pin ends."""
    begins = np.maximum(rows.anchors.pinned_until, instant).tolist()
    expires = [lifetime.expiry(name or None, begin) for name, begin in zip(rows.decay_classes, begins, strict=True)]
    episode = np.isin(rows.anchors.branch, EPISODES)
    return replace(
        rows.anchors,
        confirmed_at=np.full_like(rows.anchors.confirmed_at, instant),
        halvings=np.zeros_like(rows.anchors.halvings),
        expires_at=np.array(expires, dtype=np.float64),
        encoded_at=np.where(episode, instant, rows.anchors.encoded_at),
        outrun_at=np.where(episode, NOT_YET, rows.anchors.outrun_at),
    )
