"""Reach: which facts a use at an instant counts for, whether or not a pass has come since, and how it revives them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from workers.core.arrays import Bools, Floats
from workers.storage import activity, contradictions, likenesses, remembered, signatures, tombstones
from workers.storage.activity import Activity
from workers.storage.connection import Connection


@dataclass(frozen=True, slots=True)
class Reached:
    """The locked facts that a use reaches, and when a pass has forgotten each since (epoch seconds; never: -inf)."""

    rows: Activity
    forgotten_at: Floats

    @property
    def live(self) -> Activity:
        """Return the facts that no pass has forgotten."""
        return self.rows.only(np.isneginf(self.forgotten_at))

    def prolonged(self, ends_at: Floats) -> Bools:
        """Return which facts are live, or end by the new `ends_at` later than the pass that forgot them came."""
        return ends_at > self.forgotten_at

    def revive(self, db: Connection, tenant: int, kept: Collection[UUID], at: datetime) -> None:
        """Take off the tombstones of those of the `kept` facts that have one; their activity is for the caller."""
        back = [id_ for id_ in self.rows.only(~np.isneginf(self.forgotten_at)).ids if id_ in kept]
        if back:
            tombstones.revive(db, tenant, back, at, what="revived")
            signatures.revive(db, tenant, back)
            likenesses.compare_again(db, tenant, back)
            contradictions.find(db, tenant, back, at)


def reach(db: Connection, tenant: int, ids: Sequence[UUID], at: datetime) -> Reached:
    """Return which of these facts a use at `at` reaches, locked until the commit.

    Those are the facts that were remembered at `at`: neither forgotten nor superseded, and not over. A message may be
    late: a fact that has ended since is reached all the same, and so is one that a pass has forgotten since because it
    had ended by itself, if the pass came within ten minutes of `at` and no other fact says the same by now. A fact
    that somebody asked to forget is never reached.
    """
    rows = activity.lock(db, tenant, ids)
    found = remembered.reached(db, tenant, rows.ids, at) if rows.ids else {}
    rows = rows.among(found)
    instants = (found[id_] for id_ in rows.ids)
    forgotten = [-np.inf if instant is None else instant.timestamp() for instant in instants]
    return Reached(rows, np.array(forgotten, dtype=np.float64))
