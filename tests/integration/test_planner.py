"""Namespaces that PostgreSQL's statistics lack are noticed and analyzed, and read by key until then."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from uuid import UUID

import pytest
from databases import new_database, role_without_tables
from ebb.contract.recall import Filters
from memory import Memory, day
from psycopg.conninfo import conninfo_to_dict
from test_plans import indexes, nodes, query_near

from api.up.servers import Postgres
from workers.admin.search_indexes import refresh_statistics, statistics_lack
from workers.memory.embed import check_embedder
from workers.storage import (
    activity,
    branches,
    candidates,
    documents,
    duplicate_pairs,
    edits,
    entities,
    events,
    facts,
    faults,
    links,
    merged_texts,
    signatures,
    statements,
    supersession,
    tombstones,
    vectors,
    visible,
)
from workers.storage.candidates import Scope
from workers.storage.connection import close_pools, connect
from workers.storage.server import MANY

TABLES = ("facts", "activity", "vectors", "signatures")
OTHERS = 12


def expected(memory: Memory, table: str) -> int:
    """Return how many rows of the large namespace the planner expects in a table."""
    ((id_,),) = memory.rows("select id from namespaces where name = 'large'")
    ((plan,),) = memory.rows(f"explain (format json) select from {table} where namespace = {id_}")
    return int(plan[0]["Plan"]["Plan Rows"])


def store_many(memory: Memory, count: int, first: int = 0, namespace: str = "large") -> None:
    """Store numbered facts."""
    memory.store(*(f"Crate {first + i} holds {i * 7 % 101} apples." for i in range(count)), namespace=namespace)


Copied = Callable[[Memory, Callable[[Memory], None]], AbstractContextManager[Memory]]


@pytest.fixture(scope="module")
def copied(postgres: Postgres, template: str) -> Iterator[Copied]:
    """Return a function for a copy of a database that is filled once for all tests; statistics are copied as well."""
    filled: dict[Callable[[Memory], None], str] = {}
    with ExitStack() as databases:

        @contextmanager
        def copy(memory: Memory, fill: Callable[[Memory], None]) -> Iterator[Memory]:
            if fill not in filled:
                filled[fill] = databases.enter_context(new_database(postgres, template))
                original = memory.having(database_url=filled[fill])
                check_embedder(original.context)
                fill(original)
                close_pools()
            with new_database(postgres, str(conninfo_to_dict(filled[fill])["dbname"])) as url:
                own = memory.having(database_url=url)
                check_embedder(own.context)
                yield own
                close_pools()

        yield copy


@pytest.fixture
def others(twin: Memory) -> Memory:
    """Return a database whose statistics know twelve small namespaces, and that nothing analyzes by itself."""
    for table in TABLES:
        twin.rows(f"alter table {table} set (autovacuum_enabled = off)")
    for place in range(OTHERS):
        store_many(twin, 20, namespace=f"small {place}")
    twin.rows("analyze")
    return twin


def test_a_large_namespace_that_statistics_lack_is_planned_for_after_it_was_analyzed(others: Memory) -> None:
    store_many(others, MANY)
    assert {table: expected(others, table) for table in TABLES} == dict.fromkeys(TABLES, 1)
    assert statistics_lack(others.context, "large")
    refresh_statistics(others.context, "large")
    assert not statistics_lack(others.context, "large")
    assert {table: expected(others, table) > MANY / 2 for table in TABLES} == dict.fromkeys(TABLES, True)


def test_what_statistics_know_or_is_small_or_was_never_analyzed_is_left_alone(memory: Memory, others: Memory) -> None:
    store_many(memory, MANY)
    assert not statistics_lack(memory.context, "large")
    store_many(others, MANY - 1)
    assert not statistics_lack(others.context, "large")
    refresh_statistics(others.context, "large")
    assert expected(others, "facts") == 1
    store_many(others, 1, MANY)
    assert statistics_lack(others.context, "large")
    assert not statistics_lack(others.context, "small 3")
    assert not statistics_lack(others.context, "unknown")


def test_a_role_that_owns_no_table_analyzes_nothing_and_fails_nothing(others: Memory) -> None:
    store_many(others, MANY)
    with role_without_tables(others.context.database_url) as url:
        stranger = others.having(database_url=url, direct_database_url=url).context
        assert statistics_lack(stranger, "large")
        refresh_statistics(stranger, "large")
    assert statistics_lack(others.context, "large")


@pytest.fixture
def unknown(memory: Memory, copied: Copied) -> Iterator[Memory]:
    """Return a database with a namespace of many facts in sessions, before the first analyze."""
    with copied(memory, never_analyzed) as own:
        yield own


def never_analyzed(memory: Memory) -> None:
    for table in TABLES:
        memory.rows(f"alter table {table} set (autovacuum_enabled = off)")
    memory.store(
        *(
            {"text": f"Crate {i} holds {i * 7 % 101} apples.", "session": f"s{i // 20}", "turn": i % 20}
            for i in range(MANY)
        ),
        namespace="large",
    )


def test_words_are_looked_up_in_their_index_before_the_first_analyze(unknown: Memory) -> None:
    given = {"namespace": 1, "terms": ["'crate'"], "own": "'namespace 1'", "candidates": "'17' | '18'", "budget": 100}
    given |= Scope(day(0)).parameters
    assert "facts_search" in indexes(unknown, candidates.MATCHES, given)
    assert "facts_search" in indexes(unknown, candidates.TEXTS_CONTAINING, given | {"limit": 1})


def test_neighbours_are_looked_up_fact_by_fact_before_the_first_analyze(unknown: Memory) -> None:
    found = [id_ for (id_,) in unknown.rows("select id from facts where text ~ '^Crate 1.5 '")]
    given = {"namespace": 1, "neighbours_of": found, "reach": 2, "deep": False}
    assert set(indexes(unknown, candidates.NEIGHBOURS, given)) == {"facts_pkey", "facts_neighbours"}


def rows_read(memory: Memory, statement: str, values: dict[str, Any]) -> float:
    """Return how many rows and index entries a statement reads in all its tables; what it writes is rolled back."""
    with connect(memory.context.database_url) as db:
        (plan,) = db.execute("explain (analyze, format json) " + statement, values).fetchone()[0]  # type: ignore[index]
        db.rollback()
    scans = [node for node in nodes(plan["Plan"]) if "Relation Name" in node and "Scan" in node["Node Type"]]
    return sum(node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) for node in scans)


def some(memory: Memory, count: int) -> dict[str, Any]:
    """Return values for statements about `count` facts of the namespace `large`."""
    found = memory.rows(
        """
        select id, hash, activity.xmin::text from facts
        join activity on activity.namespace = facts.namespace and activity.fact = id
        where facts.namespace = (select id from namespaces where name = 'large') order by id limit %s
        """,
        count,
    )
    ids, hashes, versions = (list(column) for column in zip(*found, strict=True))
    own = memory.value("select id from namespaces where name = 'large'")
    return {
        "namespace": own, "ids": ids, "neighbours_of": ids[:5], "reach": 2, "ones": ids, "others": ids[::-1],
        "kind": "semantic", "fact": ids[0], "now": day(1), "at": [day(1)] * len(ids), "instants": [day(1)],
        "late": visible.LATE, "reasons": ["faded"], "query": query_near(0), "limit": 100, "offset": 0, "ever": False,
        "stems": hashes, "last": statements.LAST, "most": 10, "examined": 100, "prefix": "", "key": None,
        "whole": True, "length": 80, "what": "restored", "by": None, "dims": [], "queries": [], "silent_since": None,
        "after": 0, "versions": versions, "facts": ids, "into": ids, "kept": ids, "wordings": hashes,
    }  # fmt: skip


FEW = 300
"""Facts of a namespace that nothing sends an analyze for."""

KINDS = ("semantic", "semantic", "semantic", "item")


@pytest.fixture
def newcomer(memory: Memory, copied: Copied) -> Iterator[Memory]:
    """Return a database whose statistics know some namespaces, but not that of the most facts."""
    with copied(memory, some_analyzed) as own:
        yield own


def some_analyzed(memory: Memory) -> None:
    for table in (*TABLES, "links", "likenesses", "events"):
        memory.rows(f"alter table {table} set (autovacuum_enabled = off)")
    for number in range(5):
        memory.store(*(f"Crate {i} holds pears." for i in range(20)), namespace=f"small {number}")
    for table in TABLES:
        memory.rows(f"analyze {table}")
    memory.store(
        *(
            {
                "text": f"Crate {i} is full.",
                "kind": KINDS[i % 4],
                "entity": f'"{i % 9}"/',
                "key": f"{i}",
                "role": "user",
                "metadata": {"document": "{}", "created_at": "", "indexed": True},
            }
            for i in range(FEW)
        ),
        namespace="large",
    )


@pytest.mark.parametrize(
    "statement",
    [
        candidates.DESCRIBE, candidates.READ_AMONG, documents.ITEM_PATHS, documents.ITEMS_BELOW,
        duplicate_pairs.ABOUT_THE_SAME, duplicate_pairs.MEMBERS, duplicate_pairs.OPEN, edits.CLASSED, edits.READ,
        entities.VISIBLE_AMONG, faults.PARTS, signatures.NEAREST_AMONG, tombstones.STANDINGS,
        visible.PAGE, visible.PAGE_OF_ENTITY, visible.REACHED,
    ],
)  # fmt: skip
def test_all_facts_of_a_namespace_that_statistics_lack_are_read_once(newcomer: Memory, statement: str) -> None:
    values = some(newcomer, FEW) | Scope(day(1), filters=Filters(role="user")).parameters | visible.FIRST
    values |= {"deep": False, "queries": None, "dims": None, "stems": None}
    assert rows_read(newcomer, statement, values) <= 5 * FEW


@pytest.mark.parametrize("pinned", [True, False])
def test_the_pins_of_a_namespace_that_statistics_lack_are_read_once_for_all_its_facts(
    newcomer: Memory, pinned: bool
) -> None:
    values = some(newcomer, FEW) | Scope(day(1), filters=Filters(pinned=pinned)).parameters
    one_each = "select distinct on (namespace) fact from activity where namespace <> %s"
    newcomer.rows(f"update activity set pinned_until = 'infinity' where fact in ({one_each})", values["namespace"])
    newcomer.rows("analyze activity (pinned_until)")
    newcomer.rows("update activity set pinned_until = 'infinity' where fact = any(%s)", values["ids"][: FEW // 3])
    assert rows_read(newcomer, signatures.NEAREST_AMONG, values) <= 5 * FEW


@pytest.mark.parametrize(
    "statement",
    [
        activity.ENDED, activity.UPDATE_WORTH, duplicate_pairs.MARK_COMPARED, events.STILL_MERGED, links.STRONGEST,
        links.UPDATES_AMONG, merged_texts.ADD, statements.KNOWN_BY_HASH,
    ],
)  # fmt: skip
def test_single_facts_of_a_namespace_that_statistics_lack_are_looked_up_by_key(
    newcomer: Memory, statement: str
) -> None:
    values = Scope(day(1)).parameters | some(newcomer, 3)
    assert rows_read(newcomer, statement, values) <= 30


def test_the_facts_of_an_entity_are_looked_up_in_a_namespace_that_statistics_lack(newcomer: Memory) -> None:
    values = some(newcomer, FEW) | Scope(day(1)).parameters | {"entity": '"7"/', "key": None}
    assert rows_read(newcomer, entities.VISIBLE, values) <= 3 * FEW / 9


@pytest.mark.parametrize(
    ("statement", "column"), [(tombstones.REVIVE, "forgotten_at"), (supersession.REOPEN, "superseded_at")]
)
def test_restoring_a_fact_of_a_namespace_that_statistics_lack_reads_that_fact(
    newcomer: Memory, statement: str, column: str
) -> None:
    values = some(newcomer, 1)
    newcomer.rows(f"update facts set {column} = %s where id = %s", day(1), values["fact"])
    assert rows_read(newcomer, statement, values) <= 10


def test_a_branch_that_statistics_lack_is_dropped_fact_by_fact(newcomer: Memory) -> None:
    assert rows_read(newcomer, branches.DROP_FACTS, some(newcomer, 1) | {"limit": 100}) <= 200


@pytest.mark.parametrize("statement", [duplicate_pairs.MEMBERS, edits.READ, facts.TEXTS])
def test_single_facts_are_looked_up_by_key_before_the_first_analyze(unknown: Memory, statement: str) -> None:
    assert rows_read(unknown, statement, some(unknown, 5)) <= 10


def test_facts_without_vector_are_found_without_reading_others_before_the_first_analyze(unknown: Memory) -> None:
    unknown.rows("update activity set fidelity = 0 where fact = any(%s)", some(unknown, 3)["ids"])
    given = {"after": 0, "fact": UUID(int=0), "limit": 128}
    assert rows_read(unknown, vectors.PENDING, given) <= 10


def test_facts_without_vector_are_found_without_reading_others_where_all_wait(others: Memory) -> None:
    store_many(others, MANY)
    others.rows("update activity set fidelity = 0")
    with connect(others.context.database_url, autocommit=True) as db:
        db.execute("vacuum (analyze) facts, activity")
    ((last,),) = others.rows("select max(id) from namespaces")
    given = {"after": last - 1, "fact": UUID(int=2**128 - 1), "limit": 10}
    assert rows_read(others, vectors.PENDING, given) <= 30
