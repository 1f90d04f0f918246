"""No statement reads or changes rows of another tenant: PostgreSQL's own plan of each restricts every table it reads.

A plan needs no values, so every statement that stands in the code is examined, and none can be forgotten. It knows what
views and SQL functions lead to, and of an `or` it takes only what all its alternatives demand.
"""

from collections.abc import Iterator

import psycopg
import pytest
from databases import new_database
from isolation import Restrictions, explainable, restrictions
from statements import ACROSS_TENANTS, TENANTS, on_tenants_or_namespaces

from api.up.servers import Postgres
from workers.storage.connection import Connection, connect

TABLES = {*TENANTS.removeprefix("(?:").removesuffix(")").split("|"), "namespaces"}

EXCEPTIONS = {
    "due.SEGMENTS": "the number of segments is common to all tenants; due facts are counted for one",
    "due.SEGMENTS_AGAIN": "the same",
    "signatures.BUILD": "builds the index of one namespace, which it names; such a statement has no plan",
    "tallies.COUNTS": "counts the facts of the given namespaces; rows have the namespace",
    "branches.BRANCH": "a part shared by statements",
    "branches.LISTED": "lists the branches of a namespace or of all",
    "limits.GAPS": "the gaps of the given namespaces; rows have the namespace",
    "limits.GAPS_WAITING": "lists for the operator the namespaces with a gap",
    "limits.RECORD_GAP": "a period without passes concerns all namespaces",
    "namespaces.ALL_IDS": "lists all namespaces",
    "namespaces.ALL_NAMES": "the same",
    "namespaces.BEGINNING": "finds namespaces by how their names begin",
    "namespaces.FOLLOWING": "finds the next namespace in turn",
    "namespaces.NAMES": "the names of the given namespaces",
    "namespaces.NEXT_ID": "chooses the id of a new namespace",
    "namespaces.SETTINGS_OF": "the settings of the given namespaces; rows have the namespace",
    "namespaces.SETTLE_SETTINGS": "a pass has applied the settings of the given namespaces",
    "namespaces.WITH_CHANGED_SETTINGS": "lists namespaces with changed settings",
    "words.GROWN_TENFOLD": "lists namespaces that have grown",
}
"""Statements with a namespace that read other rows too or have no plan, each with the reason."""

WITHOUT_JOIN = {
    "activity.DROP_OLD_USES": "deletes rows that it chose itself, by their place in the table",
    "facts.COUNTED": "adds two sums over all tenants",
    "limits.CORRECT_HELD": "changes the namespaces that it chose itself, by counts that it groups by namespace",
    "runs.DUE_NAMESPACES": "finds the segments, then the namespaces with due facts in each",
    "server.FACT_TOTALS": "adds two sums over all tenants",
    "server.OLDEST_DUE": "finds the segments, then the oldest due fact in each",
    "shards.MEASURE": "adds sums over all tenants",
    "tallies.COUNTS": "groups two tables by namespace, each on its own",
    "tallies.DUE_CHANGED": "the number of due facts is joined, which it counts by namespace",
    "tallies.SETTLE": "deletes what it then groups by namespace",
    "vectors.COUNT_PENDING": "sums up two tables, each on its own",
}
"""Statements on several tenants whose tables are not joined by namespace, each with the reason."""

WITHOUT_PLAN = {
    "deep.LOCK_ALL",
    "deep.UNPACKED",
    "exports.OTHER",
    "facts.OWN_BYTES",
    "signatures.BUILD",
    "supersession.GIVEN_END",
    "vectors.CLEAR",
    "words.REBUILD",
}
"""Parts of statements, and statements that PostgreSQL does not plan."""

FORGETFUL = {
    "it names facts besides": "select text from facts where namespace = %(namespace)s or id = any(%(ids)s::uuid[])",
    "it changes facts besides": """
        update facts set forgotten_at = %(now)s
        from unnest(%(ids)s::uuid[]) as gone (id)
        where facts.namespace = %(namespace)s and facts.id = gone.id or facts.id = any(%(ids)s::uuid[])
    """,
    "it compares with something else": "delete from vectors where fact = %(fact)s and namespace <> %(namespace)s",
    "it is joined by id alone": """
        select text from activity join facts on facts.id = activity.fact where activity.namespace = %(namespace)s
    """,
    "it is joined to a table that is not restricted": """
        select text from facts join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    """,
    "the left side of an outer join is not restricted": """
        select facts.text from facts
        left join activity on activity.namespace = facts.namespace and activity.namespace = %(namespace)s
    """,
    "only one of two is restricted": """
        select text from facts where namespace = %(namespace)s
        union all
        select text from facts where id = any(%(ids)s::uuid[])
    """,
    "what it excludes is of any tenant": """
        select text from facts where namespace = %(namespace)s
            and not exists (select from links where links.source = facts.id)
    """,
    "a view leads to all": "select text from remembered where id = any(%(ids)s::uuid[]) or namespace = %(namespace)s",
    "it takes any namespace": "select text from facts where namespace = namespace and %(namespace)s > 0",
    "it takes a certain one": "select text from facts where namespace = 1 and %(namespace)s > 0",
    "it changes the settings of any namespace": "update namespaces set settings = '{}' where %(namespace)s > 0",
    "it reads the salt of any namespace": """
        select salt from facts join namespaces on true where facts.namespace = %(namespace)s
    """,
    "it takes two": "select text from facts where namespace in (%(namespace)s, 1)",
}
"""Statements that read or change other tenants' rows, most of which a text pattern would accept."""


@pytest.fixture(scope="module")
def database(postgres: Postgres, template: str) -> Iterator[Connection]:
    with new_database(postgres, template) as url, connect(url, autocommit=True) as db:
        yield db


def unrestricted(db: Connection, statement: str) -> set[str]:
    """Return the tables of which PostgreSQL would read rows of any namespace."""
    return planned(db, statement).unrestricted()


def planned(db: Connection, statement: str) -> Restrictions:
    row = db.execute(explainable(statement).encode()).fetchone()
    assert row is not None
    return restrictions(row[0][0]["Plan"], TABLES)


def test_a_statement_reads_rows_of_one_namespace_alone(database: Connection) -> None:
    examined = on_tenants_or_namespaces()
    for name in examined.keys() - ACROSS_TENANTS.keys() - EXCEPTIONS.keys():
        assert unrestricted(database, examined[name]) == set(), name


@pytest.mark.parametrize("why", FORGETFUL)
def test_a_statement_that_reads_rows_of_others_is_noticed(database: Connection, why: str) -> None:
    assert unrestricted(database, FORGETFUL[why]) != set()


def test_a_statement_on_several_tenants_combines_no_rows_of_two(database: Connection) -> None:
    examined = on_tenants_or_namespaces()
    for name in (ACROSS_TENANTS.keys() | EXCEPTIONS.keys()) - WITHOUT_PLAN:
        assert (len(planned(database, examined[name]).groups()) > 1) == (name in WITHOUT_JOIN), name


@pytest.mark.parametrize(
    "statement",
    [
        "delete from tally_history as old where exists (select from tally_history as newer where newer.at > old.at)",
        "select text from facts join activity on activity.fact = facts.id",
        "select text, embedding from facts left join vectors on vectors.fact = facts.id",
        "select salt, text from facts, namespaces",
    ],
)
def test_a_statement_that_combines_rows_of_two_tenants_is_noticed(database: Connection, statement: str) -> None:
    assert len(planned(database, statement).groups()) > 1


def test_no_table_with_a_namespace_is_forgotten(database: Connection) -> None:
    rows = database.execute("select table_name from information_schema.columns where column_name = 'namespace'")
    assert {str(name) for (name,) in rows} - TABLES == {"decay_runs"}  # whose namespace is optional


def test_every_exception_is_still_one(database: Connection) -> None:
    examined = on_tenants_or_namespaces()
    for name in EXCEPTIONS:
        try:
            assert unrestricted(database, examined[name]) != set(), name
        except psycopg.errors.SyntaxError:
            assert not examined[name].split()[0].startswith(("select", "with", "insert", "update", "delete")), name
