"""The programs of a running Ebb in the order in which they start, and supervisord, which keeps them running."""

import http.client
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from api import processes
from api.up.home import Home
from api.up.privileges import launched, write_private
from api.up.servers import Postgres, Redis
from workers.errors import UnavailableError

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


CONFIGURATION = """\
[supervisord]
nodaemon = true
silent = true
umask = 077
directory = {folder}
logfile = {logs}/supervisord.log
logfile_maxbytes = 1MB
logfile_backups = 1
pidfile = {folder}/supervisord.pid
{user}

[unix_http_server]
file = {control}
chmod = 0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""

# A worker that lost its Redis may fail for hours before it can run again: so restarts never end. The signal
# to stop goes to the main process alone, as Celery's children would drop their task at it; SIGKILL goes to all.
PROGRAM = """
[program:{name}]
command = {command}
directory = {folder}
priority = {priority}
autostart = false
autorestart = true
startsecs = 1
startretries = 1000000
stopsignal = {signal}
stopwaitsecs = {stop_seconds}
killasgroup = true
redirect_stderr = true
stdout_logfile = {logs}/{name}.log
stdout_logfile_maxbytes = 10MB
stdout_logfile_backups = 2
environment = {environment}
"""

# Supervisord stops group after group, the last one first, and the programs of one group together: so workers,
# beat, Flower and API are gone before Redis and PostgreSQL are asked to end.
GROUP = """
[group:own]
programs = {programs}
priority = 100
"""


@dataclass(frozen=True, slots=True)
class Process:
    """One process and its state: running, starting, backoff, stopping, exited, fatal or stopped."""

    name: str
    pid: int | None
    state: str


class Supervisor:
    """The supervisord of one home, asked through its control socket."""

    def __init__(self, control: Path) -> None:
        """Connect when the first question is asked."""
        self._proxy = ServerProxy("http://localhost", SupervisorTransport(serverurl=f"unix://{control}"))

    def processes(self) -> list[Process]:
        """Return supervisord itself and its programs, in the order in which they start."""
        found = {each["name"]: each for each in self._ask("getAllProcessInfo")}
        programs = [_process(found[name]) for name in (*SERVERS, *OWN) if name in found]
        return [Process("supervisor", self._ask("getPID"), "running"), *programs]

    def start(self, name: str) -> None:
        """Start a program without waiting for it."""
        self._ask("startProcess", f"own:{name}" if name in OWN else name, False)

    def _ask(self, method: str, *arguments: object) -> Any:
        try:
            return getattr(self._proxy.supervisor, method)(*arguments)
        except (OSError, http.client.HTTPException, Fault) as error:
            raise UnavailableError(f"supervisord does not answer ({method}: {error}).") from None


def _process(found: Mapping[str, Any]) -> Process:
    return Process(found["name"], found["pid"] or None, found["statename"].lower())


def configure(home: Home, programs: Sequence[Program]) -> None:
    """Write supervisord's configuration; it holds no secret, those go through the environment."""
    paths = {"folder": home.folder, "logs": home.logs, "control": home.control}
    user = "user = root" if os.geteuid() == 0 else ""  # says that root is meant, so that it does not warn
    parts = [CONFIGURATION.format(user=user, **paths)]
    parts += [
        PROGRAM.format(
            name=program.name,
            command=shlex.join(program.command).replace("%", "%%"),
            priority=priority,
            signal=program.ending.name.removeprefix("SIG"),
            stop_seconds=program.stop_seconds,
            environment=",".join(f'{name}="{value}"' for name, value in program.environment.items()),
            **paths,
        )
        for priority, program in enumerate(programs)
    ]
    parts.append(GROUP.format(programs=",".join(OWN)))
    write_private(home.configuration, "".join(parts))


def spawn(home: Home, environment: Mapping[str, str], *, detached: bool) -> subprocess.Popen[bytes]:
    """Start supervisord in a session of its own; unless detached it ends with us, however we end."""
    command = [sys.executable, "-m", "supervisor.supervisord", "--configuration", str(home.configuration)]
    with (home.logs / "supervisord.out").open("wb") as output:
        return subprocess.Popen(  # noqa: S603
            command if detached else launched("TERM", command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
