"""Hot statements use their indexes, by PostgreSQL's plans."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from databases import new_database
from ebb.contract.recall import Filters
from memory import Memory, day
from pgvector import Bit
from psycopg import sql
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH

from api.up.servers import Postgres
from workers.admin import search_indexes
from workers.context import Context
from workers.core.arrays import Bytes
from workers.settings import Settings
from workers.storage import (
    candidates,
    documents,
    due,
    duplicate_pairs,
    entities,
    exports,
    faults,
    links,
    merged_texts,
    namespaces,
    relations,
    runs,
    server,
    signatures,
    statements,
    supersession,
    tallies,
    tombstones,
    turns,
    vectors,
    visible,
)
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, close_pools, connect, reader

pytestmark = pytest.mark.long

TENANTS = 20
FACTS = 15_000
LARGE = 5_000
"""Number of facts of the first tenant; the others share the rest."""

FILL = """
    insert into namespaces (name) select 'tenant ' || i from generate_series(1, %(tenants)s) as i;

    insert into facts (namespace, id, text, hash, session, turn, entity, key, value, created_at, valid_from)
    select case when i <= %(large)s then 1 else 2 + i %% (%(tenants)s - 1) end, gen_random_uuid(),
        format('Guest %%s takes word%%s with friend%%s.', i, i %% 1000, i %% 77), sha256(i::text::bytea),
        to_jsonb(i / 50), i %% 50, 'guest ' || i / 10, 'room', i, %(now)s, %(now)s
    from generate_series(1, %(facts)s) as i;

    insert into activity (namespace, fact, segment, base, last_seen_at, last_confirmed_at, tier, fidelity, due_at,
        branch, encoded_at, occurred)
    select namespace, id, abs(hashtext(id::text)) %% 64, 0.5, %(now)s, %(now)s, 1,
        case when random() < 0.001 then 0 else 1 end, %(now)s + random() * interval '100 days',
        turn %% 2, case turn %% 2 when 1 then %(now)s::timestamptz end,
        case turn %% 2 when 1 then (session #>> '{}')::int * 50 + turn end
    from facts;

    insert into likenesses (namespace, fact, other, similarity, found_at)
    select namespace, id, other, 0.95, %(now)s
    from (select namespace, id, lead(id) over (partition by namespace order by id) as other from facts) as pair
    where other is not null;

    insert into merged_texts (namespace, wording, fact)
    select namespace, sha256(id::text::bytea), id from facts;

    insert into links (namespace, source, target, type, strength, created_at)
    select namespace, id, other, 'RELATED_TO', random(), %(now)s
    from (select namespace, id, lead(id) over (partition by namespace order by id) as other from facts) as facts
    where other is not null;

    insert into relations (namespace, source, target, type, weight, last_observed, created_at)
    select namespace, 'guest ' || i, 'guest ' || i + 1, 'knows', 1, %(now)s, %(now)s
    from generate_series(1, %(tenants)s) as namespace, generate_series(1, 2000) as i;

    insert into events (namespace, fact, at, what)
    select namespace, id, %(now)s + random() * interval '100 days',
        case when random() < 0.01 then 'stale' else 'pinned' end
    from facts;
"""

# Plans must not depend on the machine: statistics are fresh, and pages all-visible.
SETTLE = "vacuum (analyze)"


def clustered(count: int) -> Bytes:
    """Return signatures around 200 centres, like those of real texts."""
    generator = np.random.default_rng(7)
    centres = generator.integers(0, 2, (200, 1024), dtype=np.uint8)
    noise = (generator.random((count, 1024)) < 0.15).astype(np.uint8)
    packed: Bytes = np.packbits(centres[generator.integers(0, 200, count)] ^ noise, axis=1)
    return packed


@pytest.fixture(scope="module")
def filled(postgres: Postgres, template: str) -> Iterator[Memory]:
    """Return a memory of fifteen thousand facts, generated in PostgreSQL; tests only read it."""
    with new_database(postgres, template) as url:
        memory = Memory(Context(Settings(database_url=url, ann_threshold=LARGE)))
        values = {"tenants": TENANTS, "facts": FACTS, "large": LARGE, "now": day(0)}
        with connect(url) as db:
            db.execute(sql.SQL(bound(FILL, values)))
            owners = db.execute("select namespace, id from facts order by id").fetchall()
            with db.cursor().copy("copy signatures (namespace, fact, signature) from stdin") as copy:
                texts = np.unpackbits(clustered(FACTS), axis=1) + ord("0")
                for (tenant, id_), text in zip(owners, texts, strict=True):
                    copy.write_row((tenant, id_, text.tobytes().decode()))
        with connect(url, autocommit=True) as db:
            db.execute(SETTLE)
        yield memory
        close_pools()


@pytest.fixture
def empty(postgres: Postgres, template: str) -> Iterator[Memory]:
    with new_database(postgres, template) as url:
        yield Memory(Context(Settings(database_url=url)))
        close_pools()


def bound(statements: str, values: dict[str, Any]) -> str:
    """Return several statements as one, without parameters."""
    literals = {name: sql.quote(value) for name, value in values.items()}
    return statements % literals


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


def indexes(memory: Memory, statement: str, values: dict[str, Any]) -> dict[str, str]:
    """Return the indexes in the plan of a statement, and how they are used."""
    with connect(memory.context.database_url) as db:
        (plan,) = db.execute("explain (format json) " + statement, values).fetchone()[0]  # type: ignore[index]
    return in_plan(plan)


def kept(memory: Memory, statement: str) -> dict[str, str]:
    """Return the indexes in the plan of a reader's statement that is kept for all values, and how they are used."""
    numbers: dict[str, str] = {}
    general = re.sub(r"%\((\w+)\)[sb]", lambda found: numbers.setdefault(found[1], f"${len(numbers) + 1}"), statement)
    with reader(memory.context.read_url) as db:
        (plan,) = db.execute("explain (generic_plan, format json) " + general).fetchone()[0]  # type: ignore[index]
    return in_plan(plan)


def in_plan(plan: dict[str, Any]) -> dict[str, str]:
    used = [node for node in nodes(plan["Plan"]) if "Index Name" in node]
    return {node["Index Name"]: node["Node Type"] for node in used}


def query_near(number: int) -> Bit:
    return Bit(clustered(number + 1)[number].tobytes())


MATCHING = {
    "namespace": 3, "terms": ["'word7'", "'guest'"], "own": "'namespace 3'",
    "candidates": "'namespace 3' & ('word7' | 'guest')", "budget": 20_000,
    **Scope(day(0)).parameters,
}  # fmt: skip


@pytest.mark.slow
def test_words_are_looked_up_in_the_text_index(filled: Memory) -> None:
    assert "facts_search" in indexes(filled, candidates.MATCHES, MATCHING)
    assert "facts_search" in indexes(filled, candidates.MATCHES, MATCHING | {"pinned": True})
    assert "facts_search" in indexes(filled, candidates.TEXTS_CONTAINING, MATCHING | {"limit": 1})


def test_searches_of_any_namespace_use_their_indexes_by_one_plan(filled: Memory) -> None:
    assert set(kept(filled, candidates.MATCHES)) == {"facts_search"}
    assert kept(filled, signatures.SCAN) == {"signatures_scan": "Index Only Scan"}


def test_a_plan_made_for_an_empty_table_uses_the_indexes(empty: Memory) -> None:
    assert set(kept(empty, candidates.MATCHES)) == {"facts_search"}
    assert kept(empty, signatures.SCAN).keys() == {"signatures_scan"}
    assert {"facts_pkey", "activity_pkey"} <= kept(empty, candidates.READ).keys()


def test_psycopg_parses_the_statement_that_reads_candidates_once() -> None:
    assert len(candidates.READ) <= MAX_CACHED_STATEMENT_LENGTH


def test_facts_of_a_name_are_looked_up_by_an_index_of_names(filled: Memory) -> None:
    whole = Scope(day(0)).parameters | {"namespace": 3, "entity": "Guest 7", "key": None, "newest": 10}
    names = {"facts_entities", "facts_topics"}
    for asked in (whole, whole | {"key": "Room"}):
        assert set(indexes(filled, entities.OF_ENTITY, asked)) <= names
        assert set(indexes(filled, entities.VISIBLE, asked)) <= names | {"activity_pkey"}
    words = "'namespace 3' & 'guest' & '7'"
    assert "facts_search" in indexes(filled, entities.OF_ENTITY_EVER, whole | {"words": words})


def test_later_withdrawals_are_looked_up_in_the_text_index(filled: Memory) -> None:
    words = "'namespace 3' & ('longer' | 'remov')"
    values = {"namespace": 3, "words": words, "roles": ["user"], "since": day(0), "but": []}
    assert "facts_search" in indexes(filled, links.SAID_LATER, values | {"limit": 500, "most": 5_000})


def test_signatures_of_a_namespace_are_scanned_without_touching_the_table(filled: Memory) -> None:
    values = {"namespace": 3, "query": query_near(0), "limit": 200}
    assert indexes(filled, signatures.NEAREST, values) == {"signatures_scan": "Index Only Scan"}
    assert indexes(filled, signatures.NEAREST_EVER, values) == {"signatures_scan": "Index Only Scan"}


def test_only_the_signatures_of_an_entity_are_compared_where_its_facts_are_asked_for(filled: Memory) -> None:
    scope = Scope(day(0), Filters(entity="Guest 7"))
    values = {"namespace": 1, "query": query_near(0), "limit": 200} | scope.parameters
    used = indexes(filled, signatures.NEAREST_AMONG, values)
    assert used.keys() & {"facts_entities", "facts_topics"}
    assert "facts_pkey" not in used


def test_the_place_of_a_fact_by_meaning_is_counted_without_touching_the_table(filled: Memory) -> None:
    fact = filled.value("select fact from signatures where namespace = 3 limit 1")
    values = {"namespace": 3, "query": query_near(0), "fact": fact}
    assert indexes(filled, signatures.STANDING, values)["signatures_scan"] == "Index Only Scan"


def test_what_is_left_of_facts_is_looked_for_within_their_range(filled: Memory) -> None:
    ids = [id_ for (id_,) in filled.rows("select id from facts where namespace = 3 order by id limit 500")]
    values = {"namespaces": [3], "after": [ids[0]], "upto": [ids[-1]]}
    used = indexes(filled, faults.LEFTOVERS, values)
    for table in ("activity", "signatures", "events", "links", "likenesses", "facts"):
        assert any(name.startswith(f"{table}_") for name in used), table


def test_whether_a_namespace_has_documents_is_seen_in_their_index(filled: Memory) -> None:
    assert "facts_chunks" in indexes(filled, documents.ANY_CHUNK, {"namespace": 3})
    values = {"namespace": 3, "paths": ["a/b.md"], "beginnings": ["a/b.md"], "limit": 5_000}
    assert set(indexes(filled, documents.CHUNKS, values)) == {"facts_chunks"}
    used = indexes(filled, documents.KNOWN, {"namespace": 3, "prefix": "a/"})
    assert "facts_chunks" in used
    assert "facts_pkey" not in used


@pytest.mark.parametrize("namespace", [None, 3])
@pytest.mark.parametrize("work", ["decay", "prune", "startup prune"])
def test_what_is_due_is_claimed_by_its_index(filled: Memory, work: str, namespace: int | None) -> None:
    values = {"segments": [5, 6], "now": day(1), "instant": day(1).timestamp(), "work": work, "limit": 1000}
    values |= {"namespace": namespace}
    assert "activity_due" in indexes(filled, due.CLAIM, values)
    preview = values | {"offset": 0, "with_held": False}
    assert "activity_due" in indexes(filled, due.PREVIEW, preview)


def test_a_janitor_costs_what_is_due_not_what_its_namespace_holds(filled: Memory) -> None:
    own = {"now": day(1), "instant": day(1).timestamp(), "work": "janitor", "namespace": 3}
    assert set(indexes(filled, due.CLAIM, own | {"segments": [5], "limit": 1000})) == {"activity_due"}
    assert set(indexes(filled, due.SEGMENTS, own | {"with_held": False})) == {"activity_due"}
    assert "activity_due" in indexes(filled, runs.DUE_NAMESPACES, {"now": day(1)})
    given = {"namespace": 3, "run": UUID(int=1), "now": day(1), "sunk": day(0), "most": 1000}
    used = indexes(filled, runs.RECORD_JANITOR, given)
    assert {"facts_culled", "events_stale"} <= used.keys()


@pytest.mark.parametrize("work", ["decay", "prune", "startup prune"])
@pytest.mark.parametrize("at", [0, 1])
def test_due_facts_are_counted_by_their_index_alone(filled: Memory, at: float, work: str) -> None:
    values = {"now": day(at), "instant": day(at).timestamp(), "work": work, "with_held": False, "namespace": None}
    used = indexes(filled, due.SEGMENTS, values)
    assert set(used) == {"activity_due"}


def test_the_episodes_that_turns_have_outrun_are_found_by_their_index(filled: Memory) -> None:
    values = {"namespace": 1, "before": 100, "limit": 1000}
    with connect(filled.context.database_url) as db:
        (plan,) = db.execute("explain (format json) " + turns.PAST_LIMIT, values).fetchone()[0]  # type: ignore[index]
    scans = [node for node in nodes(plan["Plan"]) if node.get("Index Name") == "activity_episodes"]
    assert ["occurred" in node["Index Cond"] for node in scans] == [True, True]
    assert in_plan(plan) == {"activity_episodes": "Index Scan", "activity_pkey": "Index Scan"}


def test_whether_a_turn_is_new_is_found_by_session_and_turn(filled: Memory) -> None:
    ids = [id_ for (id_,) in filled.rows("select id from facts where namespace = 1 limit 5")]
    assert "facts_neighbours" in indexes(filled, turns.ADVANCE, {"namespace": 1, "ids": ids})


def test_turns_before_others_are_found_by_session_and_turn(filled: Memory) -> None:
    ids = [id_ for (id_,) in filled.rows("select id from facts where namespace = 1 limit 5")]
    assert "facts_neighbours" in indexes(filled, turns.TURNS, {"namespace": 1, "ids": ids, "before": 3})


def test_stated_values_also_superseded_ones_are_found_by_the_text_index(filled: Memory) -> None:
    given = {"namespace": 1, "entity": "Guest 7", "key": "room", "words": "'namespace 1' & 'guest' & '7'"}
    assert "facts_search" in indexes(filled, entities.OF_ENTITY_EVER, given)
    ids = [id_ for (id_,) in filled.rows("select id from facts where namespace = 1 limit 5")]
    found = indexes(filled, turns.STATED, {"namespace": 1, "ids": ids, "now": day(0)})
    assert {"facts_pkey", "activity_pkey"} <= found.keys()


def test_known_statements_are_found_by_hash(filled: Memory) -> None:
    values = {"namespace": 3, "stems": [bytes(32), bytes(range(32))], "last": statements.LAST, "most": 1_000}
    assert "facts_said_once" in indexes(filled, statements.KNOWN_BY_HASH, values)


def test_what_was_merged_is_found_by_the_digest_of_its_text(filled: Memory) -> None:
    values = {"namespace": 3, "wordings": [bytes(32), bytes(range(32))], "now": day(0)}
    used = indexes(filled, merged_texts.KNOWN, values)
    assert {"merged_texts_pkey", "facts_pkey", "activity_pkey"} <= used.keys()


def test_whether_decay_ended_facts_of_a_namespace_is_seen_in_their_index(filled: Memory) -> None:
    assert indexes(filled, tombstones.ENDED, {"namespace": 3, "requested": ["asked"]})["facts_tombstones"]


def test_facts_about_the_same_are_found_by_entity_and_key(filled: Memory) -> None:
    ids = [id_ for (id_,) in filled.rows("select id from facts where namespace = 3 limit 3")]
    values = {"namespace": 3, "ids": ids, "now": day(0), "most": 10, "examined": 1_000}
    assert "facts_topics" in indexes(filled, supersession.FIND_CONTRADICTIONS, values)


@pytest.mark.parametrize("after", [visible.FIRST, asdict(visible.Place(day(0), -1, UUID(int=5)))])
def test_a_page_of_facts_is_read_by_their_creation_from_behind(filled: Memory, after: dict[str, Any]) -> None:
    given = {"namespace": 1, "limit": 100, "offset": 0} | Scope(day(0)).parameters | after
    assert indexes(filled, visible.PAGE, given)["facts_newest"] == "Index Scan"


def test_a_page_of_facts_is_read_from_behind_even_if_reading_all_of_them_seems_cheaper(
    filled: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def explained(db: Connection, _: type[Any], statement: str, given: dict[str, Any]) -> list[Any]:
        asked.append(db.execute("explain (format json) " + statement, given).fetchone()[0][0])  # type: ignore[index]
        return []

    monkeypatch.setattr(visible, "fetch_all", explained)
    with connect(filled.context.database_url) as db:
        db.execute("set random_page_cost = 100")
        visible.page(db, 1, Scope(day(0)), 100)
        after = [db.execute(f"show enable_{way}").fetchone() for way in ("seqscan", "bitmapscan")]
    assert [in_plan(plan)["facts_newest"] for plan in asked] == ["Index Scan"]
    assert after == [("on",), ("on",)]


def test_facts_of_a_session_and_pinned_ones_are_looked_up_by_their_indexes(filled: Memory) -> None:
    first = {"namespace": 1, "limit": 100, "offset": 0} | visible.FIRST
    of_session = indexes(filled, visible.PAGE_OF_SESSION, first | Scope(day(0), Filters(session=3)).parameters)
    assert {"facts_neighbours", "facts_pkey"} <= of_session.keys()
    pinned = indexes(filled, visible.PAGE_OF_PINNED, first | Scope(day(0), Filters(pinned=True)).parameters)
    assert {"activity_pinned", "facts_pkey"} <= pinned.keys()


@pytest.mark.parametrize(
    ("filters", "words"), [(Filters(tag="x"), "'tag x'"), (Filters(category="daily rate"), "'daili' & 'rate'")]
)
def test_facts_with_a_tag_or_category_are_looked_up_among_the_newest_and_then_by_the_text_index(
    filled: Memory, filters: Filters, words: str
) -> None:
    given = {"namespace": 1, "limit": 100, "offset": 0} | Scope(day(0), filters).parameters | visible.FIRST
    newest = indexes(filled, visible.PAGE_AMONG_NEWEST, given | {"among": 100})
    assert newest["facts_newest"] == "Index Scan"
    found = indexes(filled, visible.PAGE_BY_TEXT_INDEX, given | {"words": f"'namespace 1' & {words}"})
    assert found == {"facts_search": "Bitmap Index Scan", "activity_pkey": "Index Scan"}


def test_items_below_a_path_are_found_by_their_index(filled: Memory) -> None:
    given = {"namespace": 1, "prefix": '"users"/', "key": None, "now": day(0), "limit": 10, "whole": True}
    with connect(filled.context.database_url) as db:
        (plan,) = db.execute("explain (format json) " + documents.ITEMS_BELOW, given).fetchone()[0]  # type: ignore[index]
    (scan,) = [node for node in nodes(plan["Plan"]) if node.get("Index Name") == "facts_items"]
    assert "users" in scan["Index Cond"]


def test_neighbours_are_found_by_session_and_turn(filled: Memory) -> None:
    values = {"namespace": 1, "neighbours_of": [UUID(int=number) for number in range(30)], "reach": 2, "deep": False}
    assert "facts_neighbours" in indexes(filled, candidates.NEIGHBOURS, values)


def test_facts_without_vector_are_found_by_their_index(filled: Memory) -> None:
    values = {"after": 0, "fact": "00000000-0000-0000-0000-000000000000", "limit": 128}
    assert "activity_pending" in indexes(filled, vectors.PENDING, values)


def test_what_is_due_of_one_namespace_is_counted_by_the_index_of_what_is_due(filled: Memory) -> None:
    assert "activity_due" in indexes(filled, tallies.DUE, {"namespace": 3, "now": day(1)})


def test_pinned_facts_are_counted_by_their_index(filled: Memory) -> None:
    assert set(indexes(filled, tallies.PINNED, {"namespace": 3, "now": day(1)})) == {"activity_pinned"}


def test_held_facts_are_found_by_their_index(filled: Memory) -> None:
    assert "activity_held" in indexes(filled, due.MAKE_HELD_DUE, {"namespace": None})


def test_what_has_been_due_for_longest_is_found_by_its_index(filled: Memory) -> None:
    assert set(indexes(filled, server.OLDEST_DUE, {"now": day(1)})) == {"activity_due"}


def test_one_fact_is_shown_by_its_keys(filled: Memory) -> None:
    (id_,) = filled.rows("select id from facts where namespace = 3 limit 1")[0]
    name = filled.value("select name from namespaces where id = 3")
    used = indexes(filled, exports.ROWS, {"namespace": name, "ids": [id_], "seen_at": day(0)})
    assert {"facts_pkey", "activity_pkey"} <= set(used)


def test_past_passes_are_found_newest_first_by_their_index(filled: Memory) -> None:
    filled.rows(
        """
        insert into decay_runs (id, planned_for, asked_by, started_at)
        select gen_random_uuid(), %s, '', now() - number * interval '1 minute' from generate_series(1, 2000) as number
        """,
        day(0),
    )
    filled.rows("analyze decay_runs")
    values = {"namespace": "default", "limit": 20, "before": None, "everything": False}
    assert "decay_runs_started" in indexes(filled, runs.LATEST, values)


def test_what_was_not_compared_yet_is_found_by_its_index(filled: Memory) -> None:
    assert "activity_uncompared" in indexes(filled, duplicate_pairs.UNCOMPARED, {"namespace": 3, "limit": 50})
    assert set(indexes(filled, duplicate_pairs.UNCOMPARED_NAMESPACES, {})) == {"activity_uncompared"}


def test_facts_are_compared_by_their_signatures_without_touching_the_table(filled: Memory) -> None:
    some = "select id from facts where namespace = 3 limit 50"
    values = {"namespace": 3, "ids": [id_ for (id_,) in filled.rows(some)], "limit": 200, "most_bits": 185}
    used = indexes(filled, signatures.NEAREST_OF_EACH, values)
    assert used["signatures_scan"] == "Index Only Scan"


def test_all_signatures_of_a_namespace_are_read_without_those_of_others(filled: Memory) -> None:
    used = indexes(filled, signatures.LIVE, {"namespace": 3, "after": UUID(int=0), "limit": 1000})
    assert used.keys() & {"signatures_pkey", "signatures_scan"}


def test_pairs_of_near_duplicates_are_read_from_one_namespace(filled: Memory) -> None:
    used = indexes(filled, duplicate_pairs.OPEN, {"namespace": 3, "now": day(1), "limit": 50_000})
    assert used.keys() & {"likenesses_pkey", "likenesses_other"}


@pytest.mark.slow
def test_a_large_namespace_is_searched_in_its_own_graph_which_finds_nearly_the_same(filled: Memory) -> None:
    queries = [query_near(number) for number in range(10)]
    with connect(filled.context.database_url) as db:
        exact = [nearest(db, query) for query in queries]
    search_indexes.index_large_namespaces(filled.context)
    values = {"namespace": 1, "query": queries[0], "limit": 200}
    assert indexes(filled, signatures.NEAREST, values) == {"signatures_near_1": "Index Scan"}
    with connect(filled.context.database_url) as db:
        found = [nearest(db, query) for query in queries]
    shared = [len(set(a) & set(b)) for a, b in zip(exact, found, strict=True)]
    assert sum(shared) >= 90
    (some,) = filled.rows("select id from facts where namespace = 1 limit 1")
    each = {"namespace": 1, "ids": list(some), "limit": 200, "most_bits": 185}
    assert "signatures_near_1" in indexes(filled, signatures.NEAREST_OF_EACH, each)


def nearest(db: Any, query: Bit) -> list[Any]:
    return list(signatures.nearest(db, 1, np.frombuffer(query.to_binary()[4:], dtype=np.uint8), 10))


def test_small_namespaces_are_scanned_exactly_besides_a_large_one(filled: Memory) -> None:
    search_indexes.index_large_namespaces(filled.context)
    values = {"namespace": 3, "query": query_near(0), "limit": 200}
    assert indexes(filled, signatures.NEAREST, values) == {"signatures_scan": "Index Only Scan"}


def test_links_are_walked_both_ways_by_their_own_indexes(filled: Memory) -> None:
    seeds = [id_ for (id_,) in filled.rows("select id from facts where namespace = 3 limit 10")]
    values = {
        "namespace": 3, "seeds": seeds, "scores": [1.0] * 10, "depth": 2, "breadth": 20, "fan": 20, "asked_for": [],
        **Scope(day(0), known_as_of=day(1)).parameters,
    }  # fmt: skip
    used = indexes(filled, links.WALK, values)
    assert {"links_source", "links_target", "facts_pkey", "activity_pkey"} == used.keys()


def test_the_strongest_links_of_a_fact_and_those_of_its_neighbours_are_found_by_their_indexes(filled: Memory) -> None:
    rows = filled.rows("select source from links where namespace = 3 limit 20")
    own = {"namespace": 3, "fact": rows[0][0], "most": 20, "examined": 160}
    assert {"links_source", "links_target"} <= indexes(filled, links.STRONGEST, own).keys()
    some = {"namespace": 3, "facts": [source for (source,) in rows]}
    for statement, values in ((links.COUNT, own), (links.AMONG, some)):
        used = indexes(filled, statement, values).keys()
        assert used
        assert used <= {"links_pkey", "links_source", "links_target"}


def test_the_course_of_a_namespace_is_read_by_its_key(filled: Memory) -> None:
    filled.rows(
        """
        insert into tally_history (namespace, at, counts)
        select id, timestamptz '2025-01-01' + hour * interval '1 hour', '{"tier 0": 1}'
        from namespaces, generate_series(1, 500) as hour
        """
    )
    filled.rows("analyze tally_history")
    values = {"namespace": 3, "since": day(10), "now": day(12)}
    assert indexes(filled, tallies.TALLIES_SINCE, values).keys() == {"tally_history_pkey"}


def test_what_is_due_is_noted_for_all_namespaces_by_the_index_of_what_is_due(filled: Memory) -> None:
    used = indexes(filled, tallies.DUE_CHANGED, {"now": day(-1), "namespaces": [3]})
    assert used.keys() == {"activity_due"}


def test_facts_of_named_entities_and_relations_are_found_by_name(filled: Memory) -> None:
    values = {
        "namespace": 3, "phrases": ["Guest 7", "room", "the"], "instant": day(0), "half_life": 90, "minimum": 0.1,
        "most_named": 20, "most_related": 5, "related": 20,
        **Scope(day(0)).parameters,
    }  # fmt: skip
    used = {"facts_entities", "relations_source", "relations_target"}
    assert indexes(filled, entities.ABOUT, values).keys() == used
    pinned = indexes(filled, entities.ABOUT_AMONG, values | {"pinned": True}).keys()
    assert used < pinned <= used | {"activity_pkey", "activity_pinned"}


@pytest.mark.parametrize("tenant", [1, 3, 99])
def test_whether_a_namespace_has_graphs_at_all_is_one_look_into_each(filled: Memory, tenant: int) -> None:
    used = indexes(filled, namespaces.FIND, {"name": f"tenant {tenant}", "nearly_all": 0.99})
    assert "facts_entities" in used
    assert used.keys() & {"links_source", "links_pkey"}


def test_relations_of_an_entity_are_found_by_its_name(filled: Memory) -> None:
    values = {
        "namespace": 3, "entity": "guest 7", "decayed": False, "now": day(0), "half_life": 90, "minimum": 0.1,
        "limit": 100, "weight": 0.5, "source": "Guest 7", "target": "Room 1", "type": "sleeps_in",
    }  # fmt: skip
    assert {"relations_source", "relations_target"} <= indexes(filled, relations.LIST, values).keys()
