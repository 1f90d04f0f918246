"""How processes start: their commands, which import nothing from the current folder, and the users that they run as."""

import errno
import os
import pwd
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from api.up import launch
from workers import ONE_THREAD
from workers.errors import UnavailableError
from workers.settings import Settings

POSTGRES_USER = "pgserver"
PYTHON = (sys.executable, "-P", "-m")
NO_DATABASE = {"EBB_DATABASE_URL": ""}  # without a URL the driver is not loaded
WARNS_ONLY = {"PYTHONWARNINGS": ""}  # a warning of a package ends no process, whatever is set for this one
SOFT_STOP = {"REMAP_SIGTERM": "SIGQUIT"}  # Celery lets the current task finish, for at most 8 s


@dataclass(frozen=True, slots=True)
class Process:
    """A command and additional environment variables."""

    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def replace_this(self, settings: Settings) -> None:
        """Replace the current process; the process's own variables override the addresses of the settings."""
        urls = {"EBB_DATABASE_URL": settings.database_url, "EBB_REDIS_URL": settings.redis_url}
        os.execve(self.command[0], self.command, {**os.environ, **WARNS_ONLY, **urls, **self.environment})


def worker(queues: str, concurrency: int, name: str) -> Process:
    """Return a worker of these queues with that many child processes."""
    options = [f"--queues={queues}", f"--concurrency={concurrency}", f"--hostname={node(name)}"]
    command = [*PYTHON, "workers", "worker", *options, "--without-mingle", "--without-gossip"]
    return Process(command, SOFT_STOP | ONE_THREAD)


def beat(schedule: Path) -> Process:
    """Return beat with its schedule file."""
    return Process([*PYTHON, "workers", "beat", f"--schedule={schedule}", "--pidfile="], NO_DATABASE)


def flower(address: str, port: int, *more: str) -> Process:
    """Return Flower with `more` options, listening on an address and port."""
    options = [f"--address={address}", f"--port={port}", "--max_tasks=5000", *more]
    return Process([*PYTHON, "workers", "flower", *options], NO_DATABASE)


def api(host: str, port: int) -> Process:
    """Return the HTTP API."""
    return Process([*PYTHON, "api.http"], {"EBB_HOST": host, "EBB_PORT": str(port)})


def node(name: str) -> str:
    """Return the Celery node name of a worker on this machine."""
    return f"{name}@{os.uname().nodename}"


def launched(ending: str, command: list[str], user: str | None = None) -> list[str]:
    """Return the command wrapped to run as `user` and to get the signal `ending` when its parent dies."""
    return [sys.executable, "-I", "-S", launch.__file__, ending, user or "-", *command]


def system_user() -> str | None:
    """Return the user for PostgreSQL if we are root, which it refuses; else None."""
    return POSTGRES_USER if os.geteuid() == 0 else None


def grant_access(user: str, owned: Sequence[Path], programs: Path, report: Callable[[str], None]) -> None:
    """Give the user the owned folders with their files, and traversal (not listing) of every folder above these."""
    entry = _ensured(user)
    for folder in owned:
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        if changed := _give(folder, entry):
            report(f"PostgreSQL runs as the user {user}: gave it {changed} files of {folder}")
    if not programs.stat().st_mode & stat.S_IXOTH:
        _open_to_all(programs.parent)
    for above in sorted({above for folder in (*owned, programs) for above in folder.resolve().parents}):
        mode = above.stat().st_mode
        if not mode & stat.S_IXOTH:
            above.chmod(mode | stat.S_IXOTH)
            report(f"PostgreSQL runs as the user {user}: let it pass through {above} (chmod o+x)")


def _give(folder: Path, entry: pwd.struct_passwd) -> int:
    """Give the user what is below a folder, such as a backup that root made; return how much was not its own."""
    foreign = [path for path in folder.rglob("*") if path.lstat().st_uid != entry.pw_uid]
    for path in foreign:
        os.lchown(path, entry.pw_uid, entry.pw_gid)
    return len(foreign)


def _open_to_all(programs: Path) -> None:
    """Make files that pip installed under a strict umask readable and executable for all users."""
    for path in (programs, *programs.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _ensured(user: str) -> pwd.struct_passwd:
    """Return the system user's entry; create the user first if necessary."""
    command = ["useradd", "--system", "--no-create-home", "--home-dir=/", "--shell=/usr/sbin/nologin", user]
    try:
        return pwd.getpwnam(user)
    except KeyError:
        pass
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        cause = getattr(error, "stderr", None) or error
        raise UnavailableError(
            f"PostgreSQL refuses to run as root, and the user {user} could not be made "
            f"({str(cause).strip()}): make it yourself, run Ebb as an ordinary user, or set EBB_DATABASE_URL."
        ) from None
    return pwd.getpwnam(user)


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether no other program listens at this port; if it cannot be used otherwise, the server says why."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do, so that TIME_WAIT does not matter
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def write_private(path: Path, text: str) -> None:
    """Atomically replace a file by one that only its owner can read."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(new)  # on a full disk it has none
        raise
    new.replace(path)
