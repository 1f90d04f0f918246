"""The database's clock: the one that dates whatever is stored, whatever clock a worker or a client has."""

from datetime import UTC, datetime

from workers.storage.connection import READ_WAIT_SECONDS, Connection, transaction

CLOCK = "select clock_timestamp()"


def read(url: str) -> datetime:
    """Return what the database's clock shows.

    Raises:
        NoConnectionError: there is no connection free within `READ_WAIT_SECONDS`.
        UnavailableError: the database does not answer.
    """
    with transaction(url, wait=READ_WAIT_SECONDS) as db:
        return now(db)


def now(db: Connection) -> datetime:
    """Return what the database's clock shows, within a transaction."""
    row = db.execute(CLOCK).fetchone()
    assert row is not None  # noqa: S101 - the statement always returns a row
    shown: datetime = row[0]
    return shown.astimezone(UTC)
