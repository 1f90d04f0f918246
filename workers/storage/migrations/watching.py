"""Progress of a long migration: how long it has run, and which sessions it waits for."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workers.errors import UnavailableError
from workers.storage.connection import connect

EVERY_SECONDS = 5.0

WAITING = """
    select array_agg(format('process %%s (%%s)', pid, coalesce(nullif(application_name, ''), 'no name')) order by pid)
    from pg_stat_activity
    where pid = any(pg_blocking_pids(%(pid)s))
"""
BUILDING = """
    select format('%%s, %%s of %%s blocks', phase, blocks_done, blocks_total)
    from pg_stat_progress_create_index where pid = %(pid)s
"""


@contextmanager
def watched(
    database_url: str, pid: int, report: Callable[[str], None], every_seconds: float = EVERY_SECONDS
) -> Iterator[None]:
    """Report every few seconds, until the block ends, what the server process `pid` is at."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(database_url, pid, report, done, every_seconds), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(
    database_url: str, pid: int, report: Callable[[str], None], done: threading.Event, every_seconds: float
) -> None:
    started = time.monotonic()
    while not done.wait(every_seconds):
        try:
            report(f"{time.monotonic() - started:.0f} s, {_state(database_url, pid)}")
        except UnavailableError:  # the migration itself reports a server that is away
            return


def _state(database_url: str, pid: int) -> str:
    with connect(database_url, autocommit=True) as db:
        waiting = db.execute(WAITING, {"pid": pid}).fetchone()
        if waiting and waiting[0]:
            return f"waiting for {', '.join(waiting[0])}"
        building = db.execute(BUILDING, {"pid": pid}).fetchone()
        return str(building[0]) if building else "running"
