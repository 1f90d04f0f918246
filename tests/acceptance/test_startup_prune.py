"""Facts that expired while the system was off are forgotten when workers start, once for all of them."""

from datetime import UTC, datetime, timedelta

import pytest
from databases import RUN_OF_EACH_SHARD
from live_system import LiveSystem, eventually

from workers.context import Context
from workers.coordination import signals
from workers.memory import embed
from workers.memory.store import store_many
from workers.settings import Settings
from workers.validation.facts import new_fact

pytestmark = pytest.mark.acceptance


def expired_while_nothing_ran(system: LiveSystem) -> None:
    context = Context(Settings(database_url=system.database_url))
    embed.check_embedder(context)
    written_at = datetime.now(UTC) - timedelta(days=3)
    given = [{"text": f"A {name} fact.", "decay_class": name} for name in ("checkpoint", "session", "short", "normal")]
    store_many(context, "default", [new_fact(fact, 65_536) for fact in given], written_at)
    context.close()


@RUN_OF_EACH_SHARD
def test_a_starting_worker_forgets_facts_that_expired_while_the_system_was_off(idle: LiveSystem) -> None:
    expired_while_nothing_ran(idle)
    idle.start("all")
    eventually(lambda: "startup prune removed 3 expired facts" in idle.logs(), "the prune is logged")
    assert idle.ebb_json("stats")["forgotten"] == 3
    assert idle.rows("select work, count(*) from decay_runs group by 1") == [("startup prune", 1)]


def test_workers_that_start_together_prune_once(idle: LiveSystem) -> None:
    idle.start("maintenance")
    eventually(lambda: "startup prune removed 0 expired facts" in idle.logs(), "the first prune is logged")
    expired_while_nothing_ran(idle)
    answer = idle.send("decay.prune", {"soft": False, "startup": True, "everywhere": True}).get()
    assert "another worker" in answer["skipped"]
    idle.own_keys.delete(f"{signals.BEGUN}:start")
    again = idle.send("decay.prune", {"soft": False, "startup": True, "everywhere": True}).get()
    assert again["expired"] + again["deleted"] == 3


def test_a_worker_that_does_no_maintenance_prunes_nothing(idle: LiveSystem) -> None:
    idle.start("worker")
    idle.settle()
    assert idle.rows("select count(*) from decay_runs") == [(0,)]
