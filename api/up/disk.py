"""The disk of a home: whether there is room to start, and which disk is meant where a server found none."""

import shutil
from pathlib import Path

from workers.errors import SystemStateError

MIB = 1024**2
NEW_HOME_MIB = 256
"""A new database takes some 60 MiB, its first log files and the results of the first day the rest."""

KNOWN_HOME_MIB = 32
ADVICE = "Make room there, or give a home on another disk with --home."
FULL = ("No space left on device", "Disk quota exceeded")


def refuse_full(folder: Path, least_mib: int) -> None:
    """Refuse to start on a disk with less room than that.

    Raises:
        SystemStateError: the message names the folder, its disk, what is free and what is needed.
    """
    if shutil.disk_usage(folder).free < least_mib * MIB:
        raise SystemStateError(f"{_described(folder)}; Ebb needs {least_mib} MiB to start. {ADVICE}")


def explain(log: str, folder: Path) -> str | None:
    """Return which disk is full and what to do, if that is what a server says it ended by."""
    if not any(sign in log for sign in FULL):
        return None
    return f"The disk is full. {_described(folder)}. {ADVICE}"


def _described(folder: Path) -> str:
    usage = shutil.disk_usage(folder)
    room = f"{usage.free // MIB} of {usage.total // MIB} MiB free"
    return f"The disk at {_mount(folder)}, which holds {folder}, has {room}"


def _mount(folder: Path) -> Path:
    """Return where the file system of a folder is mounted."""
    here = folder.resolve()
    while not here.is_mount():
        here = here.parent
    return here
