"""Databases of generated facts, written by COPY: a million in minutes, on every core.

Primary keys stay while rows go in; the other indexes are dropped before and built from `schema.sql`'s own definitions
afterwards. Foreign keys are declared but not checked row by row, and no trigger counts the rows: that is done once.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from os import cpu_count
from typing import Any
from zlib import crc32

import numpy as np
from psycopg import sql

from tests.benchmarks import copying, texts, vectors
from tests.benchmarks.figures import console
from tests.benchmarks.machine import Machine, session
from workers.admin.search_indexes import count_lexemes
from workers.context import Context
from workers.core.arrays import Bools, Bytes, Floats, Ints, Vectors
from workers.core.fading import Anchors, Faded, FadingRules, fade
from workers.core.fidelity import FINGERPRINT, FULL, pool
from workers.core.signature import encode
from workers.core.text import digest
from workers.settings import Settings
from workers.storage import tallies
from workers.storage.connection import Connection, close_pools, connect

AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The present of all generated data, fixed so that a kept database stays good."""

DAY = 86_400.0
FIRST_STORED = AT.timestamp() - 400 * DAY
STORED_WITHIN = 30 * DAY
LAST_PASS = AT.timestamp() - 10 * DAY
OLDEST = 360.0
TURNS = 25
SALIENCE = 0.5
CHUNK = 10_000
TABLES = ("facts", "activity", "vectors", "signatures")

INDEXES = """
    select indexname, indexdef from pg_indexes
    where tablename = any(%(tables)s) and schemaname = 'public' and indexname not like '%%\\_pkey'
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The contents of a database: the number of facts of each namespace, days without use, and due facts.

    `clustered` fills only vectors and signatures, with vectors like those of a language model.
    """

    name: str
    sizes: tuple[int, ...]
    mean_idle_days: float = 0.0
    due: int = 0
    clustered: bool = False

    @property
    def facts(self) -> int:
        """Return the total number of facts."""
        return sum(self.sizes)


def even(name: str, facts: int, namespaces: int, **rest: Any) -> Layout:
    """Return a layout of equally large namespaces."""
    return Layout(f"{name}_{facts}_{namespaces}", (facts // namespaces,) * namespaces, **rest)


def namespace(number: int) -> str:
    """Return the name of a generated namespace."""
    return f"n{number}"


@dataclass(frozen=True, slots=True)
class Rows:
    """The identities of n facts: namespace, index within it, (n, 16) ids in order of time, and instants of storing."""

    tenants: Ints
    places: Ints
    ids: Bytes
    stored_at: Floats


def prepare(machine: Machine, layout: Layout) -> Context:
    """Return a database with that layout, generated unless an earlier run kept it."""
    name = f"bench_{layout.name}"
    if not machine.exists(name):
        began = time.perf_counter()
        generate(machine.create("bench_unfinished", embedder="hashing"), layout)
        machine.rename("bench_unfinished", name)
        console.print(f"  generated {layout.facts:,} facts as {name} in {time.perf_counter() - began:.0f} s")
    return machine.context(name)


def generate(context: Context, layout: Layout) -> None:
    """Fill an empty database."""
    rules = context.rules
    with session(context) as db, db.cursor() as cursor:
        cursor.executemany(
            "insert into namespaces (name) values (%s)", [(namespace(i),) for i in range(len(layout.sizes))]
        )
        definitions = _drop_indexes(db)
    url, starts = context.database_url, range(0, layout.facts, CHUNK)
    shares = np.array_split(np.arange(len(layout.sizes)), cpu_count() or 1)
    # No process may inherit a connection, as it would by a fork.
    with ProcessPoolExecutor(cpu_count(), mp_context=multiprocessing.get_context("spawn")) as processes:
        _each(processes, _chunk, [(url, layout, rules, start) for start in starts])
        _each(processes, _statement, [(url, definition) for definition in definitions])
        _each(processes, _count_words, [(context.settings, share.tolist()) for share in shares if len(share)])
        _each(processes, _statement, [(url, f"vacuum (analyze) {table}") for table in (*TABLES, "lexemes")])
    with session(context) as db:
        tallies.audit(db, None, mend=True)
        db.execute("vacuum (analyze) namespaces, tallies")
        db.execute("checkpoint")


def _drop_indexes(db: Connection) -> list[str]:
    found = db.execute(INDEXES, {"tables": list(TABLES)}).fetchall()
    for name, _ in found:
        db.execute(sql.SQL("drop index {}").format(sql.Identifier(name)))
    # The largest first, so that the processes end at about the same time.
    return sorted(
        (definition for _, definition in found), key=lambda one: ("gin" not in one, "include" not in one.lower())
    )


def _each(processes: ProcessPoolExecutor, act: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
    for future in [processes.submit(act, *given) for given in arguments]:
        future.result()


def _statement(url: str, statement: str) -> None:
    with connect(url, autocommit=True) as db:
        db.execute("set statement_timeout = 0; set maintenance_work_mem = '2GB'")
        db.execute(statement.encode())


def _count_words(settings: Settings, numbers: list[int]) -> None:
    context = Context(settings)
    for number in numbers:
        count_lexemes(context, namespace(number), AT)
    close_pools()


def _chunk(url: str, layout: Layout, rules: FadingRules, start: int) -> None:
    """Write the facts from an index on; they are the same in every run."""
    count = min(CHUNK, layout.facts - start)
    due = layout.due * (start + count) // layout.facts - layout.due * start // layout.facts
    rng = np.random.default_rng([start, layout.facts])
    tenants, places = _whose(layout)
    rows = _rows(rng, tenants[start : start + count], places[start : start + count], start, layout)
    if layout.clustered:
        _write_clustered(url, rows, vectors.clustered(rng, count))
        return
    said, embedded = texts.write(rng, count)
    anchors = random_anchors(rng, count, layout.mean_idle_days)
    faded, fidelity = _state(rng, anchors, due, rules)
    with connect(url) as db:
        db.execute("set session_replication_role = replica; set statement_timeout = 0; set synchronous_commit = off")
        _write_facts(db, rows, said)
        _write_activity(db, rows, replace(anchors, fidelity=fidelity), faded)
        _write_vectors(db, rows, embedded, fidelity)


def _write_clustered(url: str, rows: Rows, embedded: Vectors) -> None:
    with connect(url) as db:
        db.execute("set session_replication_role = replica")
        _write_vectors(db, rows, embedded, np.full(len(embedded), FULL, np.int64))


@lru_cache(maxsize=1)
def _whose(layout: Layout) -> tuple[Ints, Ints]:
    """Return each fact's namespace, in random order, and the number of earlier facts of that namespace."""
    tenants = np.repeat(np.arange(1, len(layout.sizes) + 1), layout.sizes)
    np.random.default_rng(layout.facts).shuffle(tenants)
    order = np.argsort(tenants, kind="stable")
    places = np.empty_like(tenants)
    places[order] = np.concatenate([np.arange(size) for size in layout.sizes])
    return tenants, places


def _rows(rng: np.random.Generator, tenants: Ints, places: Ints, start: int, layout: Layout) -> Rows:
    count = len(tenants)
    stored_at = FIRST_STORED + np.arange(start, start + count, dtype=np.float64) * (STORED_WITHIN / layout.facts)
    ids = rng.integers(256, size=(count, 16), dtype=np.uint8)
    ids[:, :6] = (stored_at * 1000).astype(">i8").view(np.uint8).reshape(count, 8)[:, 2:]
    ids[:, 6] = ids[:, 6] & 0x0F | 0x70
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    return Rows(tenants, places, ids, stored_at)


def random_anchors(rng: np.random.Generator, count: int, mean_idle_days: float) -> Anchors:
    """Return facts that were last used that many days ago on average."""
    idle_days = np.minimum(rng.exponential(mean_idle_days, count), OLDEST) if mean_idle_days else np.zeros(count)
    seen = AT.timestamp() - idle_days * DAY
    return Anchors(
        base=rng.uniform(0.3, 1.0, count),
        coactivations=rng.poisson(0.5, count).astype(np.int64),
        last_seen_at=seen,
        confidence=np.ones(count),
        confirmed_at=seen,
        expires_at=np.full(count, np.inf),
        permanent=np.zeros(count, np.bool_),
        fidelity=np.full(count, FULL, np.int64),
        pinned_until=np.full(count, -np.inf),
        halvings=np.zeros(count, np.int64),
        branch=np.zeros(count, np.int64),
        encoded_at=np.full(count, -np.inf),
        outrun_at=np.full(count, np.inf),
        silent_since=seen,
        stale=np.zeros(count, np.bool_),
    )


def _state(rng: np.random.Generator, anchors: Anchors, due: int, rules: FadingRules) -> tuple[Faded, Ints]:
    """Return the current state of facts; `due` of them have the state of ten days ago, and a change is due."""
    now, before = fade(anchors, AT.timestamp(), rules), fade(anchors, LAST_PASS, rules)
    eligible = np.flatnonzero(before.due_at <= AT.timestamp())
    if len(eligible) < due:
        raise ValueError(f"Only {len(eligible)} facts of a chunk can be due, {due} should: ask for fewer.")
    waits = np.zeros(len(now.tier), np.bool_)
    waits[rng.choice(eligible, due, replace=False)] = True
    mixed = Faded(**{name: np.where(waits, getattr(before, name), getattr(now, name)) for name in Faded.__slots__})
    return mixed, mixed.fidelity


def _write_facts(db: Connection, rows: Rows, said: list[str]) -> None:
    stored_at = np.datetime_as_string((rows.stored_at * 1e6).astype("datetime64[us]"))
    lines = [
        f"{tenant}\t{id_}\t{text}\t\\\\x{digest(text).hex()}\t{place // TURNS + 1}\t{place % TURNS + 1}\t{at}Z\t{at}Z"
        f"\t{SALIENCE}\n"
        for tenant, id_, text, place, at in zip(
            rows.tenants.tolist(),
            (id_.tobytes().hex() for id_ in rows.ids),
            said,
            rows.places.tolist(),
            stored_at.tolist(),
            strict=True,
        )
    ]
    columns = "namespace, id, text, hash, session, turn, created_at, valid_from, content_salience"
    statement = f"copy facts ({columns}) from stdin".encode()
    with db.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write("".join(lines))


def _write_activity(db: Connection, rows: Rows, anchors: Anchors, faded: Faded) -> None:
    segments = np.array([crc32(id_.tobytes()) % 64 for id_ in rows.ids])
    columns: dict[str, copying.Column] = {
        "namespace": rows.tenants.astype(np.int32),
        "fact": rows.ids,
        "segment": segments.astype(np.int16),
        "base": anchors.base,
        "coactivations": anchors.coactivations.astype(np.int32),
        "last_seen_at": copying.instants(anchors.last_seen_at),
        "last_confirmed_at": copying.instants(anchors.confirmed_at),
        "expires_at": copying.instants(anchors.expires_at),
        "tier": faded.tier.astype(np.int16),
        "fidelity": anchors.fidelity.astype(np.int16),
        "ends_at": copying.instants(faded.ends_at),
        "due_at": copying.instants(faded.due_at),
    }
    copying.write(db, "activity", columns)


def _write_vectors(db: Connection, rows: Rows, embedded: Vectors, fidelity: Ints) -> None:
    for bucket in np.unique(fidelity[fidelity < FINGERPRINT]).tolist():
        has: Bools = fidelity == bucket
        columns = _keys(rows, has)
        columns["full_dims"] = np.full(int(has.sum()), embedded.shape[1], np.int16)
        columns["embedding"] = copying.halfvecs(pool(embedded[has], bucket))
        copying.write(db, "vectors", columns)
    every = np.ones(len(rows.ids), np.bool_)
    copying.write(db, "signatures", _keys(rows, every) | {"signature": copying.bits(encode(embedded))})


def _keys(rows: Rows, which: Bools) -> dict[str, copying.Column]:
    return {"namespace": rows.tenants[which].astype(np.int32), "fact": rows.ids[which]}
