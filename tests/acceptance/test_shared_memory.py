"""What a worker has loaded before it forks stays one for all of its children, collections of garbage included."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from live_system import ROOT, LiveSystem, node

pytestmark = pytest.mark.acceptance

DATABASE = 8
"""Of the same Redis, with the two behind it, so that no other worker takes the task."""


@pytest.fixture
def collecting(live: LiveSystem, tmp_path: Path) -> Iterator[LiveSystem]:
    """Run a worker as `ebb up` does, with one more task, by itself."""
    url = urlsplit(live.redis_url)._replace(path=f"/{DATABASE}").geturl()
    system = LiveSystem(live.database_url, url, tmp_path, live.settings)
    command = [sys.executable, "-m", "celery", "-A", "workers", "worker", "--queues=recall", "--concurrency=1"]
    command += [f"--hostname={node('collecting')}", "--without-mingle", "--without-gossip", "--include=collecting"]
    environment = system.environment() | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])}
    with (tmp_path / "collecting.log").open("ab") as log:
        system.workers["collecting"] = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    yield system
    system.stop()


def test_a_full_collection_in_a_child_copies_little_of_what_its_parent_has_loaded(collecting: LiveSystem) -> None:
    result = collecting.control.send_task("tests.collect", queue="recall")
    sizes = result.get(timeout=60)
    result.forget()
    assert sizes["frozen"] > 100_000
    assert sizes["private"] * 1.5 < sizes["shared"]
