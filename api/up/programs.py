"""The programs that make up a running Ebb, in the order in which they start."""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from api.up.home import Home
from api.up.privileges import launched
from api.up.servers import Postgres, Redis
from workers.settings import Settings

WORKERS = ("worker", "maintenance")
SERVERS = ("postgres", "redis")
OWN = (*WORKERS, "beat", "flower", "api")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # each child process has a core of its own
SOFT_STOP = "SIGQUIT"  # Celery lets the task at hand end, for 8 s by our settings
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


def celery(home: Home, settings: Settings, *, children: int, port: int) -> list[Program]:
    """Return the workers, beat and Flower."""
    return [
        _worker("worker", "recall,store", children, settings),
        _worker("maintenance", "maintenance", 2, settings),
        Program("beat", _celery(settings, "beat", f"--schedule={home.beat / 'schedule'}", "--pidfile=")),
        Program(
            "flower",
            _celery(settings, "flower", "--address=127.0.0.1", f"--port={port}", "--max_tasks=5000"),
        ),
    ]


def api(host: str, port: int, flower_url: str) -> Program:
    """Return the HTTP API, which tells people where Flower is."""
    command = launched("KILL", [sys.executable, "-m", "api.http"])
    environment = {"EBB_HOST": host, "EBB_PORT": str(port), "EBB_FLOWER_URL": flower_url}
    return Program("api", command, environment=environment)


def _worker(name: str, queues: str, children: int, settings: Settings) -> Program:
    options = [f"--queues={queues}", f"--concurrency={children}", f"--hostname={node(name)}"]
    command = _celery(settings, "worker", *options, "--without-mingle", "--without-gossip")
    return Program(name, command, environment={"REMAP_SIGTERM": SOFT_STOP} | ONE_THREAD)


def _celery(settings: Settings, *arguments: str) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "workers",
        *(["--quiet"] if settings.log_format == "json" else []),
        *arguments,
        f"--loglevel={settings.log_level}",
    ]
    return launched("KILL", command)  # whoever lost its supervisor has lost Redis too, and would wait for it


def node(name: str) -> str:
    """Return the name by which Celery knows a worker of this machine."""
    return f"{name}@{os.uname().nodename}"
