"""Backfill: classify facts without an explicit decay class again by the current rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from ebb.contract.values import DecayClass

from workers.context import Context
from workers.core.arrays import Bools
from workers.core.fading import SAME_INSTANT, as_written, expiries
from workers.core.lifetime import classify_decay
from workers.memory.embed import Position
from workers.memory.namespace_settings import careful, rules_for
from workers.storage import edits, namespaces
from workers.storage.activity import PERMANENT, Activity
from workers.storage.connection import Connection, transaction

BATCH = 1_000
UNCLASSED = "none"


@dataclass(frozen=True, slots=True)
class Backfilled:
    """The number of examined facts, of changes by (old class, new class), and of facts that would be over."""

    examined: int = 0
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    overdue: int = 0

    def __add__(self, other: "Backfilled") -> "Backfilled":
        """Return the sum of both."""
        return Backfilled(self.examined + other.examined, self.changes + other.changes, self.overdue + other.overdue)


def backfill(
    context: Context,
    namespace: str | None,
    after: Position,
    now: datetime,
    *,
    dry_run: bool = False,
    prune: bool = False,
) -> tuple[Position | None, Backfilled]:
    """Classify the next batch of one namespace, or all; return the position to continue from, if any, and the counts.

    Explicit classes stay. Lifetimes start at the last confirmation. A fact whose new lifetime would be over keeps its
    class unless `prune` is true; then it is hidden at once, and the next pass forgets it. Idempotent.
    """
    with transaction(context.database_url) as db:
        locked = edits.without_explicit_class(db, namespaces.id_within(db, namespace), after, BATCH, now)
        done = _classify(context, db, locked, now, dry_run=dry_run, prune=prune)
    return (int(locked.namespaces[-1]), locked.ids[-1]) if locked.ids else None, done


def _classify(
    context: Context, db: Connection, locked: Activity, now: datetime, *, dry_run: bool, prune: bool
) -> Backfilled:
    wordings = edits.wordings(db, locked)
    names = list(zip(locked.namespaces.tolist(), locked.ids, strict=True))
    rows = locked.only(np.array([name in wordings for name in names], dtype=np.bool_))
    settings = namespaces.settings_of(db, np.unique(rows.namespaces).tolist())
    chosen = [
        classify_decay(*wordings[name], careful=careful(context, settings[name[0]][0]))
        for name in names
        if name in wordings
    ]
    new = _with_classes(rows, chosen)
    moved = _differ(rows, new)
    faded = as_written(new.anchors, now.timestamp(), rules_for(context, db, new.namespaces))
    overdue = moved & (faded.lifetime_ends_at < now.timestamp())
    moving = moved if prune else moved & ~overdue
    if moving.any() and not dry_run:
        edits.write_classes(db, new.only(moving), faded.only(moving), now)
    changes = Counter(zip(_names(rows.only(moving)), _names(new.only(moving)), strict=True))
    return Backfilled(len(rows), changes, int(overdue.sum()))


def _with_classes(rows: Activity, chosen: Sequence[DecayClass]) -> Activity:
    """Return facts with new decay classes and the resulting lifetimes."""
    was_permanent = np.array([name == PERMANENT for name in rows.decay_classes], dtype=np.bool_)
    is_permanent = np.array([name == PERMANENT for name in chosen], dtype=np.bool_)
    anchors = replace(
        rows.anchors,
        expires_at=expiries(chosen, np.maximum(rows.anchors.confirmed_at, rows.anchors.pinned_until)),
        permanent=is_permanent | (rows.anchors.permanent & ~was_permanent),
        halvings=np.zeros(len(rows), dtype=np.int64),
    )
    return replace(rows, decay_classes=list(chosen), anchors=anchors)


def _differ(rows: Activity, new: Activity) -> Bools:
    """Return which facts have another decay class, or another expiry because the definition of the class changed."""
    other = [was != now for was, now in zip(rows.decay_classes, new.decay_classes, strict=True)]
    same_expiry = np.isclose(rows.anchors.expires_at, new.anchors.expires_at, rtol=0.0, atol=SAME_INSTANT)
    return np.array(other, dtype=np.bool_) | ~same_expiry


def _names(rows: Activity) -> list[str]:
    return [name or UNCLASSED for name in rows.decay_classes]
