"""Flower as somebody starts it by hand: on this machine as they like, beyond it only with authentication."""

import subprocess
import sys

import pytest
from live_system import ROOT, LiveSystem, end

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize("options", [[], ["--address=0.0.0.0"], ["--address=::", "--port=0"]])
def test_a_flower_that_everybody_could_look_at_is_refused(idle: LiveSystem, options: list[str]) -> None:
    command = [sys.executable, "-m", "celery", "-A", "workers", "flower", *options]
    ended = subprocess.run(
        command, cwd=ROOT, env=idle.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "not allowed without authentication" in ended.stderr
    assert "--basic-auth" in ended.stderr


@pytest.mark.parametrize("options", [["--address=127.0.0.1"], ["--address=0.0.0.0", "--basic-auth=mira:secret"]])
def test_a_flower_of_this_machine_or_with_authentication_starts(idle: LiveSystem, options: list[str]) -> None:
    command = [sys.executable, "-m", "celery", "-A", "workers", "flower", "--port=0", *options]
    with subprocess.Popen(
        command, cwd=ROOT, env=idle.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as flower:
        assert flower.stderr is not None
        try:
            assert any("Connected to" in line for line in flower.stderr)
        finally:
            end(flower)
