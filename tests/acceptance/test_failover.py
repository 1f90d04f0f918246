"""A failover of PostgreSQL: the primary ends under load, and the replica takes over."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from live_system import LiveSystem, eventually
from load import Load, stored, swept
from replication import replicated

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def test_acknowledged_writes_survive_a_failover_of_postgresql_under_load(
    server_folder: Path, redis_url: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        both = stack.enter_context(replicated(server_folder / "failover", eventually))
        both.do("primary", "alter system set synchronous_standby_names = '*'")
        both.do("primary", "select pg_reload_conf()")
        system = LiveSystem(both.both(), redis_url, tmp_path, {"EBB_READ_DATABASE_URL": both.url("replica")})
        stack.callback(system.stop)
        system.start("all")
        with Load(system, wait=True) as answered, Load(system, wait=False) as accepted:
            eventually(lambda: min(len(answered.acknowledged), len(accepted.acknowledged)) > 20, "load")
            both.end("primary")
            both.do("replica", "select pg_promote()")
            before = len(answered.acknowledged), len(accepted.acknowledged)
            eventually(lambda: len(answered.acknowledged) > before[0] + 20, "writes are answered again")
            eventually(lambda: len(accepted.acknowledged) > before[1] + 20, "writes are accepted again")
        eventually(lambda: swept(system), "what was accepted is stored")
        found = stored(system)
        assert len(found) == len(set(found))
        assert answered.acknowledged | accepted.acknowledged <= set(found) <= {*answered.sent, *accepted.sent}
        with system.client() as client:
            assert client.recall(f"Fact {found[0]} stands in the book.")["results"][0]["id"] == found[0]
