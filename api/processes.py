"""The commands of the processes of the system, which import nothing from the current folder."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PYTHON = (sys.executable, "-P", "-m")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each child process has a core of its own
SOFT_STOP = {"REMAP_SIGTERM": "SIGQUIT"}  # Celery lets the task at hand end, for 8 s by our settings


@dataclass(frozen=True, slots=True)
class Process:
    """What to execute, and what to add to the environment."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def replace_this(self, environment: Mapping[str, str]) -> None:
        """Become this process, with more variables."""
        os.execve(self.command[0], self.command, os.environ | dict(self.environment) | dict(environment))  # noqa: S606


def worker(queues: str, concurrency: int, name: str) -> Process:
    """Return a worker of these queues, with so many child processes."""
    options = [f"--queues={queues}", f"--concurrency={concurrency}", f"--hostname={node(name)}"]
    command = [*PYTHON, "workers", "worker", *options, "--without-mingle", "--without-gossip"]
    return Process(command, SOFT_STOP | ONE_THREAD)


def beat(schedule: Path) -> Process:
    """Return beat, which notes in the file `schedule` when it sent what."""
    return Process([*PYTHON, "workers", "beat", f"--schedule={schedule}", "--pidfile="])


def flower(address: str, port: int) -> Process:
    """Return Flower at an address and port of this machine."""
    return Process([*PYTHON, "workers", "flower", f"--address={address}", f"--port={port}", "--max_tasks=5000"])


def api(host: str, port: int) -> Process:
    """Return the HTTP API."""
    return Process([*PYTHON, "api.http"], {"EBB_HOST": host, "EBB_PORT": str(port)})


def node(name: str) -> str:
    """Return the name by which Celery knows a worker of this machine."""
    return f"{name}@{os.uname().nodename}"
