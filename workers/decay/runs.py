"""Decay runs: list, verify and delete their records."""

from datetime import timedelta
from uuid import UUID

from ebb.contract.decay import ListRuns

from workers.context import Context
from workers.errors import InvalidInputError
from workers.storage import limits, runs
from workers.storage.connection import Connection, transaction
from workers.storage.due import Work
from workers.storage.runs import Run

KEPT = timedelta(days=30)
"""Retention: passes every five minutes leave millions of rows in a year."""

BATCH = 1_000
"""Runs deleted in one transaction."""


def latest(context: Context, asked: ListRuns) -> list[Run]:
    """Return the latest runs that covered a namespace, or with `everything` all runs."""
    found: list[Run] = []
    for _ in context.each_shard() if asked.everything else [0]:
        with transaction(context.database_url) as db:
            found += runs.latest(db, asked.namespace, asked.limit, asked.before, everything=asked.everything)
    return sorted(found, key=lambda run: run.started_at, reverse=True)[: asked.limit]


def check_own(db: Connection, run: UUID, work: Work, namespace: int | None) -> None:
    """Verify that a run was begun for this work and namespace, as its forget limit is not for others.

    Raises:
        InvalidInputError: it was begun for something else.
    """
    if runs.begun_for(db, run) not in (None, (work, namespace)):
        raise InvalidInputError(f"run: {run} was begun for something else; leave it out.")


def drop_old(context: Context) -> int:
    """Delete finished runs older than 30 days; return how many."""
    dropped = 0
    with transaction(context.database_url) as db:
        limits.drop_old_endings(db)
    while True:
        with transaction(context.database_url) as db:
            more = runs.drop_old(db, KEPT, BATCH)
        dropped += more
        if more < BATCH:
            return dropped
