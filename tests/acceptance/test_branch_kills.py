"""A branch whose creation is interrupted by SIGKILL, in a system without other workers."""

import pytest
from live_system import SHORTEST_PAUSE, LiveSystem, eventually, kill_child

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def test_a_branch_whose_worker_is_killed_is_completed(idle: LiveSystem) -> None:
    idle.start("all")
    with idle.client() as client:
        for part in range(4):
            client.store_many([{"text": f"Guest {part} {number} has tea."} for number in range(1_000)], classify=False)
        result = idle.send("memory.branch", {"namespace": client.namespace, "older": "365d"})
        copied = "select count(*) from facts where namespace in (select id from namespaces where branch_of is not null)"
        eventually(lambda: idle.rows(copied)[0][0] > 0, "some are copied", SHORTEST_PAUSE)
        for request in idle.active("memory.branch"):
            kill_child(request["worker_pid"])
        assert result.get()["facts"] == 4_000
        assert client.branches()["branches"][0]["complete"]
        assert client.doctor(everywhere=True)["faults"] == []
