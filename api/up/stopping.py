"""Stop the system of a home, and end processes left behind by a killed one, identified without pid files."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

from api.up import redis_programs
from api.up.home import Home, check_owner
from api.up.supervision import SUPERVISORD, Supervisor
from workers.errors import UnavailableError


def stop_home(home: Home) -> list[str]:
    """Stop everything that runs at this home; return the names of the stopped processes."""
    running = supervisor_of(home)
    names = []
    if running is not None:
        if os.geteuid() and home.folder.exists():  # root may stop it
            check_owner(home.folder)
        names = _names(home)
        end([running], signal.SIGTERM, STOP_SECONDS["supervisor"])
    return names + [name for name in end_leftovers(home) if name not in names]


def _names(home: Home) -> list[str]:
    try:
        return [process.name for process in Supervisor(home.control).processes() if process.pid]
    except UnavailableError:
        return ["supervisor"]


SUPERVISORDS = {SUPERVISORD, "supervisor.supervisord"}
"""Modules of supervisord: this version's, and that of a home which an older one started."""

STOP_SECONDS = {"supervisor": 120.0, "celery": 15.0, "redis": 30.0, "postgres": 60.0}
KILLED_SECONDS, POLL_SECONDS = 10.0, 0.05


def supervisor_of(home: Home) -> psutil.Process | None:
    """Return the running supervisord of this home, if any."""
    configuration = str(home.configuration)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            line = process.cmdline()
            if SUPERVISORDS.intersection(line) and configuration in line and _is_running(process):
                return process
    return _at_control(home)


def _at_control(home: Home) -> psutil.Process | None:
    """Return the supervisord that answers at the home's socket: after the folder was moved, it has another path.

    The socket may be in /tmp, where another user may have made one that names any process.
    """
    try:
        found = psutil.Process(Supervisor(home.control).processes()[0].pid)
        own = home.run.lstat().st_uid == home.folder.stat().st_uid
        return found if own and SUPERVISORDS.intersection(found.cmdline()) else None
    except (UnavailableError, OSError, psutil.Error):
        return None


def end_leftovers(home: Home) -> list[str]:
    """End what a killed supervisord left behind, workers first; return the names of what was ended."""
    ended = []
    for name, belongs in _kinds(home).items():
        ending = signal.SIGINT if name == "postgres" else signal.SIGTERM
        found = _roots(process for process in psutil.process_iter() if _is(process, belongs))
        if found:
            end(found, ending, STOP_SECONDS[name])
            ended.append(name)
    _forget_stale_lock(home)
    return ended


def end(processes: Iterable[psutil.Process], ending: signal.Signals, seconds: float) -> None:
    """Send the signal, wait, and kill the remaining processes with their children."""
    processes = list(processes)
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(ending)
    for process in _remaining(processes, seconds):
        with suppress(psutil.Error):
            for each in (*process.children(recursive=True), process):
                each.kill()
    _remaining(processes, KILLED_SECONDS)


def _remaining(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until the processes have ended, also those that their parent has not reaped; return those that have not."""
    until = time.monotonic() + seconds
    while (alive := [process for process in processes if _is(process, psutil.Process.is_running)]) and (
        time.monotonic() < until
    ):
        time.sleep(POLL_SECONDS)
    return alive


def _kinds(home: Home) -> dict[str, Callable[[psutil.Process], bool]]:
    """Return a test for each kind of process, by inherited environment or data folder."""
    control = f"unix://{home.control}"
    return {
        "celery": lambda process: (
            not process.name().startswith(("postgres", *redis_programs.NAMES))
            and process.environ().get("SUPERVISOR_SERVER_URL") == control
        ),
        "redis": lambda process: (
            process.name().startswith(redis_programs.NAMES) and process.cwd() == os.path.realpath(home.redis)
        ),
        "postgres": lambda process: process.name() == "postgres" and process.cwd() == os.path.realpath(home.postgres),
    }


def _is(process: psutil.Process, belongs: Callable[[psutil.Process], bool]) -> bool:
    """Apply the test; a process that is gone or not accessible is not ours."""
    try:
        return _is_running(process) and belongs(process)
    except (psutil.Error, OSError):
        return False


def _is_running(process: psutil.Process) -> bool:
    return process.status() != psutil.STATUS_ZOMBIE


def _roots(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return the processes whose parent is not among them: a main process stops its children itself."""
    found = list(processes)
    pids = {process.pid for process in found}
    return [process for process in found if process.ppid() not in pids]


def _forget_stale_lock(home: Home) -> None:
    """Remove PostgreSQL's lock files if their process id now belongs to another program.

    PostgreSQL cannot detect that itself. It happens when ids are reused, as in a restarted container, or when a killed
    process is not reaped.
    """
    for file in (home.postgres / "postmaster.pid", home.run / "postgres" / ".s.PGSQL.5432.lock"):
        with suppress(OSError, ValueError, psutil.NoSuchProcess):
            if not _is(psutil.Process(int(file.read_text().splitlines()[0])), _kinds(home)["postgres"]):
                file.unlink()
