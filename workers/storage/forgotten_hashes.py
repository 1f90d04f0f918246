"""Forgotten hashes: what somebody wished forgotten, known again by a salted digest though its text is gone."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.storage.connection import Connection
from workers.storage.facts import WISHED

# Of two facts with one hash the one forgotten last is named; in the order of the key, so that nobody deadlocks.
ADD = """
    insert into forgotten_hashes (namespace, digest, fact, forgotten_at, reason)
    select distinct on (1, 2) facts.namespace, sha256(uuid_send(salt) || hash), facts.id, forgotten_at, forgotten_reason
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    join facts on facts.namespace = gone.namespace and facts.id = gone.id
    join namespaces on namespaces.id = facts.namespace
    where forgotten_reason = any(%(wished)s)
    order by 1, 2, forgotten_at desc
    on conflict (namespace, digest) do update
    set fact = excluded.fact, forgotten_at = excluded.forgotten_at, reason = excluded.reason
"""

AMONG = """
    select said.hash, fact
    from unnest(%(hashes)s::bytea[]) as said (hash)
    join namespaces on namespaces.id = %(namespace)s
    join forgotten_hashes on forgotten_hashes.namespace = namespaces.id
        and digest = sha256(uuid_send(salt) || said.hash)
    where forgotten_hashes.namespace = %(namespace)s
"""

OF_FACTS = """
    select fact, forgotten_at, reason from forgotten_hashes
    where namespace = %(namespace)s and fact = any(%(facts)s)
"""

LIFT = """
    delete from forgotten_hashes
    using unnest(%(hashes)s::bytea[]) as said (hash), namespaces
    where forgotten_hashes.namespace = %(namespace)s and namespaces.id = %(namespace)s
        and digest = sha256(uuid_send(salt) || said.hash)
"""


def add(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Keep in mind what those of some tombstones said that somebody wished forgotten."""
    db.execute(ADD, {"namespaces": list(namespaces), "ids": list(ids), "wished": list(WISHED)})


def among(db: Connection, namespace: int, hashes: Sequence[bytes]) -> dict[bytes, UUID]:
    """Return which of these hashes were wished forgotten, and as which fact."""
    rows = db.execute(AMONG, {"namespace": namespace, "hashes": list(hashes)})
    return {bytes(hash_): fact for hash_, fact in rows}


def of_facts(db: Connection, namespace: int, facts: Sequence[UUID]) -> dict[UUID, tuple[datetime, str]]:
    """Return when and why those of these facts were forgotten that somebody wished forgotten, purged ones included."""
    rows = db.execute(OF_FACTS, {"namespace": namespace, "facts": list(facts)})
    return {fact: (forgotten_at, reason) for fact, forgotten_at, reason in rows}


def lift(db: Connection, namespace: int, hashes: Sequence[bytes]) -> None:
    """Let these things be told again."""
    db.execute(LIFT, {"namespace": namespace, "hashes": list(hashes)})
