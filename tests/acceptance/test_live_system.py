"""The running system of the tests: it is idle only once every message was read."""

import signal

import pytest
from live_system import LiveSystem

pytestmark = pytest.mark.acceptance


def test_a_message_that_no_worker_has_read_is_on_its_way(live: LiveSystem) -> None:
    live.settle()
    assert live.unsettled() == set()
    live.workers["worker"].send_signal(signal.SIGSTOP)
    try:
        live.send("memory.health", {})
        assert live.unsettled() is None
    finally:
        live.workers["worker"].send_signal(signal.SIGCONT)
    live.settle()
    assert live.unsettled() == set()
