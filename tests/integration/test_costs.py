"""A page costs what it shows, and a change what it changes, not what the namespace holds."""

from typing import Any

import pytest
from memory import Memory, day
from test_planner import rows_read

from workers.storage import subjects, supersession
from workers.storage.connection import connect
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
