"""What `ebb up` asks while its processes start."""

from pathlib import Path

import pytest

from api.up import servers, starting
from api.up.home import Home, State


@pytest.mark.parametrize(
    "address",
    ["redis://:password@127.0.0.1:{0}/0", "sentinel://:password@127.0.0.1:{0},127.0.0.1:{0}/0?master_name=main"],
)
def test_no_worker_answers_while_redis_is_away(address: str) -> None:
    assert not starting.workers_answer(address.format(servers.free_port()))


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("redis://:own-Pass_word@127.0.0.1:{0}/0", True),
        ("redis://elsewhere:{0}/0", False),
        ("sentinel://:password@a:{0},b:{0}/0?master_name=main", False),
    ],
)
def test_the_port_of_ebbs_own_redis_stays_that_of_the_last_run(address: str, is_own: bool, tmp_path: Path) -> None:
    home, port = Home(tmp_path), servers.free_port()
    home.write_state(State("", address.format(port), ""))
    assert (starting._redis_port(home) == port) is is_own
