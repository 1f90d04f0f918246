"""A page costs what it shows, and a change what it changes, not what the namespace holds."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ebb.contract.recall import Filters, Lookup
from ebb.contract.retention import ShowHistory
from memory import Memory, day
from psycopg.types.json import Jsonb
from test_planner import rows_read

from workers.admin import search_indexes
from workers.core.arrays import Key
from workers.decay import forget_limit
from workers.memory import history, recall
from workers.storage import candidates, documents, events, imports, limits, subjects, supersession, visible
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, connect
from workers.storage.subjects import Subject

FACTS = 1_000
PAGE = 10

FILL = """
    insert into facts (namespace, id, text, hash, tags, entity, key, value, created_at, valid_from)
    select %(namespace)s, gen_random_uuid(), 'Crate ' || i, sha256(i::text::bytea),
        case when i <= 3 then '{rare}'::text[] else '{}' end, 'Crate ' || i / 2, 'holds', i::text,
        %(now)s::timestamptz + i * interval '1 second', %(now)s
    from generate_series(1, %(facts)s) as i
"""

ACTIVITY = """
    insert into activity (namespace, fact, segment, base, last_seen_at, last_confirmed_at, tier, fidelity, due_at)
    select namespace, id, 0, 0.5, %(now)s, %(now)s, 1, 1, %(now)s::timestamptz + interval '30 days'
    from facts where namespace = %(namespace)s
    on conflict do nothing
"""

CONTRADICTIONS = """
    insert into contradictions (namespace, fact, other, found_at)
    select namespace, least(one.id, two.id), greatest(one.id, two.id), one.created_at
    from facts as one join facts as two using (namespace, entity)
    where namespace = %(namespace)s and one.created_at < two.created_at
"""


@pytest.fixture
def filled(twin: Memory) -> Memory:
    """Return a memory of a thousand facts, each of which contradicts another one."""
    twin.add("The harbour.")
    given = {"namespace": 1, "facts": FACTS, "now": day(0)}
    with connect(twin.context.database_url) as db:
        for statement in (FILL, ACTIVITY, CONTRADICTIONS):
            db.execute(statement, given)
    with connect(twin.context.database_url, autocommit=True) as db:
        db.execute("vacuum (analyze)")
    return twin


def test_a_page_of_contradictions_reads_the_facts_of_its_pairs_alone(filled: Memory) -> None:
    first: dict[str, Any] = dict.fromkeys(("found_at", "fact", "other"))
    given = {"namespace": 1, "now": day(1), "limit": PAGE}
    assert rows_read(filled, supersession.CONTRADICTIONS, given | first) <= FACTS / 2 + 4 * PAGE


@pytest.mark.parametrize("subject", [Subject({"tag": "rare"}), Subject({}, ["crate", "7"])])
def test_the_facts_of_a_tag_or_of_words_are_looked_up_for_forgetting(filled: Memory, subject: Subject) -> None:
    given = subject.parameters(1, day(1))
    assert rows_read(filled, subjects.IDS, given) <= 3


def test_whether_a_word_is_a_name_is_seen_in_its_first_facts(filled: Memory) -> None:
    given = {"namespace": 1, "candidates": "'crate'", "limit": PAGE} | Scope(day(1)).parameters
    assert rows_read(filled, candidates.TEXTS_CONTAINING, given) <= PAGE + 1


def test_other_spellings_of_two_names_are_looked_for_together(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.store("Katarina met Sofia.", "Mohammed met Philip.", *(f"Crate {i}." for i in range(20)))
    search_indexes.count_lexemes(memory.context, "default", day(0))
    ask_texts, steps = candidates.ask_texts, list[str]()

    def ask(*arguments: Any) -> Callable[[], list[str]]:
        steps.append("sent")
        read = ask_texts(*arguments)

        def waited() -> list[str]:
            steps.append("waited")
            return read()

        return waited

    monkeypatch.setattr(candidates, "ask_texts", ask)
    found = memory.ask("Did Catarina meet Muhamed?", limit=2).results
    assert {one.text for one in found} == {"Katarina met Sofia.", "Mohammed met Philip."}
    assert steps == ["sent"] * 4 + ["waited"] * 4


@pytest.mark.parametrize("entity", ["crate 7", "nothing"])
def test_a_page_of_an_entity_reads_its_facts_alone(filled: Memory, entity: str) -> None:
    scope = Scope(day(1), Filters(entity=entity))
    given = {"namespace": 1, "limit": PAGE, "offset": 0} | scope.parameters | visible.FIRST
    with connect(filled.context.database_url) as db:
        assert len(visible.page(db, 1, scope, PAGE)) == (2 if entity == "crate 7" else 0)
    assert rows_read(filled, visible.PAGE_OF_ENTITY, given) <= 4


def test_a_page_of_a_lookup_reads_the_facts_of_its_page_alone(filled: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.rows("update facts set entity = 'Harbour' where text like 'Crate%%'")
    read, asked = candidates.read, list[int]()

    def counted(db: Connection, namespace: int, ids: Sequence[Key], *arguments: Any) -> Any:
        asked.append(len(ids))
        return read(db, namespace, ids, *arguments)

    monkeypatch.setattr(candidates, "read", counted)
    results, cursor = recall.lookup(filled.context, Lookup(entity="harbour", limit=PAGE), day(1))
    more, _ = recall.lookup(filled.context, Lookup(entity="harbour", limit=PAGE, cursor=cursor), day(1))
    numbers = range(FACTS, FACTS - 2 * PAGE, -1)
    assert [one.text for one in (*results, *more)] == [f"Crate {number}" for number in numbers]
    assert asked == [PAGE, PAGE]


def test_a_page_of_history_fetches_the_events_of_its_page_alone(
    filled: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (id_,) = filled.rows("select id from facts where text = 'Crate 7'")[0]
    happened = "insert into events (namespace, fact, at, what) select 1, %s, %s, 'pinned' from generate_series(1, 99)"
    filled.rows(happened, id_, day(1))
    of, fetched = events.of, list[int]()

    def counted(*arguments: Any) -> list[Any]:
        found = of(*arguments)
        fetched.append(len(found))
        return found

    monkeypatch.setattr(events, "of", counted)
    first = history.history(filled.context, ShowHistory(id=id_, limit=PAGE), day(2))
    second = history.history(filled.context, ShowHistory(id=id_, limit=PAGE, cursor=first.next), day(2))
    assert [len(first.events), len(second.events)] == [PAGE, PAGE]
    assert max(fetched) <= 2 * PAGE


def test_a_page_of_items_reads_the_decay_state_of_its_items_alone(filled: Memory) -> None:
    filled.rows(
        """
        update facts set kind = 'item', entity = '"users"/', metadata = '{"document": "{}", "indexed": true}'
        where text like 'Crate%%'
        """
    )
    filled.rows("analyze facts")
    given = {"namespace": 1, "prefix": '"users"/', "key": None, "now": day(1), "limit": PAGE, "whole": True}
    assert rows_read(filled, documents.ITEMS_BELOW, given) <= FACTS + 4 * PAGE


def test_what_is_still_held_is_counted_once_at_the_end(filled: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    count_held = limits.count_held

    def count(db: Connection, namespace: int) -> int:
        counted.append(namespace)
        return count_held(db, namespace)

    filled.rows("update activity set held = true, ends_at = %s", day(1))
    monkeypatch.setattr(limits, "count_held", count)
    monkeypatch.setattr(forget_limit, "BATCH", FACTS // 4)
    done = forget_limit.let_go(filled.context, "default", None, day(2), float("inf"))
    assert (len(done.ids), counted) == (FACTS + 1, [1])


def test_new_entries_of_a_history_are_compared_with_the_known_ones_in_one_reading(filled: Memory) -> None:
    happened = "insert into events (namespace, fact, at, what) select 1, id, %s, 'used' from facts"
    filled.rows(happened, day(1))
    filled.rows("analyze events")  # so that PostgreSQL expects few of each fact
    (id_,) = filled.rows("select id from facts where text = 'Crate 7'")[0]
    filled.rows(f"{happened}, generate_series(1, {FACTS}) where id = %s", day(1), id_)
    entry = {"fact": str(id_), "at": day(2).isoformat(), "what": "pinned"}
    rows = Jsonb([entry | {"details": {"number": number}} for number in range(PAGE)])
    given = {"namespace": 1, "rows": rows, "uses": [*events.USES]}
    assert rows_read(filled, imports.ADD_FURTHER_EVENTS, given) <= 3 * FACTS


def test_imported_links_are_looked_up_without_the_others_of_their_facts(filled: Memory) -> None:
    (id_,) = filled.rows("select id from facts where text = 'Crate 7'")[0]
    linked = (
        "insert into links (namespace, source, target, type, created_at) select 1, %s, id, 'CAUSED_BY', %s from facts"
    )
    filled.rows(f"{linked} where id <> %s", id_, day(1), id_)
    filled.rows("analyze links")
    others = [other for (other,) in filled.rows("select id from facts where text like 'Crate 1_'")]
    given = {"namespace": 1, "sources": [id_] * len(others), "targets": others}
    assert rows_read(filled, imports.LINKED, given) == len(others)
