"""Replicas: reads go to a replica that has the caller's writes and is not far behind, else to the primary."""

import logging
import os
import random
import re
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from workers.errors import InvalidInputError, SettingsError, UnavailableError
from workers.storage.connection import fetch_one, number, scalar, transaction

log = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
"""Interval at which each process checks the replicas, including failed ones."""

ANSWER_SECONDS = 2.0
ALIVE = {
    "connect_timeout": 2, "keepalives_idle": 2, "keepalives_interval": 1, "keepalives_count": 2,
    "tcp_user_timeout": 3_000,
}  # fmt: skip
"""Timeouts by which a lost replica is detected early enough for the primary to answer."""

LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
AWAY = (psycopg.OperationalError, psycopg.InterfaceError, UnavailableError)
OLDER = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.UndefinedFunction)
"""Errors of a replica that has not replayed a migration yet."""

STATE = """
    select system_identifier || '/' || oid as database, pg_is_in_recovery() as replays, clock_timestamp() as at,
        (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end
            - '0/0')::bigint as position,
        case when pg_is_in_recovery() then (select received_tli from pg_stat_wal_receiver)
            else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline,
        pg_last_xact_replay_timestamp() as last_commit, pg_postmaster_start_time() as started_at
    from pg_control_system(), pg_database
    where datname = current_database()
"""
# Not what is flushed: passes commit without waiting for the disk.
POSITION = "select pg_current_wal_insert_lsn()::text"
REPLAYED = "select (pg_last_wal_replay_lsn() - '0/0')::bigint"

ANOTHER = (
    "is no copy of EBB_DATABASE_URL, but another database: make a replica from the primary with pg_basebackup, or "
    "correct EBB_READ_DATABASE_URL"
)
UNKNOWN = (
    "is {behind:,} bytes behind and has replayed no commit since it started, so for how long is not known: if this "
    "lasts, its log says why it does not follow the primary"
)
ASTRAY = (
    "does not follow EBB_DATABASE_URL but an earlier primary, as may be after a failover: it is not read from until it "
    "follows that one, by pg_rewind or a new pg_basebackup"
)
ITSELF = "is the server of EBB_DATABASE_URL: it is not read as a replica while it is the primary"
A_PRIMARY = "replays nothing, so it is a primary: it is not read from unless it follows EBB_DATABASE_URL again"
SECOND_PRIMARY = (
    "accepts writes, and the server of EBB_DATABASE_URL too: what is written may go to either, so end the one that was "
    "the primary before, and have it follow the other by pg_rewind or a new pg_basebackup"
)

T = TypeVar("T")

_chosen: ContextVar[str] = ContextVar("chosen", default="")
_known: dict[tuple[object, ...], "Replicas"] = {}
_databases: dict[str, str] = {}
"""The database of each primary; child processes inherit it, in case the primary is unavailable when they start."""

_starting = threading.Lock()


@dataclass(frozen=True, slots=True)
class State:
    """The state of a server: its database, whether it is a replica, its clock and its position in the log.

    `timeline` is that of the log which it writes or receives; None if it receives none, or its role may not see that.
    `last_commit` is the time of the last transaction replayed since it started, by the primary's clock.
    """

    database: str
    replays: bool
    at: datetime
    position: int
    timeline: int | None
    last_commit: datetime | None
    started_at: datetime


@dataclass(slots=True)
class Replica:
    """A replica at the last check; `fault` is empty if nothing is wrong with it.

    `is_primary` if it is the server of EBB_DATABASE_URL, as where all servers of a failover are named.
    """

    url: str
    fault: str = "was not asked yet"
    position: int = 0
    behind: int = 0
    seconds: float = 0.0
    is_another: bool = False
    is_primary: bool = False

    @property
    def is_read(self) -> bool:
        """Return whether reads may go to it."""
        return not self.fault and not self.is_primary

    @property
    def name(self) -> str:
        """Return its host and port, without a password."""
        given = conninfo_to_dict(self.url)
        return f"{given.get('host') or 'localhost'}:{given.get('port') or 5432}"

    def __str__(self) -> str:
        """Return its state in words."""
        state = ITSELF if self.is_primary else f"is {self.behind:,} bytes and {self.seconds:.1f} s behind"
        return f"{self.name} {self.fault or state}"

    def judge(self, own: State, primary: State | None, database: str, most_seconds: float) -> None:
        """Update its state, compared with the primary's latest state."""
        self.position, self.is_another = own.position, bool(database) and own.database != database
        self.behind = max(primary.position - own.position, 0) if primary else 0
        since = own.last_commit or own.started_at
        self.seconds = (primary.at - since).total_seconds() if primary and self.behind else 0.0
        self.is_primary = not self.is_another and primary is not None and own.started_at == primary.started_at
        if self.is_another:
            self.fault = ANOTHER
        elif self.is_primary:
            self.fault = ""
        elif not own.replays:
            self.fault = SECOND_PRIMARY if primary else A_PRIMARY
        elif primary and (own.position > primary.position or own.timeline not in {None, primary.timeline}):
            self.fault = ASTRAY
        elif self.behind and own.last_commit is None:
            self.fault = UNKNOWN.format(behind=self.behind)
        elif self.seconds > most_seconds:
            self.fault = f"is {self.seconds:.0f} s behind; past {most_seconds:g} s the primary is read"
        else:
            self.fault = ""


@dataclass(slots=True)
class Replicas:
    """The replicas of a primary, which a thread of this process checks from the first use on."""

    primary: str
    urls: Sequence[str]
    most_seconds: float
    all: list[Replica] = field(init=False)
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        """Create the list of replicas, with short timeouts."""
        self.all = [Replica(with_limits(url)) for url in self.urls]

    def look(self) -> list[Replica]:
        """Check all replicas and return them."""
        primary = None
        try:
            primary = ask(self.primary)
            _databases[self.primary] = primary.database
        except AWAY as error:
            log.warning("The primary does not answer; replicas are read as far as they are: %s", error)
        for one in self.all:
            try:
                own = ask(one.url)
                if primary and own.position > primary.position:
                    primary = ask(self.primary)  # a replica has nothing that its primary has not written before
                one.judge(own, primary, _databases.get(self.primary, ""), self.most_seconds)
            except AWAY as error:
                self.fail(one, error)
        return self.all

    def choose(self, least: int) -> Replica | None:
        """Return a usable replica that has replayed the log up to `least`, if any."""
        self._watch()
        for one in random.sample(self.all, len(self.all)):
            if one.is_read and (one.position >= least or self._has_replayed(one, least)):
                return one
        return None

    def fail(self, one: Replica, error: Exception) -> None:
        """Mark a replica as failed until it answers again."""
        if not one.fault:
            log.warning("replica %s failed; the primary is read: %s", one.name, error)
        one.fault = f"does not answer: {' '.join(str(error).split())}"
        one.is_primary = False

    def _has_replayed(self, one: Replica, least: int) -> bool:
        try:
            with transaction(one.url, wait=ANSWER_SECONDS) as db:
                replayed = number(db, REPLAYED)
        except AWAY as error:
            self.fail(one, error)
            return False
        one.position = max(one.position, replayed)
        return one.position >= least

    def _watch(self) -> None:
        with _starting:
            if self.thread is None:
                self.look()
                self.thread = threading.Thread(target=self._keep_looking, name="replicas", daemon=True)
                self.thread.start()

    def _keep_looking(self) -> None:
        while not self.stopped.wait(CHECK_SECONDS):
            self.look()


def with_limits(url: str) -> str:
    """Return a URL with short timeouts, unless it sets them itself."""
    given = conninfo_to_dict(url)
    return make_conninfo(url, **{name: value for name, value in ALIVE.items() if name not in given})


def of(primary: str, urls: Sequence[str], most_seconds: float) -> Replicas:
    """Return this process's replicas of a primary; threads do not survive Celery's fork."""
    key = (os.getpid(), primary, *urls)
    if key not in _known:
        _known[key] = Replicas(primary, urls, most_seconds)
    return _known[key]


def stop() -> None:
    """Stop this process's checks of replicas."""
    for key in [key for key in _known if key[0] == os.getpid()]:
        _known.pop(key).stopped.set()


def current_url() -> str:
    """Return the URL of the replica that the current `read` uses; empty for the primary."""
    return _chosen.get()


def use_primary() -> None:
    """Use the primary for the rest of the current `read`, as it depends on a write."""
    _chosen.set("")


def read(replicas: Replicas, token: str | None, act: Callable[[], T]) -> T:
    """Run a read on a replica that has replayed the log up to `token`, else on the primary.

    If the replica fails, it is marked so, and the read is repeated on the primary.

    Raises:
        InvalidInputError: the token is not a position in PostgreSQL's log.
    """
    one = replicas.choose(position_of(token) if token else 0)
    if one is None:
        return act()
    before = _chosen.set(one.url)
    try:
        return act()
    except (*AWAY, *OLDER) as error:
        if not current_url():
            raise
        replicas.fail(one, error)
    finally:
        _chosen.reset(before)
    return act()


def position_of(token: str) -> int:
    """Return a position such as `0/16B3748` as a number of bytes."""
    found = LSN.fullmatch(token)
    if found is None:
        raise InvalidInputError(
            f"lsn: {token[:40]!r} is no position in PostgreSQL's log; give it as an answer gave it."
        )
    return int(found[1], 16) << 32 | int(found[2], 16)


def token(primary: str) -> str:
    """Return the current position in the primary's log, which includes all committed transactions."""
    with transaction(primary) as db:
        return str(scalar(db, POSITION))


def ask(url: str) -> State:
    """Return the state of a server."""
    with transaction(url, wait=ANSWER_SECONDS) as db:
        found = fetch_one(db, State, STATE)
    if found is None:
        raise UnavailableError("it does not say which database it has")
    return found


def verify(replicas: Replicas) -> None:
    """Check at the start that the replicas belong to the primary; unavailable ones are accepted.

    Raises:
        SettingsError: a URL leads to another database.
    """
    for one in replicas.look():
        if one.is_another:
            raise SettingsError(f"EBB_READ_DATABASE_URL: {one}.")
        if one.fault:
            log.warning("replica %s", one)
