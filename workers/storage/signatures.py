"""Signatures: the vector index, 128 bytes a fact; scanned exactly, or by HNSW in a large namespace."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import Bit
from psycopg import sql

from workers.core import signature
from workers.core.arrays import Bytes, Floats, Key
from workers.storage import columns
from workers.storage.candidates import FILTERED, SEEN_THEN, Scope
from workers.storage.connection import Connection, Cursor, number

# A regenerated vector has the signature of before, and an update would add it to the vector index again.
ADD = """
    insert into signatures (namespace, fact, signature)
    select %(namespace)s, fact, signature
    from unnest(%(ids)b::uuid[], %(signatures)b::bit(1024)[]) as new (fact, signature)
    order by fact
    on conflict (namespace, fact) do update set signature = excluded.signature, live = true
    where not signatures.live or signatures.signature <> excluded.signature
"""

# Results come as two arrays in binary, since hundreds of rows take longer to read. An index gives them nearly in order.
NEAREST = """
    select array_send(array_agg(fact order by distance)), array_send(array_agg(distance order by distance))
    from (
        select fact, signature <~> %(query)s as distance from signatures
        where namespace = %(namespace)s and live
        order by signature <~> %(query)s limit %(limit)s
    ) as near
"""

# For a namespace without an index of its own: with `select`, one plan serves all.
SCAN = NEAREST.replace("%(namespace)s", "(select %(namespace)s::int)")

NEAREST_EVER = NEAREST.replace(" and live", "")

# As to `select`, see `server.OUTDATED`. The last condition, which says no more than `live` and `FILTERED`, is that of
# the indexes of entities: without it all facts of the namespace were read.
NEAREST_AMONG = f"""
    select array_send(array_agg(fact order by distance)), array_send(array_agg(distance order by distance))
    from (
        select signatures.fact, signature <~> %(query)s as distance from signatures
        join facts on facts.namespace = (select %(namespace)s::int) and facts.id = signatures.fact
        where signatures.namespace = %(namespace)s and (%(ever)s or live) and {FILTERED}
            and (%(entity)s::text is null or %(ever)s
                or facts.entity is not null and facts.forgotten_at is null and facts.superseded_at is null)
        order by signature <~> %(query)s limit %(limit)s
    ) as near
"""

NEAREST_THEN = NEAREST_AMONG.replace(FILTERED, f"{FILTERED}\n            and {SEEN_THEN}")

# Reads the facts that pass the filters first, then their signatures. If the planner expects many such facts, a join
# would look up the fact of each signature of the namespace.
SCAN_AMONG = f"""
    select array_send(array_agg(fact order by distance)), array_send(array_agg(distance order by distance))
    from (
        select fact, signature <~> %(query)s as distance from signatures
        where namespace = (select %(namespace)s::int) and (%(ever)s or live) and fact = any(array(
            select id from facts
            where namespace = (select %(namespace)s::int) and {FILTERED}
                and (%(ever)s or forgotten_at is null and superseded_at is null)
        ))
        order by signature <~> %(query)s limit %(limit)s
    ) as near
"""

SCAN_THEN = SCAN_AMONG.replace(FILTERED, f"{FILTERED}\n                and {SEEN_THEN}")

SCANS = {NEAREST_AMONG: SCAN_AMONG, NEAREST_THEN: SCAN_THEN}

# An exact count with an index-only scan.
STANDING = """
    with own as (
        select signature <~> %(query)s as distance from signatures
        where namespace = %(namespace)s and fact = %(fact)s
    )
    select distance,
        (select count(*) from signatures where namespace = %(namespace)s and live
            and signature <~> %(query)s < own.distance) + 1,
        (select count(*) from signatures where namespace = %(namespace)s and live)
    from own
"""

NEAREST_OF_EACH = """
    select mine.fact, near.fact
    from signatures as mine
    cross join lateral (
        select fact, signature <~> mine.signature as bits from signatures
        where namespace = %(namespace)s and live
        order by signature <~> mine.signature limit %(limit)s
    ) as near
    where mine.namespace = %(namespace)s and mine.fact = any(%(ids)b) and mine.live
        and near.fact <> mine.fact and near.bits <= %(most_bits)s
"""

PART = 8_192
"""Number of signatures that are read at once, so that comparing them fits into a processor's cache."""

# As two arrays, as for `NEAREST`.
LIVE = """
    select array_send(array_agg(fact)), array_send(array_agg(signature))
    from (
        select fact, signature from signatures
        where namespace = %(namespace)s and live and fact > %(after)s
        order by fact limit %(limit)s
    ) as part
"""

READ = """
    select fact, bit_send(signature) from signatures
    where namespace = %(namespace)s and fact = any(%(ids)b) and (live or not %(live)s)
"""

RETIRE = """
    update signatures set live = false
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where signatures.namespace = gone.namespace and signatures.fact = gone.id
"""

REVIVE = """
    update signatures set live = true
    where namespace = %(namespace)s and fact = any(%(ids)s)
"""

LARGE = """
    select namespace from signatures
    where live
    group by namespace
    having count(*) >= %(threshold)s
"""

INDEXED = """
    select indexrelid::regclass::text, indisvalid
    from pg_index
    where indrelid = 'signatures'::regclass and indexrelid::regclass::text like 'signatures\\_near\\_%%'
"""

# One partial index for each large namespace, so that a filter on the namespace does not cut its results short.
# ef_construction of 200 instead of 64 connects clusters that lie apart: of a million in such clusters it finds 983 of
# 1,000 true neighbours; with 128 it is 945, and nothing at all for one query in thirty. IVFFlat builds in a twentieth
# of the time, but of 110,000 sentences by MiniLM it finds 907 of 1,000 neighbours, HNSW 993 in the same time.
# A signature takes 843 bytes of memory in the graph, measured; a graph that does not fit into `maintenance_work_mem` is
# finished on disk, many times slower. A server with large `shared_buffers` can spare as much for the build.
GIVE_MEMORY = """
    select set_config('maintenance_work_mem', greatest(
        pg_size_bytes('1GB'),
        least(
            (select count(*) from signatures where namespace = %(namespace)s and live) * 900,
            pg_size_bytes(current_setting('shared_buffers'))
        )
    ) / 1024 || 'kB', false)
"""

BUILD = """
    create index concurrently if not exists {name} on signatures using hnsw (signature bit_hamming_ops)
    with (ef_construction = 200)
    where namespace = {namespace} and live
"""

CLAIM_BUILDING = "select pg_try_advisory_lock(%(key)s)"
BUILDING_LOCK = 0x0EBB + 1

DROP = "drop index concurrently if exists {name}"

DROP_AT_ONCE = "drop index if exists {name}"


def add(db: Connection, namespace: int, ids: Sequence[UUID], signatures: Bytes) -> None:
    """Write the (n, 128) signatures of n facts."""
    given = {"ids": columns.uuids(ids), "signatures": columns.bits(signatures)}
    db.execute(ADD, given | {"namespace": namespace})


def nearest(db: Connection, namespace: int, query: Bytes, limit: int, scope: Scope | None = None) -> dict[UUID, float]:
    """Return the live facts, or those of a scope, nearest to the (128,) query, with the Hamming distance."""
    keys, distances = ask_nearest(db, namespace, query, limit, scope)()
    return {UUID(bytes=key): distance for key, distance in zip(keys, distances.tolist(), strict=True)}


def ask_nearest(
    db: Connection,
    namespace: int,
    query: Bytes,
    limit: int,
    scope: Scope | None = None,
    *,
    indexed: bool = True,
    visible: bool = False,
    later: Connection | None = None,
) -> Callable[[], tuple[list[Key], Floats]]:
    """Send the query of `nearest`; return its reader, which gives n ids, nearest first, and their n distances.

    All live signatures are read unless the namespace may be `indexed`. With `visible`, each fact's validity is checked
    before the limit, which takes several times as long. The reader uses the connection `later`, by default the same, if
    an index did not find enough facts that pass filters.
    """
    given: dict[str, Any] = {"namespace": namespace, "query": Bit(query.tobytes()), "limit": limit}
    statement = NEAREST if indexed else SCAN
    if scope is not None and scope.looks_back:
        statement = NEAREST_EVER
    if scope is not None and scope.selects:
        statement, given = NEAREST_AMONG, given | scope.parameters
    if scope is not None and (visible or scope.past) and not scope.ever:
        statement, given = NEAREST_THEN, given | scope.parameters
    found = db.execute(statement, given, binary=True, prepare=None if statement == SCAN else False)

    def read() -> tuple[list[Key], Floats]:
        near = _nearest(found)
        if indexed and len(near[0]) < limit:
            return _scanned(later or db, namespace, statement, given) or near
        return near

    return read


def _scanned(db: Connection, namespace: int, statement: str, given: dict[str, Any]) -> tuple[list[Key], Floats] | None:
    """Return the results of a scan if a statement with filters was run by the vector index, else None.

    An index is left after `hnsw.max_scan_tuples`, when the filters may not have left enough facts yet.
    """
    scan = SCANS.get(statement)
    if scan is None:
        return None
    plan = db.execute(f"explain {statement}", given, prepare=False).fetchall()
    return _nearest(db.execute(scan, given, binary=True, prepare=False)) if index_name(namespace) in str(plan) else None


def _nearest(found: Cursor) -> tuple[list[Key], Floats]:
    keys, distances = found.fetchone() or (None, None)
    return columns.keys_of(keys), columns.column_of(distances)


def standing(db: Connection, namespace: int, query: Bytes, id_: UUID) -> tuple[float, int, int] | None:
    """Return a fact's Hamming distance to the (128,) query, its rank among live facts, and their number."""
    given = {"namespace": namespace, "query": Bit(query.tobytes()), "fact": id_}
    return db.execute(STANDING, given, binary=True).fetchone()


def nearest_of_each(
    db: Connection, namespace: int, ids: Sequence[UUID], limit: int, most_bits: int
) -> list[tuple[UUID, UUID]]:
    """Return pairs of a live fact and one of its nearest live facts, at most `most_bits` apart.

    Without an HNSW index, each fact takes a scan of its namespace.
    """
    given = {"namespace": namespace, "ids": list(ids), "limit": limit + 1, "most_bits": most_bits}
    return db.execute(NEAREST_OF_EACH, given, binary=True).fetchall()


def all_live(db: Connection, namespace: int) -> Iterator[tuple[list[Key], Bytes]]:
    """Yield the ids and the (n, 128) signatures of all live facts, in parts of up to `PART`, by id."""
    after, more = UUID(int=0), True
    while more:
        given = {"namespace": namespace, "after": after, "limit": PART}
        ids, bits = db.execute(LIVE, given, binary=True).fetchone() or (None, None)
        keys = columns.keys_of(ids)
        if keys:
            yield keys, columns.bits_of(bits, signature.BITS // 8)
            after = UUID(bytes=max(keys))
        more = len(keys) == PART


def read(db: Connection, namespace: int, ids: Sequence[UUID], *, live: bool = False) -> dict[UUID, Bytes]:
    """Return the (128,) signatures of the facts that have one, or of the `live` ones, by id."""
    rows = db.execute(READ, {"namespace": namespace, "ids": list(ids), "live": live}, binary=True).fetchall()
    return {fact: unpack([raw])[0] for fact, raw in rows}


def unpack(raw: Sequence[bytes]) -> Bytes:
    """Return n results of `bit_send` as (n, 128) bytes."""
    return np.frombuffer(b"".join(one[columns.BIT_HEADER :] for one in raw), dtype=np.uint8).reshape(len(raw), -1)


def retire(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Exclude forgotten and superseded facts from searches for live facts."""
    db.execute(RETIRE, {"namespaces": list(namespaces), "ids": list(ids)})


def revive(db: Connection, namespace: int, ids: Sequence[UUID]) -> None:
    """Include restored facts in searches for live facts again."""
    db.execute(REVIVE, {"namespace": namespace, "ids": list(ids)})


def large_namespaces(db: Connection, threshold: int) -> list[int]:
    """Return the namespaces with at least that many live signatures."""
    return [namespace for (namespace,) in db.execute(LARGE, {"threshold": threshold})]


def claim_building(db: Connection) -> bool:
    """Take the session lock for building indexes; return false if another connection has it."""
    return bool(number(db, CLAIM_BUILDING, {"key": BUILDING_LOCK}))


def indexes(db: Connection) -> dict[str, bool]:
    """Return the HNSW indexes of namespaces by name, and whether each is valid."""
    return dict(db.execute(INDEXED).fetchall())


def index_name(namespace: int) -> str:
    """Return the name of a namespace's HNSW index."""
    return f"signatures_near_{namespace}"


def indexed_namespace(name: str) -> int:
    """Return the namespace of an HNSW index, or of what an interrupted rebuild of one has left, such as `…_ccnew`."""
    return int(name.split("_")[2])


def is_indexed(db: Connection, namespace: int) -> bool:
    """Return whether a namespace has a valid HNSW index."""
    return indexes(db).get(index_name(namespace), False)


def build_index(db: Connection, namespace: int) -> None:
    """Build a namespace's HNSW index concurrently; `db` must be in autocommit."""
    db.execute(GIVE_MEMORY, {"namespace": namespace})
    name = sql.Identifier(index_name(namespace))
    db.execute(sql.SQL(BUILD).format(name=name, namespace=sql.Literal(namespace)))


def drop_index(db: Connection, name: str) -> None:
    """Drop an index concurrently; `db` must be in autocommit."""
    db.execute(sql.SQL(DROP).format(name=sql.Identifier(name)))


def drop_indexes(db: Connection) -> None:
    """Drop the HNSW indexes of all namespaces: to fill one row by row takes several times as long as to build it."""
    for name in indexes(db):
        db.execute(sql.SQL(DROP_AT_ONCE).format(name=sql.Identifier(name)))
