"""The commands of the processes of the system, which import nothing from the current folder."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PYTHON = (sys.executable, "-P", "-m")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each child process has a core of its own
NO_DATABASE = {"EBB_DATABASE_URL": ""}  # what is not there is not checked, and its driver not loaded
SOFT_STOP = {"REMAP_SIGTERM": "SIGQUIT"}  # Celery lets the task at hand end, for 8 s by our settings


@dataclass(frozen=True, slots=True)
class Process:
    """What to execute, and what to add to the environment."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def replace_this(self, environment: Mapping[str, str]) -> None:
        """Become this process, whose own variables come before these."""
        os.execve(self.command[0], self.command, {**os.environ, **environment, **self.environment})  # noqa: S606


def worker(queues: str, concurrency: int, name: str) -> Process:
    """Return a worker of these queues, with so many child processes."""
    options = [f"--queues={queues}", f"--concurrency={concurrency}", f"--hostname={node(name)}"]
    command = [*PYTHON, "workers", "worker", *options, "--without-mingle", "--without-gossip"]
    return Process(command, SOFT_STOP | ONE_THREAD)


def beat(schedule: Path) -> Process:
    """Return beat, which notes in the file `schedule` when it sent what."""
    return Process([*PYTHON, "workers", "beat", f"--schedule={schedule}", "--pidfile="], NO_DATABASE)


def flower(address: str, port: int) -> Process:
    """Return Flower at an address and port of this machine."""
    options = [f"--address={address}", f"--port={port}", "--max_tasks=5000"]
    return Process([*PYTHON, "workers", "flower", *options], NO_DATABASE)


def api(host: str, port: int) -> Process:
    """Return the HTTP API."""
    return Process([*PYTHON, "api.http"], {"EBB_HOST": host, "EBB_PORT": str(port)})


def node(name: str) -> str:
    """Return the name by which Celery knows a worker of this machine."""
    return f"{name}@{os.uname().nodename}"
