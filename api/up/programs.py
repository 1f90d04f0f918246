"""The programs that make up a running Ebb, in the order in which they start."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from api import processes
from api.up.home import Home
from api.up.privileges import launched
from api.up.servers import Postgres, Redis

WORKERS = ("worker", "maintenance")
SERVERS = ("postgres", "redis")
OWN = (*WORKERS, "beat", "flower", "api")
WORKER_STOP_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Program:
    """One process to keep running: its command, and how it is asked to end and how long that may take."""

    name: str
    command: list[str]
    ending: signal.Signals = signal.SIGTERM
    stop_seconds: int = WORKER_STOP_SECONDS
    environment: Mapping[str, str] = field(default_factory=dict)


def postgres(server: Postgres) -> Program:
    """Return the program of our own PostgreSQL; SIGINT ends sessions, writes a checkpoint and stops."""
    return Program("postgres", server.command(), signal.SIGINT, stop_seconds=60)


def redis(server: Redis) -> Program:
    """Return the program of our own Redis."""
    return Program("redis", server.command(), stop_seconds=30)


def own(home: Home, *, children: int, port: int) -> list[Program]:
    """Return the workers, beat and Flower."""
    return [
        _program("worker", processes.worker("recall,store", children, "worker")),
        _program("maintenance", processes.worker("maintenance", 2, "maintenance")),
        _program("beat", processes.beat(home.beat / "schedule")),
        _program("flower", processes.flower("127.0.0.1", port)),
    ]


def api(host: str, port: int, flower_url: str) -> Program:
    """Return the HTTP API, whose dashboard links to Flower."""
    return _program("api", processes.api(host, port), EBB_FLOWER_URL=flower_url)


def _program(name: str, process: processes.Process, **environment: str) -> Program:
    command = launched("KILL", process.command)  # without its supervisor it has no Redis either, and would wait for it
    return Program(name, command, environment={**process.environment, **environment})
