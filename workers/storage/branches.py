"""Branches: copies of namespaces with all timestamps shifted into the past."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from workers.core import decay_intervals
from workers.storage.connection import Connection, fetch_all, fetch_one

OF_FACTS = ("activity", "vectors", "signatures", "events", "occurrences", "merged_texts")
"""Tables whose rows belong to one fact."""

BETWEEN_FACTS = {"links": ("source", "target"), "contradictions": ("fact", "other"), "likenesses": ("fact", "other")}
"""Tables whose rows refer to two facts, and the columns that do."""

OF_NAMESPACES = ("relations", "documents", "lexemes", "forgotten_hashes", "tally_history", "janitors", "deep")
"""Tables whose rows belong to the namespace as a whole."""

DROPPED = ("api_keys", "uses", "tallies", "tally_changes", "endings", "decay_allowances", "decay_runs", "folders")
"""Tables that are not copied: a branch has keys, runs and trigger-maintained counts of its own, and reads no folder."""

LEFT = ("erasures",)
"""Tables whose rows stay after a branch is dropped, to vacuum its pages."""

# Settings that no pass has applied to the original are to be applied to the branch, too.
BEGIN = """
    insert into namespaces (name, salt, turns, settings, settings_changed_at, counted_facts, counted_words,
        estimated_facts, held_since, branch_of, branch_age)
    select %(branch)s, salt, turns, settings, case when settings_changed_at is not null then statement_timestamp() end,
        counted_facts, counted_words, estimated_facts, held_since - %(age)s::interval, name, %(age)s
    from namespaces where name = %(original)s
    on conflict (name) do nothing
"""

BRANCH = """
    select id, name, branch_of as original, branch_age as age, coalesce(branched_at > '-infinity', false) as complete,
        coalesce(branched_at = '-infinity', false) as dropping
    from namespaces
"""

FIND = f"{BRANCH} where name = %(name)s"

LISTED = f"""
    {BRANCH}
    where branch_of = %(original)s or (branch_of is not null and %(original)s::text is null)
    order by name
"""

HOLD = "select from namespaces where id = %(branch)s and branched_at is null for no key update nowait"

STOP = """
    update namespaces set branched_at = '-infinity'
    where id = %(branch)s and branched_at is distinct from '-infinity'
"""

COMPLETE = "update namespaces set branched_at = %(now)s where id = %(branch)s and branched_at is null"

FOLLOWING = """
    select id from facts where namespace = %(namespace)s and id > %(after)s order by id limit %(limit)s
"""

# Identity and generated columns are set by PostgreSQL. Recent questions are not copied: their packed instants would not
# be shifted, so that the cool-down would go on in a branch in which it is over.
COLUMNS = """
    select attname, atttypid = 'timestamptz'::regtype from pg_attribute
    where attrelid = %(table)s::text::regclass and attnum > 0 and not attisdropped
        and attgenerated = '' and attidentity = '' and attname <> 'namespace'
        and (%(table)s::text, attname) not in (('links', 'id'), ('activity', 'asked'))
    order by attnum
"""

# As to `random`, see `imports`.
COPY = """
    insert into {table} (namespace, {columns})
    select %(branch)s, {older} from {table} as old
    where namespace = %(original)s and {wanted} and random() >= 0
    {order}
    on conflict do nothing
    {returning}
"""

BOTH_COPIED = """
    {first} = any(%(ids)s) and exists (
        select from facts where facts.namespace = %(branch)s and facts.id = old.{second}
    )
"""

SPELLS = """
    select fact, spells from activity
    where namespace = %(namespace)s and fact = any(%(ids)s) and spells is not null
"""

WRITE_SPELLS = """
    update activity set spells = new.spells
    from unnest(%(ids)s::uuid[], %(spells)s::bytea[]) as new (fact, spells)
    where namespace = %(namespace)s and activity.fact = new.fact
"""

INSTANTS = ("until", "valid_from", "valid_until")
"""Names of instants in the details of events, or in the values before and after an edit."""

DATED_EVENTS = ["pinned", "closed", "edited"]

DATED = """
    select fact, id, details from events
    where namespace = %(namespace)s and fact = any(%(ids)s) and what = any(%(whats)s)
        and (details ?| %(names)s or details -> 'was' ?| %(names)s or details -> 'is' ?| %(names)s)
"""

WRITE_DETAILS = """
    update events set details = new.details
    from unnest(%(facts)s::uuid[], %(ids)s::bigint[], %(details)s::jsonb[]) as new (fact, id, details)
    where namespace = %(namespace)s and events.fact = new.fact and events.id = new.id
"""

# The creation time stands first in the packed body; the other times are relative to it.
OLDER = {
    "body": """overlay(old.body placing int8send(
        ('x' || encode(substring(old.body for 8), 'hex'))::bit(64)::bigint
            - (date_part('epoch', %(age)s::interval) * 1000000)::bigint
    ) from 1 for 8)"""
}

NOT_DEEP = """not exists (
    select from deep as mine
    where mine.namespace = %(branch)s and uuid_hash(mine.id) = uuid_hash(old.id) and mine.id = old.id
)"""
"""A fact that the branch does not have in deep memory, where no unique constraint prevents a second copy."""

NOT_OUTSIDE = "not exists (select from facts where facts.namespace = %(branch)s and facts.id = old.id)"

MISSING = f"""
    select id from facts as old
    where namespace = %(namespace)s and {NOT_DEEP} and {NOT_OUTSIDE}
    order by id
"""

# By key: with `in`, the planner would compare each of these with all facts of a namespace that statistics lack, as they
# do a branch that was just made.
DROP_FACTS = """
    delete from facts where namespace = %(namespace)s and id = any(array(
        select id from facts where namespace = %(namespace)s limit %(limit)s
    ))
"""

# A system that ever had a key is never open again, also if all its keys were those of a branch. `least` skips null, as
# `coalesce` does, in which Citus refuses the time of an update.
KEEP_KEYS = """
    update api_keys set namespace = namespaces.id, revoked_at = least(revoked_at, statement_timestamp())
    from namespaces where namespaces.name = %(original)s and api_keys.namespace = %(namespace)s
"""

DROP_ROWS = "delete from {table} where namespace = %(branch)s"

DROP = "delete from namespaces where id = %(branch)s and branch_of is not null"


@dataclass(frozen=True, slots=True)
class Branch:
    """A namespace and, if it is a branch, its original and age; `complete` once everything is copied, until a drop."""

    id: int
    name: str
    original: str | None
    age: timedelta | None
    complete: bool
    dropping: bool


def begin(db: Connection, original: str, branch: str, age: timedelta) -> Branch | None:
    """Add the namespace of a branch if it is missing and return it; none if the original does not exist."""
    db.execute(BEGIN, {"original": original, "branch": branch, "age": age})
    return find(db, branch)


def find(db: Connection, name: str) -> Branch | None:
    """Return a namespace and, if it is a branch, its original."""
    return fetch_one(db, Branch, FIND, {"name": name})


def listed(db: Connection, original: str | None) -> list[Branch]:
    """Return the branches of a namespace, or all branches, by name."""
    return fetch_all(db, Branch, LISTED, {"original": original})


def following(db: Connection, namespace: int, after: UUID, limit: int) -> list[UUID]:
    """Return the next ids of a namespace's facts, including forgotten ones."""
    return [id_ for (id_,) in db.execute(FOLLOWING, {"namespace": namespace, "after": after, "limit": limit})]


def missing(db: Connection, original: int, branch: Branch) -> list[UUID]:
    """Return the ids of the facts that the branch lacks, such as those that left deep memory after their turn."""
    return [id_ for (id_,) in db.execute(MISSING, {"namespace": original, "branch": branch.id})]


def copy_facts(db: Connection, original: int, branch: Branch, ids: Sequence[UUID]) -> int:
    """Copy facts that the branch lacks, with the rows that belong to one fact; return how many.

    The transaction must be `repeatable read`, so that all statements see one state of the original.
    """
    given = {"original": original, "branch": branch.id, "age": branch.age, "ids": list(ids)}
    of_fact = sql.SQL("{} = any(%(ids)s)")
    wanted = sql.SQL(f"id = any(%(ids)s) and {NOT_DEEP} and {NOT_OUTSIDE}")
    added = [id_ for (id_,) in db.execute(_copy(db, "facts", wanted, "id"), given)]
    for table in OF_FACTS:
        db.execute(_copy(db, table, of_fact.format(sql.Identifier("fact"))), given | {"ids": added})
    _age_spells(db, branch, added)
    _age_details(db, branch, added)
    return len(added)


def copy_pairs(db: Connection, original: int, branch: Branch, ids: Sequence[UUID], *, both_ways: bool = False) -> None:
    """Copy links, contradictions and near-duplicates that begin at these facts and whose other end the branch has too.

    `both_ways` includes those that end at these facts.
    """
    given = {"original": original, "branch": branch.id, "age": branch.age, "ids": list(ids)}
    for table, ends in BETWEEN_FACTS.items():
        for first, second in (ends, ends[::-1]) if both_ways else (ends,):
            wanted = sql.SQL(BOTH_COPIED).format(first=sql.Identifier(first), second=sql.Identifier(second))
            db.execute(_copy(db, table, wanted), given)


def copy_namespace_rows(db: Connection, original: int, branch: Branch) -> list[UUID]:
    """Copy the tables that belong to the namespace as a whole; return the facts copied in deep memory.

    Their packed decay intervals and details of events are not shifted yet.
    """
    given = {"original": original, "branch": branch.id, "age": branch.age}
    for table in OF_NAMESPACES:
        if table != "deep":
            db.execute(_copy(db, table, sql.SQL("true")), given)
    # A purge may have moved a fact into deep memory since it was copied.
    return [id_ for (id_,) in db.execute(_copy(db, "deep", sql.SQL(f"{NOT_DEEP} and {NOT_OUTSIDE}"), "id"), given)]


def hold(db: Connection, branch: Branch) -> bool:
    """Lock a branch that is being made until the commit; false if it is complete, or is or was dropped.

    Raises:
        LockNotAvailable: another transaction has locked it.
    """
    return db.execute(HOLD, {"branch": branch.id}).fetchone() is not None


def complete(db: Connection, branch: Branch, now: datetime) -> None:
    """Mark a branch as complete."""
    db.execute(COMPLETE, {"branch": branch.id, "now": now})


def drop_facts(db: Connection, branch: Branch, limit: int) -> int:
    """Delete up to `limit` facts of a branch with their rows in other tables; return how many. No more are copied."""
    db.execute(STOP, {"branch": branch.id})
    return db.execute(DROP_FACTS, {"namespace": branch.id, "limit": limit}).rowcount


def drop(db: Connection, branch: Branch) -> None:
    """Delete a branch whose facts are deleted: its rows in every table, and the namespace; its keys are revoked."""
    db.execute(KEEP_KEYS, {"original": branch.original, "namespace": branch.id})
    for table in (*OF_NAMESPACES, *DROPPED):
        db.execute(sql.SQL(DROP_ROWS).format(table=sql.Identifier(table)), {"branch": branch.id})
    db.execute(DROP, {"branch": branch.id})


def _copy(db: Connection, table: str, wanted: sql.Composable, returned: str | None = None) -> sql.Composed:
    """Return the statement that copies rows of a table with every timestamp shifted."""
    columns = db.execute(COLUMNS, {"table": table}).fetchall()
    older = [
        sql.SQL(OLDER.get(name, "old.{} - %(age)s" if dated else "old.{}")).format(sql.Identifier(name))
        for name, dated in columns
    ]
    return sql.SQL(COPY).format(
        table=sql.Identifier(table),
        columns=sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns),
        older=sql.SQL(", ").join(older),
        wanted=wanted,
        order=sql.SQL("order by id" if table == "events" else ""),
        returning=sql.SQL("returning {}").format(sql.Identifier(returned)) if returned else sql.SQL(""),
    )


def _age_spells(db: Connection, branch: Branch, ids: Sequence[UUID]) -> None:
    rows = db.execute(SPELLS, {"namespace": branch.id, "ids": list(ids)}).fetchall()
    seconds = (branch.age or timedelta()).total_seconds()
    older = [decay_intervals.older(packed, seconds) for _, packed in rows]
    db.execute(WRITE_SPELLS, {"namespace": branch.id, "ids": [id_ for id_, _ in rows], "spells": older})


def _age_details(db: Connection, branch: Branch, ids: Sequence[UUID]) -> None:
    """Shift the instants in the details of events; restoring a superseded fact reads one of them."""
    given = {"namespace": branch.id, "ids": list(ids), "names": [*INSTANTS], "whats": DATED_EVENTS}
    rows = db.execute(DATED, given).fetchall()
    age = branch.age or timedelta()
    written = {"facts": [fact for fact, _, _ in rows], "ids": [id_ for _, id_, _ in rows]}
    details = [Jsonb(older_details(one, age)) for _, _, one in rows]
    if rows:
        db.execute(WRITE_DETAILS, written | {"namespace": branch.id, "details": details})


def older_details(details: dict[str, Any], age: timedelta) -> dict[str, Any]:
    """Return the details of an event with its instants shifted."""
    return {name: _older(name, value, age) for name, value in details.items()}


def _older(name: str, value: Any, age: timedelta) -> Any:
    """Return a value of an event's details with its instants shifted; an imported entry may say anything."""
    if isinstance(value, dict):
        return older_details(value, age) if name in ("was", "is") else value
    if name not in INSTANTS or not isinstance(value, str):
        return value
    with suppress(ValueError, OverflowError):
        return (datetime.fromisoformat(value) - age).isoformat()
    return value
