"""Gaps: what ended while no pass came for long is kept until its owner confirms that it may go.

A clock that jumps ahead, a database restored from an old backup and a system that was switched off for a month look the
same: much ends at once, and the time in which it could have been used never was.
"""

import logging

import numpy as np

from workers.context import Context
from workers.core.arrays import Bools, Floats
from workers.core.gaps import is_gap, is_set_back
from workers.storage import pass_clock
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction

log = logging.getLogger(__name__)


def check(context: Context, *, everywhere: bool) -> None:
    """Look at the database's clock before a pass, and have what ended in a gap since the last one held.

    Only a pass over all namespaces counts as the last one. In a simulation instants are no evidence.
    """
    if context.settings.time_travel:
        return
    with transaction(context.database_url) as db:
        reading = pass_clock.read(db)
        jumped = reading is not None and is_gap(*(one.timestamp() for one in reading))
        if reading is not None and jumped:
            pass_clock.hold(db, reading)
        if reading is not None and is_set_back(reading.last.timestamp(), reading.now.timestamp()):
            pass_clock.take_back(db, reading)
            log.warning("the database's clock was set back from %s to %s", reading.last, reading.now)
        if everywhere or jumped:
            pass_clock.note(db)
    if reading is not None and jumped:
        log.warning(
            "NO PASS CAME from %s to %s: the system was off, or the database's clock jumped (its server runs since "
            "%s). What ended meanwhile is kept. If the clock is right, let it go with `ebb decay --all --force`; if "
            "not, set the clock right.",
            *reading,
        )


def within(db: Connection, rows: Activity, ends_at: Floats) -> Bools:
    """Return which facts end within a gap of their namespace that nobody has confirmed; ends in epoch seconds."""
    found = pass_clock.gaps(db, np.unique(rows.namespaces).tolist())
    inside = np.zeros(len(rows), dtype=np.bool_)
    for tenant, gap in found.items():
        own = rows.namespaces == tenant
        inside |= own & (ends_at > gap.began.timestamp()) & (ends_at <= gap.ended.timestamp())
    return inside
