"""Scheduled hygiene runs in the documented order or not at all: consolidation, janitor, review by an LLM."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from live_system import LiveSystem, eventually
from llm import answering, question
from stand_in import StandIn, serving

from api.client import Client
from workers.coordination.redis import open_redis
from workers.queues import length_of

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

MOVED = "Mira moved to Leipzig and rents a flat near the canal"
HAS_MOVED = "Mira has moved to Leipzig and rents a flat near the canal"
RUNS = "select coalesce(sum(total_runs), 0)::int from janitors"


def doubtful(client: Client) -> str:
    """Store a fact with too low a confidence; return its id."""
    long_ago = (datetime.now(UTC) - timedelta(days=300)).isoformat()
    rumour = {"text": "A rumour.", "confidence": 0.2, "last_seen_at": long_ago}
    (stored,) = client.store_many([rumour], classify=False)["results"]
    return str(stored["id"])


@pytest.fixture
def llm() -> Iterator[StandIn]:
    """An LLM that finds nothing redundant."""
    with serving(StandIn(answering(lambda _: {"forget": []}))) as server:
        yield server


@pytest.fixture
def reviewed(idle: LiveSystem, llm: StandIn) -> LiveSystem:
    """A system, not started yet, in which an LLM reviews the remaining facts."""
    idle.settings |= {
        "EBB_LLM_URL": llm.url, "EBB_PRUNE_BY_LLM": "true", "EBB_PRUNE_THRESHOLD": "2", "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    return idle


def shown(llm: StandIn) -> list[list[str]]:
    """Return the texts of each request."""
    return [sorted(fact["text"] for fact in question(one)["facts"]) for one in llm.requests]


def fill(system: LiveSystem) -> None:
    """Store two near-duplicates, another fact, and one with too low a confidence."""
    with system.client() as client:
        client.store_many([{"text": text} for text in (MOVED, HAS_MOVED, "Tea is at four.")])
        doubtful(client)


def test_consolidation_runs_first_then_the_janitor_and_the_llm_reviews_the_rest(
    reviewed: LiveSystem, llm: StandIn
) -> None:
    reviewed.settings |= {"EBB_CONSOLIDATE_APPLY": "true"}
    reviewed.start("all")
    fill(reviewed)
    for _ in range(2):
        reviewed.send("memory.consolidate_all", {})
    eventually(lambda: llm.requests, "the LLM is asked")
    reviewed.settle()
    assert shown(llm) == [[MOVED, "Tea is at four."]]
    gone = "select forgotten_reason from facts where forgotten_at is not null order by 1"
    assert reviewed.rows(gone) == [("culled",), ("merged",)]
    assert reviewed.rows(RUNS) == [(1,)]


def test_nothing_is_merged_by_default_or_tidied_with_the_manual_schedule(reviewed: LiveSystem, llm: StandIn) -> None:
    reviewed.settings |= {"EBB_HYGIENE_SCHEDULE": "manual"}
    reviewed.start("all")
    fill(reviewed)
    reviewed.send("memory.consolidate_all", {})
    eventually(lambda: llm.requests, "the LLM is asked")
    reviewed.settle()
    assert reviewed.rows(RUNS) == [(0,)]
    assert reviewed.rows("select count(*) from likenesses") == [(1,)]
    assert reviewed.rows("select count(*) from facts where forgotten_at is not null") == [(0,)]
    with reviewed.client() as client:
        assert client.janitor()["lastCulledFacts"] == 1


@pytest.mark.parametrize("chosen_by", ["the operator", "the namespace"])
def test_on_capture_thousands_of_stores_send_one_janitor(idle: LiveSystem, chosen_by: str) -> None:
    if chosen_by == "the operator":
        idle.settings |= {"EBB_HYGIENE_SCHEDULE": "onCapture"}
    idle.start("all")
    with idle.client() as client:
        if chosen_by == "the namespace":
            client.settings(set={"hygiene.schedule": "onCapture"})
        rumour = doubtful(client)
        for number in range(40):
            client.store(f"Guest {number} has tea.")
        client.store_many([{"text": f"Guest {number} has cake."} for number in range(1_000)])
        snapshot = eventually(
            lambda: client.janitor_snapshot().get("lastRunAt") and client.janitor_snapshot(), "it came"
        )
    idle.settle()
    assert snapshot["lastCulledFactIds"] == [rumour]
    assert idle.rows(RUNS) == [(1,)]
    assert idle.begun()["memory.janitor"] == 1


def test_the_namespaces_of_a_consolidation_wait_in_the_queue_a_hundred_at_a_time(idle: LiveSystem) -> None:
    idle.start("all")
    names = [f"resident-{number}" for number in range(120)]
    for name in names:
        idle.send("memory.store", {"text": "Mira moved to Leipzig.", "namespace": name})
    idle.settle()
    with psycopg.connect(idle.database_url) as db, open_redis(idle.redis_url) as queues:
        db.execute("lock table activity in share mode")  # each waits before its first write
        idle.send("memory.consolidate_all", {})
        eventually(lambda: len(idle.active("memory.consolidate")) == 2, "all children wait")
        assert length_of(queues, "maintenance") <= 100
        db.rollback()
    assert idle.begun_when_idle()["memory.consolidate"] >= len(names) + 1, "and one for the rest; some are tried again"
    assert idle.rows("select count(*) from activity where not compared") == [(0,)]
