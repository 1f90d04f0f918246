"""The programs of a running system, supervisord, which keeps them running, and reports of what happens to them."""

import http.client
import os
import re
import resource
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport

from api.up import processes
from api.up.home import Home, State
from api.up.processes import launched, write_private
from workers.errors import UnavailableError

SUPERVISORD = "api.up.supervisord"
WORKERS = ("worker", "maintenance")
SERVERS = ("postgres", "redis")
OWN = (*WORKERS, "beat", "flower", "api")
WORKER_STOP_SECONDS = 15
INTERVAL = 0.5
LAST_WORDS = "ebb: "  # prefix of messages with which our programs refuse to start
# start of our log lines: date, time and level as text, or JSON
LEVEL = re.compile(r'(\S+ \S+ |\{"at": "\S+", "level": ")(?P<level>[A-Z]+)[ "]')
LOUD = ("WARNING", "ERROR", "CRITICAL")
GIVING_UP = (LAST_WORDS, "Traceback ")


@dataclass(frozen=True, slots=True)
class Program:
    """A process to keep running: its command, stop signal and stop timeout."""

    name: str
    command: list[str]
    ending: signal.Signals = signal.SIGTERM
    stop_seconds: int = WORKER_STOP_SECONDS
    environment: Mapping[str, str] = field(default_factory=dict)


AT_ITS_ROOT = ("--unix_socket=", "--url_prefix=", "--certfile=", "--keyfile=")
"""Options of Flower, in place of variables such as FLOWER_URL_PREFIX: `ebb up` waits for it at its address."""


def own(home: Home, *, children: int, port: int) -> list[Program]:
    """Return the workers, beat and Flower."""
    return [
        _program("worker", processes.worker("recall,store", children, "worker")),
        _program("maintenance", processes.worker("maintenance", 2, "maintenance")),
        _program("beat", processes.beat(home.beat / "schedule")),
        _program("flower", processes.flower("127.0.0.1", port, *AT_ITS_ROOT)),
    ]


def api(host: str, port: int, flower_url: str) -> Program:
    """Return the HTTP API, whose dashboard links to Flower."""
    return _program("api", processes.api(host, port), EBB_FLOWER_URL=flower_url)


def _program(name: str, process: processes.Process, **environment: str) -> Program:
    command = launched("KILL", process.command)  # without its supervisor it has no Redis, and would wait for it
    return Program(name, command, environment={**process.environment, **environment})


OPEN_FILES = 1_024
"""File descriptors of each process, unless the system allows fewer; some systems begin with 256."""

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
minfds = {files}
minprocs = 1
{user}

[unix_http_server]
file = {control}
chmod = 0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""

# Restarts are unlimited: a worker may fail for hours until its Redis is back. The stop signal goes to the main process
# only, since Celery's children would drop their task; SIGKILL goes to the whole group.
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

# Supervisord stops the groups in reverse order, and the programs of a group together: workers, beat, Flower and API
# have ended before Redis and PostgreSQL are stopped.
GROUP = """
[group:own]
programs = {programs}
priority = 100
"""


def _open_files() -> int:
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if allowed == resource.RLIM_INFINITY else min(OPEN_FILES, allowed)


@dataclass(frozen=True, slots=True)
class Process:
    """A process and its state: running, starting, backoff, stopping, exited, fatal or stopped."""

    name: str
    pid: int | None
    state: str


class StoppingError(UnavailableError):
    """The system is stopping, and answers nothing until it has ended."""


class Supervisor:
    """The supervisord of a home, controlled through its socket."""

    def __init__(self, control: Path) -> None:
        """Set the socket; each question has a connection of its own, so that none is left open."""
        self._url = f"unix://{control}"

    def processes(self) -> list[Process]:
        """Return supervisord itself and its programs, in starting order."""
        found = {each["name"]: each for each in self._ask("getAllProcessInfo")}
        programs = [found[name] for name in (*SERVERS, *OWN) if name in found]
        own = [Process(each["name"], each["pid"] or None, each["statename"].lower()) for each in programs]
        return [Process("supervisor", self._ask("getPID"), "running"), *own]

    def is_stopping(self) -> bool:
        """Return whether it ends its programs at present."""
        try:
            self._ask("getState")
        except UnavailableError as error:
            return isinstance(error, StoppingError)
        return False

    def start(self, name: str) -> None:
        """Start a program without waiting for it."""
        self._ask("startProcess", f"own:{name}" if name in OWN else name, False)

    def _ask(self, method: str, *arguments: object) -> Any:
        try:
            with ServerProxy("http://localhost", SupervisorTransport(serverurl=self._url)) as proxy:
                return getattr(proxy.supervisor, method)(*arguments)
        except (OSError, http.client.HTTPException, Fault) as error:
            if isinstance(error, Fault) and error.faultCode == Faults.SHUTDOWN_STATE:
                raise StoppingError("Ebb is stopping: try again in a few seconds.") from None
            raise UnavailableError(f"supervisord does not answer ({method}: {error}).") from None


def configure(home: Home, programs: Sequence[Program]) -> None:
    """Write supervisord's configuration; secrets are passed in the environment instead."""
    paths = {"folder": home.folder, "logs": home.logs, "control": home.control}
    user = "user = root" if os.geteuid() == 0 else ""  # prevents a warning about running as root
    parts = [CONFIGURATION.format(user=user, files=_open_files(), **paths)]
    parts += [
        PROGRAM.format(
            name=program.name,
            command=shlex.join(program.command).replace("%", "%%"),
            priority=priority,
            signal=program.ending.name.removeprefix("SIG"),
            stop_seconds=program.stop_seconds,
            environment=",".join(f'{name}="{value}"' for name, value in program.environment.items()).replace("%", "%%"),
            **paths,
        )
        for priority, program in enumerate(programs)
    ]
    parts.append(GROUP.format(programs=",".join(OWN)))
    write_private(home.configuration, "".join(parts))


def spawn(home: Home, environment: Mapping[str, str], *, detached: bool) -> subprocess.Popen[bytes]:
    """Start supervisord in its own session; unless detached, it ends with this process."""
    command = [*processes.PYTHON, SUPERVISORD, "--configuration", str(home.configuration)]
    with (home.logs / "supervisord.out").open("wb") as output:
        return subprocess.Popen(
            command if detached else launched("TERM", command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


@dataclass(frozen=True, slots=True)
class System:
    """A system started by this process: its home, addresses and supervisord."""

    home: Home
    state: State
    process: subprocess.Popen[bytes]
    supervisor: Supervisor
    log_sizes: Mapping[str, int]
    ready: list[Process] = field(default_factory=list)
    first: dict[str, int] = field(default_factory=dict)
    """Process IDs that programs were first seen with."""

    def restarted(self, process: Process) -> bool:
        """Return whether the program has another process than when it was first seen: that one has ended."""
        return process.pid is not None and self.first.setdefault(process.name, process.pid) != process.pid

    def said(self, name: str) -> str:
        """Return what a program reported when it gave up: its last message, else the end of its log."""
        log = self.home.logs / f"{name}.log"
        if not log.exists():
            return "nothing"
        with log.open("rb") as file:
            file.seek(self.log_sizes.get(name, 0))
            lines = file.read().decode(errors="replace").splitlines()
        own = [line.removeprefix(LAST_WORDS) for line in lines if line.startswith(LAST_WORDS)]
        return own[-1] if own else "\n".join(lines[-20:])


@dataclass(slots=True)
class Log:
    """A log file that is read on from the last position."""

    path: Path
    offset: int = 0
    loud: bool = False

    def warnings(self) -> Iterator[str]:
        """Yield new lines of warnings and errors, with their continuation lines."""
        with suppress(FileNotFoundError), self.path.open("rb") as file:  # not written yet, or just rotated
            if os.fstat(file.fileno()).st_size < self.offset:  # rotated
                self.offset = 0
            file.seek(self.offset)
            for line in file:
                self.offset += len(line)
                text = line.decode(errors="replace").rstrip()
                begin = LEVEL.match(text)
                self.loud = begin["level"] in LOUD if begin else self.loud or text.startswith(GIVING_UP)
                if self.loud and text:
                    yield text


def watch(system: System, report: Callable[[str, str], None]) -> None:
    """Report events until the supervisor ends, by `ebb down` or a signal."""
    logs = {name: _at_end(system.home.logs / f"{name}.log") for name in OWN}
    last = system.ready
    while not _ended(system.process):
        for name, log in logs.items():
            for line in log.warnings():
                report(name, line)
        try:
            now = system.supervisor.processes()
        except UnavailableError:  # it is shutting down
            continue
        for process in now:
            if process not in last:
                report(process.name, f"is {process.state}" + (f" as pid {process.pid}" if process.pid else ""))
        last = now


def _at_end(path: Path) -> Log:
    return Log(path, path.stat().st_size if path.exists() else 0)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait one interval for the process to end; return whether it did."""
    try:
        process.wait(INTERVAL)
    except subprocess.TimeoutExpired:
        return False
    return True
