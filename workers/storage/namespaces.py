"""Namespaces: tenants, with their counts and settings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString

import psycopg
from psycopg.types.json import Jsonb

from workers.errors import SettingsError
from workers.storage import shards
from workers.storage.connection import Connection, fetch_one, number

# Without links or facts about entities a recall skips the graph. `order by` makes the planner use the indexes, as it
# overestimates how soon a scan finds a row and would read the whole namespace. How many facts the database
# has is PostgreSQL's estimate: that of the last analyze too, as a crash of the server sets its counters to 0.
# The columns are the fields of `Namespace` in their order.
FIND = """
    select namespaces.id, namespaces.name, counted_facts, counted_words,
        embedders.name as embedder, settings, turns,
        (select source from links where namespace = namespaces.id order by source limit 1) is not null as links,
        (
            select entity from facts
            where namespace = namespaces.id and entity is not null and forgotten_at is null and superseded_at is null
            order by left(folded(entity), 200), facts.created_at limit 1
        ) is not null as entities,
        settings_changed_at is not null as unsettled,
        counted_facts >= %(nearly_all)s * greatest(
            pg_stat_get_live_tuples('facts'::regclass), (select reltuples from pg_class where oid = 'facts'::regclass)
        ) and pg_stat_get_live_tuples('facts'::regclass) > 0 as alone,
        (select namespace from forgotten_hashes where namespace = namespaces.id limit 1) is not null as deletions,
        (select namespace from merged_texts where namespace = namespaces.id limit 1) is not null as merges
    from namespaces left join embedders on true
    where namespaces.name = %(name)s
"""

ID = "select id from namespaces where name = %(name)s"

ADD = "insert into namespaces (name) values (%(name)s) on conflict (name) do nothing returning id"

# Only the coordinator of Citus has a sequence of integers, so nodes choose higher ids. An insert that meets a
# concurrent one with the same id does nothing, and is repeated with the next.
ON_CITUS = "select to_regclass('pg_catalog.pg_dist_local_group') is not null"
ON_A_NODE = "select groupid > 0 from pg_dist_local_group"
NEXT_ID = "select coalesce(max(id), %(first)s) + 1 from namespaces where id between %(first)s and %(last)s"
ADD_ON_A_NODE = """
    insert into namespaces (id, name) overriding system value values (%(id)s, %(name)s) on conflict do nothing
    returning id
"""

HOLD = "update namespaces set held_since = %(now)s where id = %(namespace)s and held_since is null"

RELEASE = """
    update namespaces set held_since = null, gap_from = null, gap_until = null
    where (held_since is not null or gap_until is not null) and (%(namespace)s::int is null or id = %(namespace)s)
"""

# A name with a blank is that of rows that a move to another shard left; they are to be deleted.
ALL_NAMES = "select name from namespaces where position(' ' in name) = 0 order by id"

# Of originals alone.
FOLLOWING = """
    select id, name from namespaces
    where id > %(after)s and position(' ' in name) = 0 and branch_of is null
    order by id
    limit 1
"""

BEGINNING = """
    select name from namespaces
    where starts_with(name, %(prefix)s) and position(' ' in name) = 0
    order by name
    limit %(limit)s
"""

ALL_IDS = "select id from namespaces where position(' ' in name) = 0 order by id"

NAMES = "select name from namespaces where id = any(%(ids)s) order by name"

NEARLY_ALL = 0.99
"""Share of all facts from which a namespace counts as the only one; bounds the foreign facts that a search skips."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """One tenant, with its id, latest counts and settings, and the database's embedder.

    `turns` is its number of stored turns; `links` and `entities` say whether it has any. It is `unsettled` until a pass
    has applied changed settings to every fact, and `alone` if it has nearly all facts of the database; `deletions` says
    whether facts were forgotten on request, `merges` whether any were merged.
    """

    id: int
    name: str
    counted_facts: int
    counted_words: int
    embedder: str | None
    settings: dict[str, Any] = field(default_factory=dict)
    turns: int = 0
    links: bool = False
    entities: bool = False
    unsettled: bool = False
    alone: bool = False
    deletions: bool = False
    merges: bool = False

    @property
    def mean_words(self) -> float | None:
        """Return the average number of words of a fact, stems and written forms; none before they are counted."""
        return self.counted_words / self.counted_facts if self.counted_facts else None


def named(name: str) -> dict[str, Any]:
    """Return the parameters of `FIND`."""
    return {"name": name, "nearly_all": NEARLY_ALL}


def find(db: Connection, name: str) -> Namespace | None:
    """Return the namespace with that name; none before its first fact."""
    return fetch_one(db, Namespace, FIND, named(name))


UNKNOWN = 0
"""Stands for the id of a namespace before its first fact; no row has it, so a statement finds and changes nothing."""


def id_of(db: Connection, name: str) -> int:
    """Return the id of a namespace, or `UNKNOWN`."""
    return number(db, ID, {"name": name})


def id_within(db: Connection, name: str | None) -> int | None:
    """Return the id of a namespace as `id_of` does, or None, for all, without a name."""
    return None if name is None else id_of(db, name)


def find_or_add(db: Connection, name: str) -> Namespace:
    """Return the namespace with that name; add it if it is missing."""
    while (found := find(db, name)) is None:
        _add(db, name, shards.place(db, name))
    return found


def is_on_citus(db: Connection) -> bool:
    """Return whether the database is one of a Citus cluster."""
    return db.execute(ON_CITUS).fetchone() == (True,)


def is_on_a_node(db: Connection) -> bool:
    """Return whether the server is one of a Citus cluster, other than its coordinator."""
    return is_on_citus(db) and db.execute(ON_A_NODE).fetchone() == (True,)


def _add(db: Connection, name: str, shard: int) -> None:
    statement: LiteralString
    if is_on_a_node(db):
        first = 2**30 + shard * shards.IDS_OF_A_SHARD
        given = {"first": first, "last": first + shards.IDS_OF_A_SHARD - 1}
        (next_id,) = db.execute(NEXT_ID, given).fetchone() or (0,)
        statement, parameters = ADD_ON_A_NODE, {"id": next_id, "name": name}
    else:
        statement, parameters = ADD, {"name": name}
    try:
        db.execute(statement, parameters).fetchone()  # waits for an error also in a pipeline
    except psycopg.errors.RaiseException as error:
        raise SettingsError(f"{error.diag.message_primary}. `ebb doctor` names a shard that is missing.") from error


def names(db: Connection, ids: Sequence[int]) -> list[str]:
    """Return the names of these namespaces."""
    return [name for (name,) in db.execute(NAMES, {"ids": list(ids)})]


def with_prefix(db: Connection, prefix: str, limit: int) -> list[str]:
    """Return the names that begin with a prefix, in order."""
    return [name for (name,) in db.execute(BEGINNING, {"prefix": prefix, "limit": limit})]


def all_names(db: Connection) -> list[str]:
    """Return the names of all namespaces."""
    return [name for (name,) in db.execute(ALL_NAMES)]


def following(db: Connection, after: int) -> tuple[int, str] | None:
    """Return (id, name) of the next namespace after an id that is no branch."""
    return db.execute(FOLLOWING, {"after": after}).fetchone()


def all_ids(db: Connection) -> list[int]:
    """Return the ids of all namespaces."""
    return [id_ for (id_,) in db.execute(ALL_IDS)]


def hold(db: Connection, namespace: int, now: datetime) -> None:
    """Record that a namespace has held facts since `now`, unless it has already."""
    db.execute(HOLD, {"namespace": namespace, "now": now})


def release(db: Connection, namespace: int | None = None) -> None:
    """Record that nothing is held any more in one namespace, or in any."""
    db.execute(RELEASE, {"namespace": namespace})


SETTINGS_OF = "select id, settings, turns from namespaces where id = any(%(ids)b)"

LOCK_SETTINGS = "select settings, chosen_at from namespaces where id = %(namespace)s for no key update"

PUT_SETTINGS = "update namespaces set settings = %(settings)s, chosen_at = %(now)s where id = %(namespace)s"

UNSETTLE = "update namespaces set settings_changed_at = statement_timestamp() where id = %(namespace)s"

# A whole number may be stored as 50000.0.
WITH_CAPACITY = """
    select id, (settings #>> '{capacity,facts}')::numeric::bigint, (settings #>> '{capacity,bytes}')::numeric::bigint
    from namespaces
    where jsonb_typeof(settings -> 'capacity') = 'object' and (%(namespace)s::int is null or id = %(namespace)s)
    order by id
"""

WITH_CHANGED_SETTINGS = "select id from namespaces where settings_changed_at is not null order by id"

# Transactions that began before the change may still write by the old settings, for as long as a task may take. A
# change far ahead of the clock was made before it was set back.
SETTLE_SETTINGS = """
    update namespaces set settings_changed_at = null
    where id = any(%(ids)s) and settings_changed_at not between
        statement_timestamp() - interval '2 minutes' and statement_timestamp() + interval '2 minutes'
"""


def settings_of(db: Connection, namespaces: Sequence[int]) -> dict[int, tuple[dict[str, Any], int]]:
    """Return (settings, turns) by namespace."""
    rows = db.execute(SETTINGS_OF, {"ids": list(namespaces)}, binary=True)
    return {id_: (settings, turns) for id_, settings, turns in rows.fetchall()}


def lock_settings(db: Connection, namespace: int) -> tuple[dict[str, Any], datetime | None]:
    """Return a namespace's settings and when they were set, locked until the commit."""
    return db.execute(LOCK_SETTINGS, {"namespace": namespace}).fetchone() or ({}, None)


def put_settings(
    db: Connection, namespace: int, settings: dict[str, Any], now: datetime, *, fading: bool = True
) -> None:
    """Write a namespace's settings; if they affect decay (`fading`), the next pass recomputes all its facts."""
    db.execute(PUT_SETTINGS, {"namespace": namespace, "settings": Jsonb(settings), "now": now})
    if fading:
        db.execute(UNSETTLE, {"namespace": namespace})


def with_capacity(db: Connection, namespace: int | None) -> list[tuple[int, int | None, int | None]]:
    """Return (namespace, facts, bytes) of those with a capacity, of one namespace or all."""
    return db.execute(WITH_CAPACITY, {"namespace": namespace}).fetchall()


def with_changed_settings(db: Connection) -> list[int]:
    """Return the namespaces with changed settings that no pass has applied yet."""
    return [id_ for (id_,) in db.execute(WITH_CHANGED_SETTINGS)]


def settle_settings(db: Connection, namespaces: Sequence[int]) -> None:
    """Record that changed settings apply to every fact, unless the change is recent: then again by the next pass."""
    db.execute(SETTLE_SETTINGS, {"ids": list(namespaces)})
