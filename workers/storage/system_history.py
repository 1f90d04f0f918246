"""System history: how many tasks waited and how quickly writes could be read, of all namespaces together."""

from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from workers.storage.connection import Connection
from workers.storage.tally_history import KEPT, LEVELS, STEP

# Of what waited in these five minutes the most counts; of writes the last, for they are counted on and on.
NOTE = """
    insert into system_history as noted (at, waiting, writes)
    values (date_bin(%(step)s, %(now)s, timestamptz 'epoch'), %(waiting)s, %(writes)s)
    on conflict (at) do update
    set writes = excluded.writes,
        waiting = (
            select jsonb_object_agg(key, greatest(value::bigint, (noted.waiting ->> key)::bigint))
            from jsonb_each_text(excluded.waiting)
        )
"""

SINCE = "select at, waiting, writes from system_history where at > %(since)s and at <= %(now)s order by at"

THIN = """
    delete from system_history as old
    where at < %(before)s
        and exists (
            select from system_history as newer
            where newer.at > old.at and newer.at < %(before)s
                and date_bin(%(step)s, newer.at, timestamptz 'epoch') = date_bin(%(step)s, old.at, timestamptz 'epoch')
        )
"""

LET_GO = "delete from system_history where at < %(before)s"


def note(db: Connection, waiting: dict[str, int], writes: list[int], now: datetime) -> None:
    """Note how many tasks wait in each queue, and how many writes ever took up to each bound of `timings`."""
    db.execute(NOTE, {"waiting": Jsonb(waiting), "writes": writes, "now": now, "step": STEP})


def since(db: Connection, start: datetime, now: datetime) -> list[tuple[datetime, dict[str, Any], list[int]]]:
    """Return (when, what waited, writes so far) of each five minutes that were noted, oldest first."""
    return db.execute(SINCE, {"since": start, "now": now}).fetchall()


def thin(db: Connection, now: datetime) -> int:
    """Keep of what is older ever less, as of tallies; return how many rows went."""
    levels: tuple[tuple[timedelta, timedelta], ...] = LEVELS
    gone = sum(db.execute(THIN, {"before": now - age, "step": step}).rowcount for age, step in levels)
    return gone + db.execute(LET_GO, {"before": now - KEPT}).rowcount
