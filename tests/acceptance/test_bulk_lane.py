"""The bulk lane in a running system: large batches in slices, costly recalls in turn, and kills in between."""

import json
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4, uuid5

import pytest
from celery.exceptions import TaskRevokedError
from databases import CITUS_URL, ON_ONE_SHARD
from live_system import SHORTEST_PAUSE, LiveSystem, eventually, kill_child

from workers.clock import UNTIL
from workers.coordination import bulk, outbox
from workers.coordination.bulk import Batch, Slice
from workers.coordination.redis import open_redis
from workers.errors import InvalidInputError
from workers.queues import MAINTENANCE, lists_of

pytestmark = pytest.mark.acceptance


def stones(count: int) -> list[dict[str, str]]:
    return [{"id": str(uuid4()), "text": f"Stone number {i} of {uuid4()} is grey."} for i in range(count)]


def test_batches_of_two_namespaces_are_answered_in_order_and_leave_nothing_behind(
    live: LiveSystem, namespace: str
) -> None:
    facts = {name: stones(650) for name in (namespace, f"{namespace}-b")}
    with live.client(namespace) as client:
        sent = {name: client.send_many(own, namespace=name) for name, own in facts.items()}
        for name, own in facts.items():
            answers = client.wait(sent[name], 120)["results"]
            assert [one["id"] for one in answers] == [one["id"] for one in own]
            assert {one["action"] for one in answers} == {"added"}
    eventually(lambda: bulk.waiting(live.own_keys) == {"batches": 0, "bytes": 0}, "the lane is empty")


def test_a_batch_accepted_for_another_namespace_than_the_clients_leaves_the_outbox(
    live: LiveSystem, namespace: str
) -> None:
    facts = stones(450)
    with live.client(namespace) as client:
        client.store_many(facts, namespace=f"{namespace}-b", wait=False)
        eventually(lambda: outbox.held(live.own_keys, namespace) == 0, "the batch is done")
        assert client.stats(namespace=f"{namespace}-b")["facts"] == len(facts)


def test_a_bad_fact_of_a_later_slice_is_named_by_its_place_in_the_batch(live: LiveSystem, namespace: str) -> None:
    facts = [*stones(450), {"text": ""}]
    with live.client(namespace) as client:
        answers = client.store_many(facts)["results"]
    assert answers[450]["index"] == 450
    assert [i for i, one in enumerate(answers) if "error" in one] == [450]


@pytest.mark.slow
def test_a_child_killed_at_each_slice_loses_and_doubles_none(idle: LiveSystem) -> None:
    idle.start("worker")
    idle.own_keys.set(bulk.ASKED, 1)  # while callers wait, each slice runs separately
    facts = stones(1_000)
    with idle.client() as client:
        sent = client.send_many(facts)
        for _ in range(3):
            found = eventually(lambda: idle.active("memory.slice"), "a child works on a slice", SHORTEST_PAUSE)
            kill_child(int(found[0]["worker_pid"]))
        answers = client.wait(sent, 120)["results"]
    assert [one["id"] for one in answers] == [one["id"] for one in facts]
    assert idle.rows("select count(*), count(distinct text) from facts") == [(1_000, 1_000)]


def test_costly_recalls_take_turns_and_the_error_for_too_costly_ones_names_the_limit(
    live: LiveSystem, namespace: str
) -> None:
    with live.client(namespace) as client:
        client.store_many(stones(300))
        found = client.recall("Which stone is grey?", limit=300, explain=True, touch=True)
        assert len(found["results"]) > 60
        with pytest.raises(InvalidInputError, match=r"limit: 1000 facts, each explained.*_COST=5000.*at most 625"):
            client.recall("grey " * 1_600, limit=1_000, explain=True)
    eventually(lambda: bulk.waiting(live.own_keys) == {"batches": 0, "bytes": 0}, "the lane is empty")


def test_a_batch_whose_worker_ended_before_it_answered_is_answered_by_its_next_delivery(idle: LiveSystem) -> None:
    facts, task_id, answers = stones(450), str(uuid4()), [{"id": str(number)} for number in range(450)]
    batch = Batch(task_id, "memory.store_many", "default", {})
    bulk.join(idle.own_keys, batch, [facts[:200], facts[200:400], facts[400:]])
    bulk.advance(idle.own_keys, Slice(batch, 0, facts, count=3), answers)
    idle.start("worker")
    assert idle.send("memory.store_many", {"facts": facts, "namespace": "default"}, task_id).get() == {
        "results": answers
    }
    eventually(lambda: bulk.waiting(idle.own_keys) == {"batches": 0, "bytes": 0}, "the lane is empty")
    assert not idle.own_keys.exists(bulk.BATCH + task_id)


def test_an_import_that_was_dropped_as_its_caller_gave_up_is_done_when_it_is_sent_again(idle: LiveSystem) -> None:
    task_id, given = str(uuid4()), {"records": stones(30), "namespace": "default"}
    idle.own_keys.zadd(bulk.RUNNING, {f"other {number}": time.time() + 75 for number in range(9)})
    idle.start("worker")
    until = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    idle.control.send_task("memory.bring_back", kwargs=given, task_id=task_id, headers={UNTIL: until})
    eventually(lambda: bulk.waiting(idle.own_keys)["batches"] == 10, "the import waits for a slot")
    time.sleep(2)
    idle.own_keys.delete(bulk.RUNNING)
    eventually(lambda: bulk.waiting(idle.own_keys) == {"batches": 0, "bytes": 0}, "it is dropped")
    assert len(idle.send("memory.bring_back", given, task_id).get()["results"]) == 30


def test_a_recall_that_is_revoked_while_it_has_a_slot_releases_it(idle: LiveSystem) -> None:
    idle.start("worker")
    batch = Batch(str(uuid4()), "memory.recall", "default", {"query": "Which stone is grey?", "namespace": "default"})
    idle.control.control.revoke(batch.id)
    bulk.join(idle.own_keys, batch, [], bounded=False)
    eventually(lambda: f"Discarding revoked task: memory.recall[{batch.id}]" in idle.logs(), "it is dropped")
    eventually(lambda: bulk.waiting(idle.own_keys)["batches"] == 0, "its slot is free")


def test_an_accepted_batch_that_is_revoked_while_it_waits_is_not_stored(idle: LiveSystem) -> None:
    idle.own_keys.zadd(bulk.RUNNING, {f"other {number}": time.time() + 75 for number in range(9)})
    idle.start("worker")
    with idle.client() as client:
        task_id = client.accept("memory.store_many", {"facts": stones(450), "namespace": "default"})
        eventually(lambda: bulk.waiting(idle.own_keys)["batches"] == 10, "the batch waits for a slot")
        idle.revoke(task_id)
        idle.own_keys.delete(bulk.RUNNING)
        eventually(lambda: bulk.waiting(idle.own_keys) == {"batches": 0, "bytes": 0}, "it is dropped")
        assert outbox.held(idle.own_keys, "default") == 0
        state = client.state(task_id)
        assert state is not None
        assert state["state"] == "failed"
    assert idle.rows("select count(*) from facts") == [(0,)]


def test_a_batch_of_which_a_slice_is_revoked_ends_and_leaves_its_slot(idle: LiveSystem) -> None:
    idle.start("worker")
    idle.own_keys.set(bulk.ASKED, 1)  # while callers wait, each slice runs separately
    task_id = str(uuid4())
    idle.revoke(str(uuid5(UUID(task_id), "slice 1")))
    sent = idle.send("memory.store_many", {"facts": stones(650), "namespace": "default"}, task_id)
    with pytest.raises(TaskRevokedError):
        sent.get()
    eventually(lambda: bulk.waiting(idle.own_keys) == {"batches": 0, "bytes": 0}, "the lane is empty")
    assert idle.rows("select count(*) from facts") == [(200,)]


STATISTICS = "select most_common_vals::text::int[] from pg_stats where tablename = 'facts' and attname = 'namespace'"


@ON_ONE_SHARD
@pytest.mark.skipif(bool(CITUS_URL), reason="statistics are those of each node")
def test_a_large_batch_of_a_new_namespace_has_its_tables_analyzed(idle: LiveSystem) -> None:
    idle.start("all")
    with idle.client() as client:
        client.store_many(stones(30))
        idle.rows("alter table facts set (autovacuum_enabled = off)")
        idle.rows("analyze facts")
        (known,) = idle.rows(STATISTICS)
        client.store_many(stones(1_000), namespace="new")
        eventually(lambda: idle.rows(STATISTICS) != [known], "the planner knows two namespaces")


@ON_ONE_SHARD
@pytest.mark.skipif(bool(CITUS_URL), reason="statistics are those of each node")
def test_many_slices_of_a_new_namespace_ask_for_one_analysis(idle: LiveSystem) -> None:
    """No worker takes maintenance: what is asked for stays in the queue."""
    idle.start("worker")
    with idle.client() as client:
        client.store_many(stones(30))
        idle.rows("alter table facts set (autovacuum_enabled = off)")
        idle.rows("analyze facts")
        client.store_many(stones(2_000), namespace="new")
    with open_redis(idle.redis_url) as queues:
        waiting = [json.loads(one) for name in lists_of(MAINTENANCE) for one in queues.lrange(name, 0, -1)]
    assert [one["headers"]["task"] for one in waiting].count("memory.analyze") == 1
