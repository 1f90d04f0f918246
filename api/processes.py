"""Commands of the system's processes, which import nothing from the current folder."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PYTHON = (sys.executable, "-P", "-m")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # one core per child process
NO_DATABASE = {"EBB_DATABASE_URL": ""}  # without a URL the driver is not loaded
SOFT_STOP = {"REMAP_SIGTERM": "SIGQUIT"}  # Celery lets the current task finish, for at most 8 s


@dataclass(frozen=True, slots=True)
class Process:
    """A command and additional environment variables."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def replace_this(self, environment: Mapping[str, str]) -> None:
        """Replace the current process; the process's own variables override the given ones."""
        os.execve(self.command[0], self.command, {**os.environ, **environment, **self.environment})  # noqa: S606


def worker(queues: str, concurrency: int, name: str) -> Process:
    """Return a worker of these queues with that many child processes."""
    options = [f"--queues={queues}", f"--concurrency={concurrency}", f"--hostname={node(name)}"]
    command = [*PYTHON, "workers", "worker", *options, "--without-mingle", "--without-gossip"]
    return Process(command, SOFT_STOP | ONE_THREAD)


def beat(schedule: Path) -> Process:
    """Return beat with its schedule file."""
    return Process([*PYTHON, "workers", "beat", f"--schedule={schedule}", "--pidfile="], NO_DATABASE)


def flower(address: str, port: int) -> Process:
    """Return Flower, listening on an address and port."""
    options = [f"--address={address}", f"--port={port}", "--max_tasks=5000"]
    return Process([*PYTHON, "workers", "flower", *options], NO_DATABASE)


def api(host: str, port: int) -> Process:
    """Return the HTTP API."""
    return Process([*PYTHON, "api.http"], {"EBB_HOST": host, "EBB_PORT": str(port)})


def node(name: str) -> str:
    """Return the Celery node name of a worker on this machine."""
    return f"{name}@{os.uname().nodename}"
