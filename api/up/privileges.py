"""Users that servers run as: PostgreSQL refuses root, so it gets its own user with access to its files."""

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from api.up import launch
from workers.errors import UnavailableError

POSTGRES_USER = "pgserver"


def launched(ending: str, command: list[str], user: str | None = None) -> list[str]:
    """Return the command wrapped to run as `user` and to get the signal `ending` when its parent dies."""
    return [sys.executable, "-I", "-S", launch.__file__, ending, user or "-", *command]


def system_user() -> str | None:
    """Return the user for PostgreSQL if we are root, which it refuses; else None."""
    return POSTGRES_USER if os.geteuid() == 0 else None


def grant_access(user: str, owned: Sequence[Path], programs: Path, report: Callable[[str], None]) -> None:
    """Give the user the owned folders, and traversal (not listing) of every folder above its files."""
    entry = _ensured(user)
    for folder in owned:
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    if not programs.stat().st_mode & stat.S_IXOTH:
        _open_to_all(programs.parent)
    for above in sorted({above for folder in (*owned, programs) for above in folder.resolve().parents}):
        mode = above.stat().st_mode
        if not mode & stat.S_IXOTH:
            above.chmod(mode | stat.S_IXOTH)
            report(f"PostgreSQL runs as the user {user}: let it pass through {above} (chmod o+x)")


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
        subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        cause = getattr(error, "stderr", None) or error
        raise UnavailableError(
            f"PostgreSQL refuses to run as root, and the user {user} could not be made "
            f"({str(cause).strip()}): make it yourself, run Ebb as an ordinary user, or set EBB_DATABASE_URL."
        ) from None
    return pwd.getpwnam(user)


def write_private(path: Path, text: str) -> None:
    """Atomically replace a file by one that only its owner can read."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)
