"""Imports: write the rows of an archive."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Json, Jsonb

from workers.storage.connection import Connection
from workers.storage.events import USES

OF_FACT = """
    id, kind, text, hash, summary, category, entity, key, value, source, tags, importance, metadata, session, turn,
    role, content_salience, salience_given, source_date, created_at, valid_from, valid_until, superseded_at,
    superseded_by, supersedes_id, forgotten_at, forgotten_reason, forgotten_by, tombstone_at
"""
OF_ACTIVITY = """
    fact, segment, branch, base, coactivations, last_seen_at, confidence, last_confirmed_at, expires_at, decay_class,
    decay_class_source, halvings, confirmations, compared, recall_count, last_accessed_at, spells, tier, fidelity, held,
    stale, retired, due_at, pinned_until, kept_lifetime, encoded_at, occurred, outrun_at
"""
"""The columns of `facts` and `activity` that are written."""

# As `json`, which leaves the caller's object in `metadata` as it is: `jsonb` sorts its keys and rewrites its numbers.
ADD_FACTS = f"""
    insert into facts (namespace, {OF_FACT})
    select %(namespace)s, {OF_FACT}
    from json_populate_recordset(null::facts, %(rows)s)
    order by hash
    on conflict do nothing
    returning id
"""

# A volatile function makes Citus read first, then insert; it crashes at `insert … select` with a function that is not
# immutable, such as `jsonb_populate_recordset`.
ADD_ACTIVITY = f"""
    insert into activity (namespace, {OF_ACTIVITY}, worth)
    select %(namespace)s, {OF_ACTIVITY}, fact_worth(content_salience, importance, 0)
    from jsonb_populate_recordset(null::activity, %(rows)s) as new
    join facts on facts.namespace = %(namespace)s and facts.id = new.fact
    where random() >= 0
    order by fact
"""

ADD_EVENTS = """
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, fact, at, what, details
    from jsonb_populate_recordset(null::events, %(rows)s)
"""

# Repeated uses are one event, which spans some seconds and ends at its instant; later uses move that instant.
COVERS = """
    known.what = any(%(uses)s) and {0} between
        known.at - make_interval(secs => coalesce((known.details ->> 'seconds')::float8, 0)) and known.at
"""

# A fact that was here before the import may have another past.
WITH_EVENT_BEFORE = f"""
    select fact, after
    from unnest(%(facts)s::uuid[], %(afters)s::timestamptz[]) as new (fact, after)
    where exists (
        select from events as known
        where known.namespace = %(namespace)s and known.fact = new.fact
            and (known.at = new.after or {COVERS.format("new.after")})
    )
"""

# A repeated import finds them. `not in`, as a join would read the whole history of a fact for each of its new entries.
ADD_FURTHER_EVENTS = f"""
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, new.fact, new.at, new.what, new.details
    from jsonb_populate_recordset(null::events, %(rows)s) with ordinality as new
    join facts on facts.namespace = %(namespace)s and facts.id = new.fact
    where random() >= 0 and (new.fact, new.at, new.what, new.details) not in (
        select fact, at, what, details from events
        where namespace = %(namespace)s and fact = any(array(
            select fact from jsonb_populate_recordset(null::events, %(rows)s)
        ))
    ) and case when new.what = any(%(uses)s) then not exists (
        select from events as known
        where known.namespace = %(namespace)s and known.fact = new.fact and known.what = new.what
            and {COVERS.format("new.at")}
    ) else true end
    order by ordinality
"""

# As a concurrent purge would violate the foreign keys of what is written beside facts.
LOCK_FACTS = """
    select from facts
    where namespace = %(namespace)s and id = any(%(ids)s)
    order by id
    for key share
"""

# Only between existing facts, as the import may have refused some.
ADD_LINKS = """
    insert into links (namespace, source, target, type, strength, created_at)
    select %(namespace)s, new.source, new.target, new.type, new.strength, new.created_at
    from jsonb_populate_recordset(null::links, %(rows)s) as new
    join facts as one on one.namespace = %(namespace)s and one.id = new.source
    join facts as other on other.namespace = %(namespace)s and other.id = new.target
    where random() >= 0
    order by source, target, type
    on conflict do nothing
    returning source, target, type
"""

LINKED = """
    select source, target, type
    from unnest(%(sources)s::uuid[], %(targets)s::uuid[]) as new (source, target)
    join links using (source, target)
    where namespace = %(namespace)s
"""

BETWEEN_FACTS = """
    join facts as one on one.namespace = %(namespace)s and one.id = new.fact
    join facts as two on two.namespace = %(namespace)s and two.id = new.other
    where random() >= 0
    order by new.fact, new.other
    on conflict do nothing
"""

ADD_CONTRADICTIONS = f"""
    insert into contradictions (namespace, fact, other, found_at, accepted_at)
    select %(namespace)s, new.fact, new.other, new.found_at, new.accepted_at
    from jsonb_populate_recordset(null::contradictions, %(rows)s) as new {BETWEEN_FACTS}
"""

ADD_LIKENESSES = f"""
    insert into likenesses (namespace, fact, other, similarity, found_at, apart_at)
    select %(namespace)s, new.fact, new.other, new.similarity, new.found_at, new.apart_at
    from jsonb_populate_recordset(null::likenesses, %(rows)s) as new {BETWEEN_FACTS}
"""

ADD_OCCURRENCES = """
    insert into occurrences (namespace, fact, id, session, turn, role, said_at)
    select %(namespace)s, new.fact, new.id, new.session, new.turn, new.role, new.said_at
    from jsonb_populate_recordset(null::occurrences, %(rows)s) as new
    join facts on facts.namespace = %(namespace)s and facts.id = new.fact
    where random() >= 0
    order by new.fact, new.session
    on conflict do nothing
"""

ADD_DOCUMENTS = """
    insert into documents (namespace, path, folder, digest, read_at)
    select %(namespace)s, path, folder, digest, read_at
    from jsonb_populate_recordset(null::documents, %(rows)s)
    order by path
    on conflict do nothing
"""

# Of several spellings, the first, as readers take it.
ADD_RELATIONS = """
    insert into relations (namespace, source, target, type, initial_weight, weight, last_observed, pinned, created_at)
    select distinct on (folded(source), folded(target), type)
        %(namespace)s, source, target, type, initial_weight, initial_weight, last_observed, pinned, created_at
    from jsonb_populate_recordset(null::relations, %(rows)s) with ordinality as new
    where (folded(source), folded(target), type) not in (
        select folded(source), folded(target), type from relations
        where namespace = %(namespace)s and folded(source) = any(array(
            select folded(source) from jsonb_populate_recordset(null::relations, %(rows)s)
        ))
    )
    order by folded(source), folded(target), type, ordinality
    on conflict do nothing
"""

# Digests need the salt that made them, so a namespace takes it over as long as it has no digests of its own.
TAKE_SALT = """
    update namespaces set salt = %(salt)s
    where id = %(namespace)s and salt <> %(salt)s
        and not exists (select from forgotten_hashes where namespace = %(namespace)s)
"""

SALT = "select salt from namespaces where id = %(namespace)s"

ADD_DELETION_REQUESTS = """
    insert into forgotten_hashes (namespace, digest, fact, forgotten_at, reason)
    select %(namespace)s, decode(new.digest, 'hex'), new.fact, new.forgotten_at, new.reason
    from jsonb_to_recordset(%(rows)s) as new (digest text, fact uuid, forgotten_at timestamptz, reason text)
    order by new.digest
    on conflict do nothing
"""

DELETION_REQUESTS_OF = "select fact from forgotten_hashes where namespace = %(namespace)s and fact = any(%(ids)s)"

# The facts of the archive were written by the settings before, so a pass applies others to them. It stands alone, as
# Citus does not allow the time within `case`.
UNSETTLE_IF_OTHERS = """
    update namespaces set settings_changed_at = statement_timestamp()
    where id = %(namespace)s and settings || %(settings)s <> settings
"""
TAKE_OWN = """
    update namespaces set turns = greatest(turns, %(turns)s), settings = settings || %(settings)s
    where id = %(namespace)s
"""


def add_facts(db: Connection, namespace: int, rows: Sequence[dict[str, Any]]) -> set[UUID]:
    """Write rows of `facts`; return the ids of those without a conflict."""
    return {id_ for (id_,) in db.execute(ADD_FACTS, {"namespace": namespace, "rows": Json(list(rows))})}


def add(db: Connection, statement: str, namespace: int, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows of another table by `ADD_ACTIVITY` or one of the statements after it."""
    db.execute(statement, {"namespace": namespace, "rows": Jsonb(list(rows))})


def add_further_events(db: Connection, namespace: int, given: Sequence[tuple[datetime, dict[str, Any]]]) -> None:
    """Write events, each given with the instant of an earlier one.

    Those are left out whose fact lacks that earlier event, and those that are there already.
    """
    places = [(UUID(row["fact"]), after) for after, row in given]
    facts, afters = zip(*dict.fromkeys(places), strict=True)
    asked = {"namespace": namespace, "uses": [*USES]}
    known = {*db.execute(WITH_EVENT_BEFORE, asked | {"facts": [*facts], "afters": [*afters]}).fetchall()}
    rows = [row for place, (_, row) in zip(places, given, strict=True) if place in known]
    db.execute(ADD_FURTHER_EVENTS, asked | {"rows": Jsonb(rows)})


def lock_facts(db: Connection, namespace: int, ids: Iterable[UUID]) -> None:
    """Keep the facts that exist among these until the commit."""
    db.execute(LOCK_FACTS, {"namespace": namespace, "ids": [*ids]})


def add_links(db: Connection, namespace: int, rows: Sequence[dict[str, Any]]) -> set[tuple[UUID, UUID, str]]:
    """Write links between existing facts; return the new ones."""
    return set(db.execute(ADD_LINKS, {"namespace": namespace, "rows": Jsonb(list(rows))}).fetchall())


def linked(db: Connection, namespace: int, pairs: Sequence[tuple[UUID, UUID]]) -> set[tuple[UUID, UUID, str]]:
    """Return the links between these pairs of facts."""
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    return set(db.execute(LINKED, {"namespace": namespace, "sources": sources, "targets": targets}).fetchall())


def take_salt(db: Connection, namespace: int, salt: UUID) -> bool:
    """Set a namespace's salt if it has no digests yet; return whether it has that salt now."""
    db.execute(TAKE_SALT, {"namespace": namespace, "salt": salt})
    row = db.execute(SALT, {"namespace": namespace}).fetchone()
    return row is not None and row[0] == salt


def deletion_requests_of(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return the facts among these with a deletion request."""
    return {fact for (fact,) in db.execute(DELETION_REQUESTS_OF, {"namespace": namespace, "ids": list(ids)})}


def take_own(db: Connection, namespace: int, turns: int, settings: dict[str, Any]) -> None:
    """Set settings of a namespace, and increase its number of turns to at least this one."""
    if settings:
        db.execute(UNSETTLE_IF_OTHERS, {"namespace": namespace, "settings": Jsonb(settings)})
    db.execute(TAKE_OWN, {"namespace": namespace, "turns": turns, "settings": Jsonb(settings)})
