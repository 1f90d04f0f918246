"""Folders of Markdown files: which are in them, what they say, and when they change.

What is no file of the folder itself is left out: hidden files and folders, and symbolic links, so that nothing outside
of it is read.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workers.errors import InvalidInputError

LARGEST = 4 * 1_048_576
LONGEST_PATH = 1_024
SETTLED_SECONDS = 2.0
"""A file changed more recently may change again without looking different."""

Stat = tuple[int, int, int]
"""When a file was changed, its size and its place on the disk: if these are the same, it need not be read again."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder whose files are indexed, and the name that their paths begin with."""

    root: Path
    name: str


@dataclass(slots=True)
class Listing:
    """The Markdown files below a folder by their paths, what was left out or failed, and folders that are closed."""

    files: dict[str, Path] = field(default_factory=dict)
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


def folder(root: Path, name: str | None = None) -> Folder:
    """Return a folder to index, by default under its own name.

    Raises:
        InvalidInputError: it is no folder, or the name is none.
    """
    if not root.is_dir():
        raise InvalidInputError(f"{root} is no folder: give one with Markdown files.")
    name = root.resolve().name if name is None else name
    if not name or "/" in name or name in (".", ".."):
        raise InvalidInputError(f"{name!r} is no name for {root}: give one without slashes with --as.")
    return Folder(root.resolve(), name)


def listing(folder: Folder) -> Listing:
    """Return the Markdown files of a folder, in the order of their paths.

    Raises:
        InvalidInputError: it is no folder.
    """
    _identity(folder)
    found = Listing()

    def unreadable(error: OSError) -> None:
        path = _path(folder, Path(str(error.filename)))
        found.failed.append({"path": path, "error": cause(error)})
        found.closed.append(f"{path}/")

    for place, folders, files in os.walk(folder.root, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*folders, *files]):
            _take(found, folder, Path(place) / name, is_file=name not in folders)
    return found


def _take(found: Listing, folder: Folder, file: Path, *, is_file: bool) -> None:
    """Note a file, or why it is left out."""
    if file.name.startswith(".") or (is_file and file.suffix.lower() != ".md"):
        return
    path = _path(folder, file)
    if file.is_symlink():
        found.skipped.append({"path": path, "error": "a symbolic link, which is not followed"})
    elif is_file and "\ufffd" in path:
        found.failed.append({"path": path, "error": "its name is no UTF-8; rename it"})
    elif is_file and len(path.encode()) > LONGEST_PATH:
        found.failed.append({"path": path, "error": f"its path is longer than {LONGEST_PATH} bytes; shorten it"})
    elif is_file:
        found.files[path] = file


def _path(folder: Folder, file: Path) -> str:
    path = f"{folder.name}/{file.relative_to(folder.root).as_posix()}"
    return os.fsencode(path).decode("utf-8", "replace")


def read(file: Path, cut: str) -> tuple[str, str]:
    """Return a file's text, and the digest of it and of how it is cut.

    Raises:
        InvalidInputError: it is too large, no regular file, or no text.
        OSError: it cannot be read.
    """
    if not file.is_file():
        raise InvalidInputError("no regular file")
    with file.open("rb") as source:
        raw = source.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise InvalidInputError(f"larger than {LARGEST} bytes; split it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"no UTF-8 at byte {error.start}; convert it") from None
    if "\0" in text:
        raise InvalidInputError("has NUL characters, so it is no text; remove them")
    return text, hashlib.sha256(cut.encode() + raw).hexdigest()


def look(file: Path) -> Stat | None:
    """Return what a file looks like, or nothing if it was changed just now."""
    state = file.stat()
    if time.time() - state.st_mtime < SETTLED_SECONDS:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def cause(error: Exception) -> str:
    """Return why a file was not read."""
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)


def changes(folder: Folder) -> Iterator[bool]:
    """Yield, about once a second, whether anything has changed below a folder, until another stands in its place.

    Hidden files do not count.

    Raises:
        InvalidInputError: the folder is gone.
    """
    from watchfiles import watch  # noqa: PLC0415 - only who watches needs it

    def counts(_change: object, path: str) -> bool:
        return not any(part.startswith(".") for part in Path(path).relative_to(folder.root).parts)

    watched = _identity(folder)
    ticks = watch(folder.root, watch_filter=counts, debounce=500, step=100, rust_timeout=1_000, yield_on_timeout=True)
    for changed in ticks:
        # Of a folder that was removed no more is heard, even if one of its name is there again.
        if _identity(folder) != watched:
            return
        yield bool(changed)


def _identity(folder: Folder) -> tuple[int, int]:
    """Return which folder it is, whatever its name.

    Raises:
        InvalidInputError: it is none any more.
    """
    if not folder.root.is_dir():
        raise InvalidInputError(f"{folder.root} is no folder any more; nothing was changed.")
    state = folder.root.stat()
    return state.st_dev, state.st_ino
