"""What `ebb up` asks while its processes start."""

import pytest

from api.up import servers, starting


@pytest.mark.parametrize(
    "address",
    ["redis://:password@127.0.0.1:{0}/0", "sentinel://:password@127.0.0.1:{0},127.0.0.1:{0}/0?master_name=main"],
)
def test_no_worker_answers_while_redis_is_away(address: str) -> None:
    assert not starting.workers_answer(address.format(servers.free_port()))
