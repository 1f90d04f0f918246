"""Forgotten hashes: what somebody wished forgotten, known again by a salted digest though its text is gone."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.core import text
from workers.storage import facts
from workers.storage.connection import Connection
from workers.storage.facts import WISHED

MORE = b"+"
"""Follows the identity of a text where a statement with it was forgotten that says what it is about."""

HASHES = """
    select facts.namespace, facts.id, hash
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    join facts on facts.namespace = gone.namespace and facts.id = gone.id
    where forgotten_reason = any(%(wished)s)
"""

# Of two facts with one hash the one forgotten last is named; in the order of the key, so that nobody deadlocks.
ADD = """
    insert into forgotten_hashes (namespace, digest, fact, forgotten_at, reason)
    select distinct on (1, 2) facts.namespace, sha256(uuid_send(salt) || said), facts.id, forgotten_at, forgotten_reason
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[], %(said)s::bytea[]) as gone (namespace, id, said)
    join facts on facts.namespace = gone.namespace and facts.id = gone.id
    join namespaces on namespaces.id = facts.namespace
    where forgotten_reason = any(%(wished)s)
    order by 1, 2, forgotten_at desc
    on conflict (namespace, digest) do update
    set fact = excluded.fact, forgotten_at = excluded.forgotten_at, reason = excluded.reason
"""

AMONG = """
    select said.place - 1, fact
    from unnest(%(hashes)s::bytea[]) with ordinality as said (hash, place)
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
    """Note what those tombstones said that were forgotten on request."""
    for tenant in set(namespaces):
        facts.identify(db, tenant, [id_ for own, id_ in zip(namespaces, ids, strict=True) if own == tenant])
    given = {"namespaces": list(namespaces), "ids": list(ids), "wished": list(WISHED)}
    said = [(own, id_, one) for own, id_, hash_ in db.execute(HASHES, given).fetchall() for one in _noted(hash_)]
    owners, gone, hashes = map(list, zip(*said, strict=True)) if said else ([], [], [])
    db.execute(ADD, given | {"namespaces": owners, "ids": gone, "said": hashes})


def among(db: Connection, namespace: int, hashes: Sequence[bytes]) -> dict[bytes, UUID]:
    """Return which of these statements must stay forgotten on request, and as which fact.

    Besides the very statement that is one with the same text that said less, or more than one that leaves all open;
    and whatever has the text of a statement that an earlier version noted, or that was of ordinary words alone.
    """
    said = [(hash_, variant) for hash_ in hashes for variant in _covering(hash_)]
    rows = db.execute(AMONG, {"namespace": namespace, "hashes": [variant for _, variant in said]})
    return {said[place][0]: fact for place, fact in rows}


def of_facts(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, tuple[datetime, str]]:
    """Return when and why those of these facts were forgotten that somebody wished forgotten, purged ones included."""
    rows = db.execute(OF_FACTS, {"namespace": namespace, "facts": list(ids)})
    return {fact: (forgotten_at, reason) for fact, forgotten_at, reason in rows}


def lift(db: Connection, namespace: int, hashes: Sequence[bytes]) -> None:
    """Let these statements be stored again."""
    noted = {variant for hash_ in hashes for variant in (*_covering(hash_), *_noted(hash_))}
    db.execute(LIFT, {"namespace": namespace, "hashes": sorted(noted)})


def _noted(hash_: bytes) -> list[bytes]:
    """Return what is noted of a forgotten statement: itself and, where it says what it is about, that its text did."""
    plain = text.bare(hash_)
    return [hash_] if plain == hash_ else [hash_, plain + MORE]


def _covering(hash_: bytes) -> list[bytes]:
    """Return what of forgotten statements keeps this one out."""
    plain = text.bare(hash_)
    more = [plain + MORE] if plain == hash_ else []
    return list(dict.fromkeys([*text.says_less(hash_), text.stem(hash_), *more]))
