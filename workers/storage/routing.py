"""Routing: which shard, a schema with all tables, the statements of a transaction are about."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from ebb import broker

if TYPE_CHECKING:
    import psycopg

Place: TypeAlias = str | int
"""A namespace, on whose shard the work is, or the number of a shard."""

HEADER = "ebb_place"
"""Message header with the place of the sender, for tasks without a namespace."""

# Not `route`, which an older schema lacks.
BY_NUMBER = """
    select current_schema() as home, shard, case when shard > 0 then set_config(
        'search_path', quote_ident(current_schema() || to_char(shard, '"_"FM0000')) || ', public', %(local)s
    ) end
    from (values (%(place)s::int)) as one (shard)
"""

# A namespace that the directory does not have is in the first shard, or new.
BY_NAMESPACE = "select home, shard, null from route(%(place)s)"

# A move takes this lock alone. It stands in a query of a table so that on Citus all nodes use the same one, and in a
# statement of its own so that the next one sees what was committed while it waited.
SHARE = "select pg_advisory_xact_lock_shared(hashtextextended(%(place)s, 15)) from languages"

_place: ContextVar[tuple[Place, int] | None] = ContextVar("place", default=None)
"""The current place and the number of shards; None in a system with one shard, where nothing is routed."""


@contextmanager
def at(place: Place, shards: int) -> Iterator[None]:
    """Work at a place of a system with so many shards until the end of the block."""
    before = _place.set((place, shards) if shards > 1 else None)
    try:
        yield
    finally:
        _place.reset(before)


def current() -> Place | None:
    """Return the current place; None in a system with one shard."""
    found = _place.get()
    return None if found is None else found[0]


def headers() -> dict[str, Place]:
    """Return the message headers for tasks that the current one sends."""
    place = current()
    return {} if place is None else {HEADER: place}


def shard_of_new(namespace: str) -> int:
    """Return the shard for a new namespace: by a hash, which needs no counts."""
    found = _place.get()
    return broker.number_of(namespace, 1 if found is None else found[1])


HOME = "select set_config('search_path', quote_ident(%(home)s) || ', public', true)"


@contextmanager
def switched(db: "psycopg.Connection[Any]", home: str, place: Place) -> Iterator[None]:
    """Continue a routed transaction at another place; it stays there after the block."""
    before = _place.get()
    token = _place.set((place, before[1] if before else 1))
    try:
        db.execute(HOME, {"home": home})
        send(db, place)
        yield
    finally:
        _place.reset(token)


def lock_name(place: Place) -> str:
    """Return the name of a place's lock."""
    return place if isinstance(place, str) else f"#{place}"


def begin(db: "psycopg.Connection[Any]", *, share: bool) -> "psycopg.Cursor[Any] | None":
    """Route the rest of a transaction to the current place, and `share` its lock; return the result of `send`, if any.

    The statements are sent together with the `begin`.
    """
    place = current()
    if place is None:
        return None
    with nullcontext() if db.pgconn.pipeline_status else db.pipeline():
        if share:
            db.execute(SHARE, {"place": lock_name(place)})
        return send(db, place)


def send(db: "psycopg.Connection[Any]", place: Place, *, local: bool = True) -> "psycopg.Cursor[Any]":
    """Set the search path for a place, from that of the first shard; its row is (first schema, shard or None, path).

    One that is not `local` stays for the session.
    """
    if isinstance(place, str) and not local:
        row = db.execute(BY_NAMESPACE, {"place": place}).fetchone()
        place = (row and row[1]) or 0
    statement = BY_NAMESPACE if isinstance(place, str) else BY_NUMBER
    return db.execute(statement, {"place": place, "local": local})
