"""Shards: list them, add one, and move a namespace to another while it is in use."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psycopg

from workers.admin import branches as branching
from workers.admin import keys
from workers.context import Context
from workers.coordination import signals
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.storage import branches, namespaces, routing, schema, shard_moves, shards
from workers.storage.connection import Connection, connect, lift_limits, snapshot, transaction
from workers.storage.shard_moves import Moving, Way
from workers.storage.shards import Shard

LOCK_MS = 300
"""Longest wait for writes that are under way; new ones wait meanwhile, so a longer one is tried again."""

TRIES = 200
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of a move: the shards, the number of copied rows, and for how long writes were held."""

    namespace: str
    old: int
    new: int
    rows: int = 0
    held_ms: float = 0.0


def listed(context: Context) -> list[Shard]:
    """Return all shards with their numbers of namespaces and facts, and their sizes."""
    found = []
    for number in context.each_shard():
        with transaction(context.database_url) as db:
            found.append(shards.measure(db, number))
    return found


def add(context: Context, report: Callable[[str], None] = lambda _: None) -> int:
    """Create the schema of the next shard; return its number. New namespaces use it once EBB_SHARDS counts it."""
    with routing.at(0, 1), connect(context.database_url) as db:
        number = shards.next_number(db)
    schema.apply(context.direct_database_url, report, number + 1)
    return number


def move(context: Context, namespace: str, new: int, meanwhile: Callable[[str], None] = lambda _: None) -> Moved:
    """Move a namespace to another shard; reads go on, and writes wait while the last changes are copied.

    All of it is one transaction but for the deletion of the old rows, which a later call or a cleaning finishes, so an
    interrupted move has either moved everything or nothing. `meanwhile` is called after each step with its name.

    Raises:
        NotFoundError: there is no such namespace.
        InvalidInputError: there is no such shard, the namespace is a branch or has branches, or this is Citus.
        UnavailableError: another process moves it, or writes to it did not pause.
    """
    if not 0 <= new < context.settings.shards:
        raise InvalidInputError(
            f"shard: there is no shard {new}; EBB_SHARDS={context.settings.shards} has 0 to "
            f"{context.settings.shards - 1}. Add one with `ebb shards add`."
        )
    finish(context)
    with routing.at(0, 1), connect(context.direct_database_url) as db, db.transaction():
        _refuse_citus(db)
        lift_limits(db)
        if not shard_moves.try_hold(db):
            raise UnavailableError("namespace: another move, or the deletion of what one left, is at work; try again.")
        done = _move(context.direct_database_url, db, namespace, new, meanwhile)
    done = replace(done, held_ms=round((time.monotonic() - done.held_ms) * 1000, 1) if done.held_ms else 0.0)
    meanwhile("switched")
    if done.old != done.new:
        finish(context)
        keys.publish(context)
        signals.mark_grown(context.redis, namespace)
    return done


def finish(context: Context) -> int:
    """Delete the old rows of moved namespaces, unless another caller does; return of how many namespaces."""
    with routing.at(0, 1), snapshot(context.direct_database_url) as locked:
        return _delete_left(context) if shard_moves.try_hold(locked) else 0


def _delete_left(context: Context) -> int:
    left = 0
    for _ in context.each_shard():
        with transaction(context.database_url) as db:
            found = [one for one in branches.listed(db, None) if one.name.endswith(shard_moves.LEFT)]
        for one in found:
            while branching.drop_facts(context, one):
                pass
            branching.drop(context, one)
        left += len(found)
    return left


def _move(url: str, db: Connection, namespace: str, new: int, meanwhile: Callable[[str], None]) -> Moved:
    home, old = shards.where(db, namespace)
    way = Way(home, shards.schema_of(home, old), shards.schema_of(home, new))
    moving = shard_moves.find(db, way, namespace)
    if moving is None:
        raise NotFoundError(f"namespace: there is no {namespace!r}; `ebb shards` lists what is on which shard.")
    if old == new:
        return Moved(namespace, old, new)
    _check(moving)
    if shard_moves.unlike(db, way):
        raise InvalidInputError(
            f"shard: shard {new} has another language or embedder: start a worker with EBB_SHARDS={new + 1} or more, "
            "which sets them, and try again."
        )
    try:
        with _waiting_briefly(db):
            shard_moves.switch(db, way, namespace, new)
    except psycopg.errors.LockNotAvailable:
        raise UnavailableError(f"namespace: another process moves {namespace!r}; try again when it is done.") from None
    with snapshot(url) as seen:
        since = shard_moves.horizon(seen)
        rows = shard_moves.copy(seen, db, way, moving.id)
    meanwhile("copied")
    began = _hold_writes(db, way, namespace, old)
    moving = shard_moves.find(db, way, namespace) or moving
    _check(moving)
    rows += shard_moves.catch_up(db, way, moving.id, since)
    shard_moves.leave(db, way, moving)
    meanwhile("caught up")
    return Moved(namespace, old, new, rows, began)


def _refuse_citus(db: Connection) -> None:
    if db.execute(namespaces.ON_CITUS).fetchone() == (True,):
        raise InvalidInputError(
            "namespace: on Citus, namespaces stay on their shard, as rows are not copied between nodes: move "
            "the whole shard with `citus_schema_move`."
        )


def _check(moving: Moving) -> None:
    if moving.is_branch or moving.has_branches:
        which = "is a branch" if moving.is_branch else "has branches"
        raise InvalidInputError(
            f"namespace: {moving.name!r} {which}, and branches stay with their original: drop them with "
            "`ebb branch --drop` first."
        )


@contextmanager
def _waiting_briefly(db: Connection) -> Iterator[None]:
    """Limit the wait for locks in the block to `LOCK_MS`; if one is not free, the block alone is undone."""
    with db.transaction():
        db.execute("select set_config('lock_timeout', %s, true)", [str(LOCK_MS)])
        yield
        db.execute("set local lock_timeout = '5s'")


def _hold_writes(db: Connection, way: Way, namespace: str, old: int) -> float:
    """Take the locks that all transactions on the namespace or its shard share; return when, in monotonic seconds.

    Raises:
        UnavailableError: writes overlapped all the time.
    """
    for _ in range(TRIES):
        began = time.monotonic()
        try:
            with _waiting_briefly(db):
                shard_moves.lock(db, way, old)
                shard_moves.lock(db, way, namespace)
        except psycopg.errors.LockNotAvailable:
            time.sleep(PAUSE_SECONDS)
        else:
            return began
    raise UnavailableError(f"namespace: writes to {namespace!r} did not pause for {LOCK_MS} ms; nothing was moved.")
