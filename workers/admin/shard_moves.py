"""Shards: list them, add one, and move a namespace to another one while it is in use."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from ebb.contract.admin import NamespaceMoved, Shard

from workers.admin import branches as branching
from workers.admin import keys
from workers.context import Context
from workers.coordination import signals
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.storage import branches, namespaces, routing, schema, shard_moves, shards
from workers.storage.connection import Connection, connect, lift_limits, snapshot, transaction
from workers.storage.shard_moves import Content, Move, Moving, Way

LOCK_MS = 300
"""Longest wait for writes that are under way; new ones wait meanwhile, so a longer one is tried again."""

HELD_MS, HELD_MS_ON_CITUS = 800, 600
"""When writes have waited for this long, they go on, and the move tries again; Citus commits on several nodes then."""

ROWS_PER_MS = 100
"""Writes to larger namespaces may wait longer: a second for each 100,000 rows."""

OTHER_MOVE = "namespace: another move, or the deletion of what one left, is at work; try again."
OTHER_NODE = "namespace: its shard was moved to another node meanwhile; nothing was moved, try again."

TRIES = 200
PAUSE_SECONDS = 0.2


class _TooLongError(Exception):
    """Writes were held for as long as they may be."""


class _RefusedError(UnavailableError):
    """A move that has to be tried again, for a reason that the message gives in full."""


class OtherMoveError(_RefusedError):
    """A move while another one, or the deletion of what one left, is at work."""


def move(
    context: Context, namespace: str, new: int, meanwhile: Callable[[str], None] = lambda _: None
) -> NamespaceMoved:
    """Move a namespace to another shard; reads go on, and writes wait while the last changes are copied.

    An interrupted move has moved everything or nothing. In one database all of it is one transaction but for the
    deletion of the old rows. On Citus the new rows are committed, then the directory, then the old rows are hidden; a
    later call or a cleaning deletes those that the directory does not name. `meanwhile` is called after each step.

    Raises:
        NotFoundError: there is no such namespace.
        InvalidInputError: there is no such shard, or the namespace is a branch or has branches.
        SettingsError: a pooler is between this process and PostgreSQL; nothing was moved.
        UnavailableError: another process moves it, writes to it did not pause, or a server did not answer.
    """
    count = context.settings.shards
    if not 0 <= new < count:
        raise InvalidInputError(
            f"shard: EBB_SHARDS={count} has no shard {new}, only 0 to {count - 1}. `ebb shards add` creates the next "
            "one; then raise EBB_SHARDS in every process."
        )
    try:
        finish(context)
        with routing.at(0, 1):
            found = _move(context, namespace, new, meanwhile)
        if found.old != new:
            keys.publish_everywhere(context)
            finish(context)
            signals.mark_grown(context.redis, namespace)
    except _RefusedError:
        raise
    except (psycopg.OperationalError, psycopg.InterfaceError, UnavailableError) as error:
        raise _interrupted(namespace, new, error) from error
    return found


def _interrupted(namespace: str, new: int, error: Exception) -> UnavailableError:
    said = str(error).strip().splitlines()[:1] or [type(error).__name__]
    return UnavailableError(
        f"The move of {namespace!r} to shard {new} was interrupted: {said[0].rstrip('.')}. Nothing is lost: the "
        f"namespace is complete on its old shard or on the new one. When the server answers, run `ebb shards move "
        f"{namespace} {new}` again; it continues or deletes what is left over."
    )


def finish(context: Context) -> int:
    """Delete the old rows of moved namespaces, unless another caller does; return of how many namespaces.

    Raises:
        SettingsError: a pooler is between this process and PostgreSQL.
    """
    with routing.at(0, 1), connect(context.direct_database_url, autocommit=True) as locked, locked.transaction():
        _unlimited(locked)
        if not shard_moves.try_hold(locked):
            return 0
        if namespaces.is_on_citus(locked):
            with routing.at(0, 1), connect(context.direct_database_url) as db:
                _hide_second(context, db)
        return _delete_left(context, locked)


def _with_schema(context: Context, db: Connection) -> Iterator[int]:
    """Yield each shard that has its schema as the current one; in place of another, the first would be read again."""
    home = shards.home(db)
    for number in context.each_shard():
        if shards.exists(db, home, number):
            yield number


def _hide_second(context: Context, db: Connection) -> None:
    """Hide rows of namespaces that have others on the shard that the directory names."""
    names: dict[int, set[str]] = {}
    for number in _with_schema(context, db):
        with transaction(context.database_url) as own:
            names[number] = set(namespaces.all_names(own))
    home, directory = shards.home(db), shards.directory(db)
    for number, found in names.items():
        for name in found:
            right = directory.get(name, 0)
            if right != number and name in names.get(right, ()):
                shard_moves.hide(db, name, shards.schema_of(home, number))


def _delete_left(context: Context, db: Connection) -> int:
    left = 0
    for _ in _with_schema(context, db):
        with transaction(context.database_url) as own:
            found = [one for one in branches.listed(own, None) if one.name.endswith(shard_moves.LEFT)]
        for one in found:
            while branching.drop_facts(context, one):
                pass
            branching.drop(context, one)
        left += len(found)
    return left


def _move(context: Context, namespace: str, new: int, meanwhile: Callable[[str], None]) -> NamespaceMoved:
    url = context.direct_database_url
    with connect(url) as db:
        with db.transaction():
            _unlimited(db)
            if not shard_moves.try_hold(db):
                raise OtherMoveError(OTHER_MOVE)
            home, old = shards.home(db), shards.directory(db, [namespace]).get(namespace, 0)
            _check_shards(db, home, namespace, old, new, context.settings.shards)
            way = Way(home, shards.schema_of(home, old), shards.schema_of(home, new))
            moving = _find(db, way, namespace)
            if old == new:
                return NamespaceMoved(namespace=namespace, old=old, new=new, rows=0, held_ms=0.0)
            _check(db, way, moving, new)
            move = Move(way, moving, shard_moves.tables(db, way), namespaces.is_on_citus(db))
            with _written(url, db, apart=move.on_citus) as target:
                rows, began = _Mover(url, db, target, move, old, new).run(meanwhile)
            meanwhile("shown")
        held_ms = round((time.monotonic() - began) * 1000, 1)
        meanwhile("switched")
        if move.on_citus:
            with db.transaction():
                shard_moves.hide(db, namespace, way.source)
        meanwhile("left")
    return NamespaceMoved(namespace=namespace, old=old, new=new, rows=rows, held_ms=held_ms)


@contextmanager
def _written(url: str, db: Connection, *, apart: bool) -> Iterator[Connection]:
    """Yield the connection that writes to the new shard, committed at the end: on Citus one for its node alone."""
    if not apart:
        yield db
        return
    with connect(url) as own, own.transaction():
        _unlimited(own)
        yield own


def _unlimited(db: Connection) -> None:
    lift_limits(db)
    db.execute("set local idle_in_transaction_session_timeout = 0")


def _check_shards(db: Connection, home: str, namespace: str, old: int, new: int, count: int) -> None:
    """Raise `InvalidInputError` if the directory names a shard that is not counted, or one has no schema."""
    if old >= count:
        raise InvalidInputError(
            f"namespace: {namespace!r} is on shard {old} by the directory, and EBB_SHARDS={count} does not count it: "
            f"set EBB_SHARDS={old + 1} or more in every process, and try again."
        )
    for number in (old, new):
        if not shards.exists(db, home, number):
            raise InvalidInputError(
                f"shard: shard {number} has no schema {shards.schema_of(home, number)!r}: run `ebb migrate` with "
                f"EBB_SHARDS={count}, which creates it, or restore it from a backup if it had facts."
            )


def _find(db: Connection, way: Way, namespace: str) -> Moving:
    moving = shard_moves.find(db, way, namespace)
    if moving is None:
        raise NotFoundError(f"namespace: there is no {namespace!r}; correct the name.")
    return moving


def _check(db: Connection, way: Way, moving: Moving, new: int) -> None:
    if moving.is_branch or moving.has_branches:
        which = "is a branch" if moving.is_branch else "has branches"
        raise InvalidInputError(
            f"namespace: {moving.name!r} {which}, and branches stay with their original: drop them with "
            "`ebb branch --drop` first."
        )
    if not shard_moves.alike(db, way, shard_moves.KIND):
        raise InvalidInputError(
            f"shard: shard {new} has another language or embedder: start a worker with EBB_SHARDS={new + 1} or more, "
            "which sets them, and try again."
        )


TRY_AGAIN = (
    psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.UniqueViolation,
    psycopg.errors.ProgramLimitExceeded, _TooLongError,
)  # fmt: skip
"""Errors after which the move tries again; the cause is removed while writes go on."""


@dataclass(slots=True)
class _Mover:
    """A move whose transaction began: connections to the first shard and to the new one."""

    url: str
    db: Connection
    target: Connection
    move: Move
    old: int
    new: int
    since: tuple[str, str] = ("", "")

    def run(self, meanwhile: Callable[[str], None]) -> tuple[int, float]:
        """Copy, catch up, and switch; return the number of rows, and from when writes were held."""
        with snapshot(self.url) as seen:
            self.since = shard_moves.horizon(seen, self.move.way)
            rows = shard_moves.copy(seen, self.target, self.move)
        shard_moves.advance(self.target, self.move)
        meanwhile("copied")
        held_ms = max(HELD_MS_ON_CITUS if self.move.on_citus else HELD_MS, rows // ROWS_PER_MS)
        for _ in range(TRIES):
            rows += self._catch_up()
            if began := self._switch(held_ms):
                meanwhile("caught up")
                return rows, began
            time.sleep(PAUSE_SECONDS)
        raise _RefusedError(
            f"namespace: writes to {self.move.namespace.name!r} did not pause for {LOCK_MS} ms, or what they changed "
            f"could not be copied in {held_ms} ms; nothing was moved, try again when there are fewer."
        )

    def _catch_up(self) -> int:
        """Copy what changed until now, while writes go on."""
        with snapshot(self.url) as seen:
            since = shard_moves.horizon(seen, self.move.way, self._own_transactions())
            if since[0] != self.since[0]:
                raise _RefusedError(OTHER_NODE)
            shard_moves.delete_vanished(seen, self.target, self.move, self.move.tables, lambda: None)
            rows = shard_moves.catch_up(seen, self.target, self.move, self.since[1])
        shard_moves.advance(self.target, self.move)
        self.since = since
        return rows

    def _own_transactions(self) -> list[shard_moves.Running]:
        way = self.move.way
        return [
            shard_moves.own_transaction(self.target, way, way.target),
            shard_moves.own_transaction(self.db, way, way.home),
            shard_moves.own_transaction(self.db, way, way.source),
        ]

    def _switch(self, held_ms: int) -> float | None:
        """Hold writes, copy the rest, and switch; return when that began, or None if it took longer than `held_ms`."""
        began = time.monotonic()
        until = began + held_ms / 1000
        try:
            with self.target.transaction(), self.db.transaction():
                self._lock()
                self._copy_rest(lambda: _limit(until, self.db, self.target))
        except TRY_AGAIN:
            return None
        return began

    def _lock(self) -> None:
        """Take the locks that all transactions on the namespace or its shard share."""
        self.db.execute("select set_config('lock_timeout', %s, true)", [str(LOCK_MS)])
        # a process that is stopped does not hold writes for ever
        self.db.execute("set local idle_in_transaction_session_timeout = '60s'")
        for place in (self.old, self.move.namespace.name):
            shard_moves.lock(self.db, self.move.way, place)

    def _copy_rest(self, limit: Callable[[], None]) -> None:
        limit()
        _check(self.db, self.move.way, _find(self.db, self.move.way, self.move.namespace.name), self.new)
        if self.move.on_citus and shard_moves.horizon(self.db, self.move.way)[0] != self.since[0]:
            raise _RefusedError(OTHER_NODE)
        wanted = self._copy_changes(limit)
        limit()
        if unequal := shard_moves.unequal(self.target, self.move, wanted):
            shard_moves.delete_vanished(self.db, self.target, self.move, unequal, limit)
        limit()
        same_rules = shard_moves.alike(self.db, self.move.way, shard_moves.RULES)
        shard_moves.show(self.target, self.move, settled=same_rules)
        shard_moves.switch(self.db, self.move, self.new)
        if not self.move.on_citus:
            shard_moves.hide(self.db, self.move.namespace.name, self.move.way.source)
            # What is lost with this commit was never seen, as a later one that waits for the disk waits for this too.
            self.db.execute("set local synchronous_commit = off")
        limit()
        lift_limits(self.target)
        lift_limits(self.db)

    def _copy_changes(self, limit: Callable[[], None]) -> list[Content]:
        changed = shard_moves.changes(self.db, self.move, self.since[1])
        shard_moves.write(self.target, self.move, changed, limit)
        if any(one.rows for one in changed if one.name in shard_moves.COUNTED):
            shard_moves.advance(self.target, self.move)
        return changed


def _limit(until: float, *connections: Connection) -> None:
    """Let the next statements take until an instant of the monotonic clock; raise `_TooLongError` if that is past."""
    left = round((until - time.monotonic()) * 1000)
    if left <= 0:
        raise _TooLongError
    for db in set(connections):
        db.execute("select set_config('statement_timeout', %s, true)", [str(left)])


def listed(context: Context) -> list[Shard]:
    """Return all shards with their numbers of namespaces and facts, and their sizes."""
    found = []
    for number in context.each_shard():
        with transaction(context.database_url) as db:
            found.append(shards.measure(db, number, on_citus=namespaces.is_on_citus(db)))
    return found


def add(context: Context, report: Callable[[str], None] = lambda _: None) -> int:
    """Create the schema of the next shard; return its number. New namespaces use it once EBB_SHARDS counts it."""
    with routing.at(0, 1), connect(context.database_url) as db:
        number = shards.next_number(db)
    schema.apply(context.direct_database_url, report, number + 1)
    return number
