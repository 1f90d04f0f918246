"""Passes: what was done of late, the newest first."""

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
"""A pass every five minutes leaves a row, and one for each segment with facts due: millions in a year."""

BATCH = 1_000
"""Passes dropped in one transaction."""


def latest(context: Context, asked: ListRuns) -> list[Run]:
    """Return the latest passes that took a namespace's facts, or with `everything` any."""
    with transaction(context.database_url) as db:
        return runs.latest(db, asked.namespace, asked.limit, asked.before, everything=asked.everything)


def check_own(db: Connection, run: UUID, work: Work, namespace: int | None) -> None:
    """Refuse a run that was begun for something else, for what it may forget is not for this.

    Raises:
        InvalidInputError: it was.
    """
    if runs.begun_for(db, run) not in (None, (work, namespace)):
        raise InvalidInputError(f"run: {run} was begun for something else; leave it out.")


def drop_old(context: Context) -> int:
    """Drop what is known of passes that are finished and older than 30 days; return how many those were."""
    dropped = 0
    with transaction(context.database_url) as db:
        limits.drop_old_endings(db)
    while True:
        with transaction(context.database_url) as db:
            more = runs.drop_old(db, KEPT, BATCH)
        dropped += more
        if more < BATCH:
            return dropped
