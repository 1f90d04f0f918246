"""What PostgreSQL and Citus say when they refuse, break off or do not answer, and the error that says what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from workers.errors import NoConnectionError, UnavailableError

NONE_FREE = re.compile(r"too many (?:clients|connections)|connection slots are reserved")
"""PostgreSQL's messages for no free connection: libpq reports no SQLSTATE for errors while connecting."""

NO_ROOM = re.compile(r"No space left on device|[Dd]isk quota exceeded")
"""The system's messages for a full disk; without room PostgreSQL may not even start a session."""

RECOVERS = re.compile(r"the database system is (?:starting up|in recovery mode|not yet accepting connections)")
"""PostgreSQL's messages while it starts or recovers from a crash."""

NOT_ALLOWED = re.compile(
    r"authentication failed|permission denied for|not permitted to log in|no password supplied"
    r"|no pg_hba\.conf entry|(?:role|database) \".*\" does not exist"
)
"""PostgreSQL's messages for a role that may not connect, or is not there."""

NO_TLS = re.compile(r"certificate|private key file|SSL (?:error: (?!unexpected eof)|was required|required)")
"""Messages of libpq, PostgreSQL and PgBouncer where TLS fails, or one side wants it alone."""

WRONG_OPTION = re.compile(r"connection is bad: .*(?:invalid \S+ value|invalid port|weak sslmode|definition of service)")
"""libpq's messages for an option of the address with a value that it cannot use."""

REFUSALS = {
    RECOVERS: "PostgreSQL takes no connections yet: {cause}. Try again when it has started.",
    NOT_ALLOWED: "PostgreSQL refuses this connection: {cause}. Check role, password and database in EBB_DATABASE_URL, "
    "and what the role may do.",
    WRONG_OPTION: "The address of PostgreSQL cannot be used: {cause}. Correct it, and start again.",
    NO_TLS: "There is no TLS connection to PostgreSQL: {cause}. Check the host, `sslmode` and the files of "
    "certificates in its address, and the certificate of the server.",
}

OF_EACH_HOST = re.compile(r".*All failures were:\n- ", re.DOTALL)
"""What psycopg puts before the failures of several hosts: the last of them, which it repeats among all."""

NODE_ENDED = re.compile(
    r"could not commit transaction .* active node|server closed the connection unexpectedly"
    r"|failure on connection marked as essential"
)
"""Citus' messages when a node ends, at a commit and at a statement, and at the first one after the node's restart."""

MAKE_ROOM = (
    "Try again later; if it happens often, raise max_connections of PostgreSQL, run fewer workers, or put PgBouncer "
    "in front."
)


@contextmanager
def nodes_answer() -> Iterator[None]:
    """Raise `UnavailableError` if a Citus node ended in a transaction, which Citus may call an internal error."""
    try:
        yield
    except psycopg.errors.InternalError_ as error:
        if not NODE_ENDED.match(str(error)):
            raise
        said = str(error).splitlines()[0]
        raise UnavailableError(f"A node of the Citus cluster ended ({said}). Try again when it answers.") from error


def refused(cause: str) -> UnavailableError:
    """Return the error for a connection that the server refused, or that does not reach it, by the cause."""
    if NONE_FREE.search(cause):
        return NoConnectionError(f"PostgreSQL has no connection free: {cause}. {MAKE_ROOM}")
    if NO_ROOM.search(cause):
        return disk_full(cause)
    for pattern, said in REFUSALS.items():
        if pattern.search(cause):
            return UnavailableError(said.format(cause=cause))
    return UnavailableError(f"PostgreSQL does not answer: {cause}. Is it running at that address?")


def broken_off(error: psycopg.Error) -> UnavailableError:
    """Return the error for a command that can be repeated, and whose statement the server broke off or refused."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return UnavailableError(
            f"PostgreSQL does not let Ebb's role do this: {cause_of(error)}. Have the owner of the tables `grant "
            "select, insert, update, delete` on them to it; Ebb then goes on by itself."
        )
    if isinstance(error, psycopg.errors.DiskFull):
        return disk_full(cause_of(error))
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return UnavailableError("Another program keeps a table locked: see `pg_locks` in PostgreSQL, and try again.")
    return UnavailableError(f"PostgreSQL broke this off: {cause_of(error)}. Run the command again.")


def disk_full(cause: str) -> UnavailableError:
    """Return the error for a full disk of the server."""
    return UnavailableError(f"PostgreSQL's disk is full: {cause}. Make room there; Ebb then goes on by itself.")


def cause_of(error: psycopg.Error) -> str:
    """Return what the server said on one line, without hints, which do not know of Ebb."""
    said = OF_EACH_HOST.sub("", error.diag.message_primary or str(error))
    without_hints = [line for line in said.splitlines() if not line.startswith("\t")]
    return " ".join(". ".join(line.rstrip(".") for line in without_hints).replace(". - ", "; ").split()).rstrip(".?")
