"""The home of an Ebb system: its folders, its state file, free disk space, and how commands find its servers."""

import fcntl
import hashlib
import json
import os
import pwd
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from api.up.processes import write_private
from workers.errors import SystemStateError, UnavailableError
from workers.settings import Settings

LONGEST_HOME = 103 - len("/run/postgres/.s.PGSQL.5432")  # macOS binds sockets at up to 103 bytes, Linux 107
FLOWER_USER = "ebb"
UNSAFE = ("\n", "\r", "\0", " ;", " #", "%", "\\", '"', "[")
"""What supervisord's configuration cannot carry in a path, and `[`, which Redis takes for a pattern of files."""


@dataclass(frozen=True, slots=True)
class State:
    """Addresses of a running home; URLs contain passwords, so the file is readable by its owner only."""

    database_url: str
    redis_url: str
    flower_url: str
    api_url: str = ""
    flower_password: str = ""


class Home:
    """The folder with all data, logs and sockets of one system; it may be relative or start with `~`."""

    def __init__(self, folder: Path) -> None:
        try:
            self.folder = Path(os.path.abspath(folder.expanduser()))  # noqa: PTH100  keeps symbolic links as given
        except RuntimeError:
            raise SystemStateError(
                f"The home {folder} is not known, because the user that `~` stands for has no home here: "
                "give a path that begins with / by EBB_HOME or --home."
            ) from None
        self.postgres = self.folder / "postgres"
        self.redis = self.folder / "redis"
        self.logs = self.folder / "logs"
        self.beat = self.folder / "beat"
        self.run = _sockets(self.folder)
        self.control = self.run / "control"
        self.configuration = self.folder / "supervisord.conf"
        self.state_file = self.folder / "state.json"

    def prepare(self) -> None:
        """Create the folders, accessible only to their owner.

        Raises:
            SystemStateError: a folder cannot be created or used, or belongs to another user.
        """
        path = str(self.folder)
        if any(part in path for part in UNSAFE) or path != path.strip() or not _is_text(path):
            raise SystemStateError(
                f"The home {path!r} has a line break, ' ;', ' #' or one of %, \\, [ and \" in it, "
                "ends with a space or is not UTF-8: choose another path."
            )
        passable = 0o711 if os.geteuid() == 0 else 0o700  # PostgreSQL's own user must traverse root's folders
        modes = {self.folder: passable, self.run: passable, self.logs: 0o700, self.beat: 0o700}
        for folder, mode in modes.items():
            try:
                folder.mkdir(mode=mode, parents=True, exist_ok=True)
            except OSError as error:
                raise SystemStateError(
                    f"The home {folder} cannot be made: {error.strerror}. Give another with --home."
                ) from None
            check_owner(folder)

    @contextmanager
    def usable(self) -> Iterator[None]:
        """Raise a `SystemStateError` for a file or folder of the home that cannot be used, as on a read-only disk."""
        try:
            yield
        except OSError as error:
            if not str(error.filename).startswith(str(self.folder)):
                raise
            raise SystemStateError(
                explain_full(str(error), self.folder)
                or f"{error.filename2 or error.filename} cannot be used: {error.strerror}. "
                f"Let Ebb write to {self.folder} and all that is in it, or give another home with --home."
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the home against every other `ebb up`; the kernel releases the lock when the process ends."""
        with (self.folder / "lock").open("a+") as file:
            os.fchmod(file.fileno(), 0o600)  # a user that can open it can lock it, and root's home lets others pass
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SystemStateError(f"Another `ebb up` is starting at {self.folder}: see `ebb status`.") from None
            yield

    def write_state(self, state: State) -> None:
        """Record the addresses."""
        write_private(self.state_file, json.dumps(asdict(state)) + "\n")

    def last_state(self) -> State | None:
        """Return the addresses of the last run; None if there was none.

        Raises:
            SystemStateError: the state file is damaged.
        """
        try:
            return TypeAdapter(State).validate_json(self.state_file.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            raise SystemStateError(
                f"{self.state_file} is damaged and does not say where Ebb runs: remove it, then `ebb down`, `ebb up`."
            ) from None

    def running(self) -> State | None:
        """Return the addresses if this home is running, which its control socket shows; else None."""
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self.control))
            return self.last_state()
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            return None
        except PermissionError:
            raise SystemStateError(
                f"The home {self.folder} belongs to another user: run Ebb as that user, or give another home."
            ) from None


def _is_text(path: str) -> bool:
    """Return whether a path is UTF-8, which Ebb's files that name it are; Python keeps other bytes as surrogates."""
    return not any("\ud800" <= one <= "\udfff" for one in path)


def _sockets(home: Path) -> Path:
    """Return the folder of the sockets, outside a home whose path is too long, or seems to be several by a comma."""
    if len(os.fsencode(home)) <= LONGEST_HOME and "," not in str(home):
        return home / "run"
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path("/tmp") / f"ebb-{os.geteuid()}-{name}"  # noqa: S108  made with mode 0700, owner checked


def check_owner(folder: Path) -> None:
    """Refuse a folder, or a symbolic link to one, that belongs to another user."""
    owner = folder.lstat().st_uid
    if owner != os.geteuid():
        raise SystemStateError(
            f"{folder} belongs to {_name(owner)} and you are {_name(os.geteuid())}: "
            "run Ebb as its owner, or give another home with --home."
        )


def _name(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user id {uid}"


def locate(settings: Settings) -> Settings:
    """Return the settings with both URLs filled in: as set, else from the running home.

    Raises:
        UnavailableError: a URL is missing and the home is not running.
    """
    if settings.database_url and settings.redis_url:
        return settings
    home = Home(settings.home)
    state = home.running()
    if state is None:
        given = {"EBB_DATABASE_URL": settings.database_url, "EBB_REDIS_URL": settings.redis_url}
        lacking = " and ".join(name for name, url in given.items() if not url)
        raise UnavailableError(f"Ebb is not running at {home.folder}: start it with `ebb up`, or set {lacking}.")
    return settings.model_copy(
        update={
            "database_url": settings.database_url or state.database_url,
            "redis_url": settings.redis_url or state.redis_url,
        }
    )


MIB = 1024**2
NEW_HOME_MIB = 256
"""A new database takes some 60 MiB; its first WAL files and a day's results take the rest."""

KNOWN_HOME_MIB = 32
ADVICE = "Make room there, or give a home on another disk with --home."
FULL = ("No space left on device", "Disk quota exceeded")


def refuse_full(folder: Path, least_mib: int) -> None:
    """Refuse to start on a disk with less free space.

    Raises:
        SystemStateError: the message names the folder, its disk, free and required space.
    """
    if shutil.disk_usage(folder).free < least_mib * MIB:
        raise SystemStateError(f"{_described(folder)}; Ebb needs {least_mib} MiB to start. {ADVICE}")


def explain_full(log: str, folder: Path) -> str | None:
    """Return which disk is full and what to do, if a server's log says that one is, or no log can be written."""
    full = folder.exists() and (any(sign in log for sign in FULL) or shutil.disk_usage(folder).free < MIB)
    return f"The disk is full. {_described(folder)}. {ADVICE}" if full else None


def _described(folder: Path) -> str:
    usage = shutil.disk_usage(folder)
    mount = folder.resolve()
    while not mount.is_mount():
        mount = mount.parent
    room = f"{usage.free // MIB} of {usage.total // MIB} MiB free"
    return f"The disk at {mount}, which holds {folder}, has {room}"
