"""Connections to Redis: messages, results and Ebb's own keys in separate databases, and the state of the server."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from ebb.broker import KEEPALIVE, RESULTS_AFTER, database_after, sentinels
from redis import Redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from workers.coordination.outbox import FULL_SHARE
from workers.errors import UnavailableError

OWN_AFTER = 2
CONNECT_SECONDS = 5
ANSWER_SECONDS = 10
REWRITE_SECONDS = 60.0
PATIENCE_SECONDS = 10.0
"""Time that a task which has committed gives a Redis that is away: it may just restart."""

AGAIN_SECONDS = 0.2
CANNOT_SAVE = "MISCONF"
NO_REPLICAS = "NOREPLICAS"
TOO_FEW = ("DB index is out of range", "SELECT is not allowed in cluster mode")
OF_PIPELINE = "of pipeline caused error: "

T = TypeVar("T")


class RefusedError(UnavailableError, RedisError):
    """Redis answers, but refuses: it lacks memory, disk, replicas, a database or a right, or it is a replica."""


class OwnKeys(Redis):
    """Connections whose refused writes raise `RefusedError`, with advice."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send one command."""
        with translated_refusals():
            return super().execute_command(*args, **options)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """Return a pipeline of commands."""
        return _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


class _Pipeline(Pipeline):
    def execute(self, raise_on_error: bool = True) -> list[Any]:
        with translated_refusals():
            return super().execute(raise_on_error)


AWAY: tuple[type[Exception], ...] = (RedisConnectionError, RedisTimeoutError)


def insist(act: Callable[[], T], seconds: float = PATIENCE_SECONDS, away: tuple[type[Exception], ...] = AWAY) -> T:
    """Return what `act` returns; while it raises one of `away`, call it again for up to `seconds`.

    This is for what a task does after its commit: tried again as a whole, it would answer that nothing was left to do.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return act()
        except away as error:
            if isinstance(error, RefusedError) or time.monotonic() >= until:
                raise
        time.sleep(AGAIN_SECONDS)


@contextmanager
def translated_refusals() -> Iterator[None]:
    """Raise `RefusedError` if Redis refuses a command, as it would all similar ones."""
    try:
        yield
    except ResponseError as error:
        if not is_refusal(error):
            raise
        raise RefusedError(explain(error)) from None


def is_refusal(error: BaseException) -> bool:
    """Return whether Redis refused a command, as it would all similar ones."""
    return isinstance(error, OutOfMemoryError | ReadOnlyError | NoPermissionError) or (
        isinstance(error, ResponseError) and any(one in _said(error) for one in (CANNOT_SAVE, NO_REPLICAS, *TOO_FEW))
    )


def _said(error: BaseException) -> str:
    """Return what Redis said, without the command, which redis-py puts before an error in a pipeline."""
    return str(error).rpartition(OF_PIPELINE)[2].rstrip(".")


def explain(error: BaseException) -> str:
    """Return what is wrong with Redis and what to do about it."""
    if isinstance(error, RefusedError):
        return str(error)
    said = _said(error)
    if is_refusal(error):
        return _explain_refusal(error, said)
    if isinstance(error, AuthenticationError):
        return (
            "Redis refuses the user or password of EBB_REDIS_URL: correct it, and restart Ebb's processes, which read "
            "it when they start."
        )
    return f"Redis does not answer: {cause(error)}. See `ebb status`, or check EBB_REDIS_URL."


def cause(error: BaseException) -> str:
    """Return what Redis, or redis-py, says of an error."""
    said = _said(error)
    if isinstance(error, MasterNotFoundError):  # redis-py appends the whole state of each connection
        if AuthenticationError.__name__ in said:
            return "the Sentinels refuse their own user or password, `sentinel_username` and `sentinel_password`"
        return f"{said.partition(' : ')[0]} by the Sentinels that answer"
    return said


def _explain_refusal(error: BaseException, said: str) -> str:
    if isinstance(error, OutOfMemoryError):
        return (
            "Redis is full and refuses writes: it has used all memory that its `maxmemory` allows. Raise that, or free "
            "memory; `ebb doctor` says how much is used. What was accepted before is kept."
        )
    if isinstance(error, ReadOnlyError):
        return f"Redis refuses writes, because it is a replica ({said}): set EBB_REDIS_URL to its primary."
    if isinstance(error, NoPermissionError):
        return f"Redis refuses what Ebb's user may not do ({said}): give this user `+@all ~* &*` by `acl setuser`."
    if any(one in said for one in TOO_FEW):
        return (
            "Redis has too few databases: Ebb uses that of EBB_REDIS_URL and the next two. Give a lower number at the "
            "end of the address, or raise `databases` of Redis. A server of a Redis Cluster cannot be used."
        )
    if NO_REPLICAS in said:
        return (
            "Redis refuses writes, because fewer replicas follow it than its `min-replicas-to-write` asks for: start "
            "them, or lower that. What was accepted before is kept."
        )
    return f"Redis refuses writes, because it cannot save them: make room on its disk. It says: {said}."


def open_redis(
    redis_url: str, after: int = 0, *, kind: type[Redis] = Redis, answer_seconds: float = ANSWER_SECONDS
) -> Redis:
    """Return a connection pool to the database `after` places after that of the messages, opened on first use.

    With Sentinels in the address, each new connection asks them for the current primary.
    """
    options: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_timeout": answer_seconds,
        "health_check_interval": 10,
        **KEEPALIVE,
    }
    named = sentinels(redis_url)
    if named is None:
        return kind.from_url(database_after(redis_url, after), **options)
    login = {"username": named.username, "password": named.password, "db": named.database + after}
    manager = ask_once(Sentinel(named.hosts, sentinel_kwargs=named.options()))
    return manager.master_for(named.master_name, redis_class=kind, **login, **options)


def ask_once(manager: Sentinel) -> Sentinel:
    """Have each Sentinel asked once: redis-py would ask one that is away ten times more before it asks the next one."""
    for sentinel in manager.sentinels:
        sentinel.set_retry(Retry(NoBackoff(), 0))
    return manager


def own_keys(redis_url: str, *, answer_seconds: float = ANSWER_SECONDS) -> Redis:
    """Return a connection pool to the database of Ebb's own keys, opened on first use."""
    return open_redis(redis_url, OWN_AFTER, kind=OwnKeys, answer_seconds=answer_seconds)


def clock(redis: Redis) -> datetime:
    """Return the server's time."""
    seconds, micros = redis.time()
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=micros)


RESULT = "celery-task-meta-{}"
PARTS = "celery-taskset-meta-*.j"
"""Keys of the answers that chords keep until the last part has answered: sorted sets of `[1, task, state, answer]`."""

# An error takes the place of each answer, which Celery counts: without it a chord under way would never end.
DROP_PARTS = r"""
    if redis.call('type', KEYS[1]).ok ~= 'zset' then return redis.call('del', KEYS[1]) end
    local kept = redis.call('zrange', KEYS[1], 0, -1, 'withscores')
    for i = 1, #kept, 2 do
        local task = string.match(kept[i], '^%[[^,]+, "([^"\\]*)"') or ''
        local failed = '["' .. kept[i + 1] .. '", "' .. task .. '", "FAILURE", ' .. ARGV[1] .. ']'
        if failed ~= kept[i] then
            redis.call('zadd', KEYS[1], kept[i + 1], failed) -- first: a set without elements loses its expiry
            redis.call('zrem', KEYS[1], kept[i])
        end
    end
"""

DROPPED = """
    {"exc_type": "ChordError", "exc_module": "celery.exceptions",
     "exc_message": ["its answer was dropped by `ebb purge --scrub`; send the chord again"]}
"""


def drop_results(redis_url: str, tasks: Iterable[str] | None = None) -> None:
    """Drop results of these tasks, or of all; a caller that is about to read one may get none.

    With all, it also drops the answers that chords keep, so that a chord under way fails.
    """
    with open_redis(redis_url, RESULTS_AFTER) as results:
        found = results.scan_iter(RESULT.format("*"), count=1_000) if tasks is None else map(RESULT.format, tasks)
        for key in found:
            results.delete(key)
        for key in results.scan_iter(PARTS, count=1_000) if tasks is None else ():
            results.eval(DROP_PARTS, 1, key, DROPPED)


def compact(redis: Redis, *, wait: bool = False) -> bool:
    """Make Redis rewrite its file without deleted keys; return whether it does, or has no file.

    With `wait`, return after the rewrite, or after a minute.
    """
    try:
        if redis.info("persistence")["aof_enabled"]:
            redis.bgrewriteaof()
        elif redis.config_get("save").get("save"):
            redis.bgsave()
    except (ResponseError, RefusedError) as error:
        return "in progress" in str(error)
    until = time.monotonic() + REWRITE_SECONDS
    while wait and time.monotonic() < until and _is_rewriting(redis):
        time.sleep(0.05)
    return True


def _is_rewriting(redis: Redis) -> bool:
    persistence = redis.info("persistence")
    names = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
    return any(persistence.get(name) for name in names)


MIB = 1024**2
KEEPS = "noeviction"


@dataclass(frozen=True, slots=True)
class Condition:
    """State of a Redis server; memory in bytes, a limit of 0 is none; `fsync` is None if unknown."""

    server: str
    memory_used: int
    memory_limit: int
    eviction: str
    append_only_file: bool
    fsync: str | None
    last_save: str

    def warnings(self) -> list[str]:
        """Return risks of losing messages or accepted writes, each with what to do."""
        found = {
            f"`maxmemory-policy` is {self.eviction}: a full Redis would evict messages and accepted writes; "
            f"set it to {KEEPS}": self.eviction != KEEPS,
            "the append-only file is off: what was accepted without waiting is lost when Redis ends; "
            "set `appendonly yes`": not self.append_only_file,
            f"`appendfsync` is {self.fsync}: a failure of power may lose many seconds of accepted writes; "
            "set it to everysec or always": self.append_only_file and self.fsync == "no",
            f"the last write of its file failed ({self.last_save}): make room on its disk": self.last_save != "ok",
            "more than nine tenths of its memory are used, so nothing is accepted without waiting; "
            "raise `maxmemory` or start more workers": self.is_nearly_full(),
        }
        return [said for said, holds in found.items() if holds]

    def is_nearly_full(self) -> bool:
        """Return whether writes without waiting are refused for lack of memory."""
        return 0 < self.memory_limit * FULL_SHARE < self.memory_used

    def loses(self) -> str:
        """Return which accepted writes a power failure may lose."""
        if not self.append_only_file:
            return "all that are not stored"
        known = {"always": "nothing", "everysec": "about the last second"}
        return known.get(self.fsync or "", "an unknown number of seconds")

    def answer(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self) | {"power_failure_loses": self.loses(), "warnings": self.warnings()}

    def __str__(self) -> str:
        """Return it as a sentence."""
        limit = f" of {self.memory_limit / MIB:.0f}" if self.memory_limit else ""
        file = f"append-only file on (fsync {self.fsync or 'unknown'})" if self.append_only_file else "no file"
        return (
            f"{self.server}, {self.memory_used / MIB:.0f}{limit} MiB of memory used, {self.eviction}, {file}; "
            f"a failure of power loses {self.loses()} of what was accepted without waiting"
        )


def condition(redis: Redis) -> Condition:
    """Query the state of a server."""
    server, memory, saving = redis.info("server"), redis.info("memory"), redis.info("persistence")
    own = server.get("valkey_version")
    return Condition(
        server=f"Valkey {own}" if own else f"Redis {server['redis_version']}",
        memory_used=int(memory["used_memory"]),
        memory_limit=int(memory.get("maxmemory", 0)),
        eviction=str(memory.get("maxmemory_policy", KEEPS)),
        append_only_file=bool(saving.get("aof_enabled")),
        fsync=_fsync(redis),
        last_save=str(saving.get("aof_last_write_status", "ok")),
    )


def _fsync(redis: Redis) -> str | None:
    """Return `appendfsync`; hosted servers, and those where Ebb's user has few rights, may not show it."""
    try:
        found = redis.config_get("appendfsync").get("appendfsync")
    except (ResponseError, RefusedError):
        return None
    return None if found is None else str(found)
