"""The plan for counting contradictions with outdated statistics."""

from memory import Memory, day

from workers.storage import namespaces
from workers.storage.connection import transaction
from workers.storage.supersession import COUNT_CONTRADICTIONS

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
