"""Namespaces that PostgreSQL's statistics lack are noticed and analyzed."""

import pytest
from databases import role_without_tables
from memory import Memory, day
from test_plans import indexes

from workers.admin.search_indexes import refresh_statistics, statistics_lack
from workers.storage import candidates
from workers.storage.candidates import Scope
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
def unknown(twin: Memory) -> Memory:
    """Return a database with a namespace of many facts in sessions, before the first analyze."""
    for table in TABLES:
        twin.rows(f"alter table {table} set (autovacuum_enabled = off)")
    twin.store(
        *(
            {"text": f"Crate {i} holds {i * 7 % 101} apples.", "session": f"s{i // 20}", "turn": i % 20}
            for i in range(MANY)
        ),
        namespace="large",
    )
    return twin


def test_words_are_looked_up_in_their_index_before_the_first_analyze(unknown: Memory) -> None:
    given = {"namespace": 1, "terms": ["'crate'"], "own": "'namespace 1'", "candidates": "'17' | '18'", "budget": 100}
    assert "facts_search" in indexes(unknown, candidates.MATCHES, given | Scope(day(0)).parameters())


def test_neighbours_are_looked_up_fact_by_fact_before_the_first_analyze(unknown: Memory) -> None:
    found = [id_ for (id_,) in unknown.rows("select id from facts where text ~ '^Crate 1.5 '")]
    given = {"namespace": 1, "neighbours_of": found, "reach": 2, "deep": False}
    assert set(indexes(unknown, candidates.NEIGHBOURS, given)) == {"facts_pkey", "facts_neighbours"}
