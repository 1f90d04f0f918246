"""Forked processes of the tests are like started ones: environment, output, session, exit status and signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import prepared
import pytest
from live_system import clean_environment, eventually

pytestmark = pytest.mark.acceptance

HEARTBEAT = ["workers.heartbeat"]
AWAY = {"EBB_DATABASE_URL": "postgresql://127.0.0.1:1/ebb", "EBB_REDIS_URL": "redis://127.0.0.1:1/0"}


@pytest.mark.parametrize("outside", [{}, {"LANGUAGE": "la"}], ids=["forked", "started"])
def test_output_and_exit_status_of_a_process_arrive(tmp_path: Path, outside: dict[str, str]) -> None:
    """A process with another environment than the tests' is started, since modules may have read it."""
    said = []
    for given, status in (({**AWAY, "EBB_SHARDS": "many"}, 1), (AWAY, 0)):
        with (tmp_path / "log").open("wb") as log:
            process = prepared.start(HEARTBEAT, clean_environment(given) | outside, log)
        assert process.wait() == process.poll() == process.returncode == status
        assert isinstance(process, subprocess.Popen) == bool(outside)
        said.append((tmp_path / "log").read_text())
    assert "EBB_SHARDS='many' is not allowed" in said[0]
    assert "Redis does not answer" in said[1]


def test_a_forked_process_gets_signals_and_has_a_session_of_its_own(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = prepared.start(["http.server", "0"], clean_environment({}), log, new_session=True)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    eventually(lambda: os.getsid(process.pid) == process.pid, "it has a session of its own")
    process.terminate()
    assert process.wait() == -signal.SIGTERM
    process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_forked_process_ends_with_the_one_it_was_forked_from(tmp_path: Path) -> None:
    """Tests that are interrupted stop nothing that they started."""
    own = prepared.Source()
    with (tmp_path / "log").open("wb") as log:
        process = own.fork(["http.server", "0"], clean_environment({}), [log, log], new_session=True)
    eventually(lambda: Path(f"/proc/{process.pid}").exists(), "it runs")
    own.close()
    eventually(lambda: not Path(f"/proc/{process.pid}").exists(), "it ended")
