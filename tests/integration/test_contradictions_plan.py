"""Plans: contradictions of a key with thousands of facts, and counting them with outdated statistics."""

from typing import Any

from memory import Memory, day

from workers.storage import namespaces
from workers.storage.connection import transaction
from workers.storage.supersession import COUNT_CONTRADICTIONS, FIND_CONTRADICTIONS, MOST_EXAMINED, MOST_OF_ONE

FACTS = """
    with added as (
        insert into facts (namespace, id, text, hash, created_at, valid_from)
        select %(tenant)s, gen_random_uuid(), 'Boat ' || n, decode(lpad(to_hex(n), 64, '0'), 'hex'), now(), now()
        from generate_series(1, 1000) as n
        returning id
    )
    insert into activity (namespace, fact, segment, base, last_seen_at, last_confirmed_at, tier, fidelity, due_at)
    select %(tenant)s, id, 0, 0.5, now(), now(), 1, 32767, now() + interval '30 days' from added
    returning fact
"""


def test_in_a_namespace_that_was_just_filled_only_the_facts_of_pairs_are_read(memory: Memory) -> None:
    memory.add("The harbour.")
    with transaction(memory.context.database_url) as db:
        tenant = namespaces.find(db, "default")
        assert tenant is not None
        given = {"tenant": tenant.id, "namespace": tenant.id, "now": day(0)}
        db.execute("analyze facts, activity")
        db.execute(FACTS, given)
        row = db.execute(f"explain (analyze, buffers, format json) {COUNT_CONTRADICTIONS}", given).fetchone()
        assert row is not None
    assert row[0][0]["Plan"]["Shared Hit Blocks"] < 1_000


OF_ONE_KEY = """
    insert into facts (namespace, id, text, hash, created_at, valid_from, entity, key, value)
    select %(namespace)s, gen_random_uuid(), 'At ' || n || ' it was closed', decode(lpad(to_hex(n), 64, '0'), 'hex'),
        now(), now(), 'door', 'state', 'closed'
    from generate_series(1, 3 * %(examined)s) as n
"""


def read_of_topics(plan: dict[str, Any]) -> int:
    """Return how many rows of the index of topics a plan has read."""
    own = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) if plan.get("Index Name") == "facts_topics" else 0
    return int(own) + sum(map(read_of_topics, plan.get("Plans", [])))


def test_of_a_key_with_thousands_of_facts_of_one_value_the_newest_are_compared(memory: Memory) -> None:
    id_ = memory.add("The door is closed.", entity="door", key="state", value="closed")
    with transaction(memory.context.database_url) as db:
        tenant = namespaces.find(db, "default")
        assert tenant is not None
        given = {"namespace": tenant.id, "ids": [id_], "now": day(0), "most": MOST_OF_ONE, "examined": MOST_EXAMINED}
        db.execute(OF_ONE_KEY, given)
        db.execute("analyze facts")
        row = db.execute(f"explain (analyze, format json) {FIND_CONTRADICTIONS}", given).fetchone()
        assert row is not None
    assert MOST_EXAMINED <= read_of_topics(row[0][0]["Plan"]) <= MOST_EXAMINED + 1
