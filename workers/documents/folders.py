"""Indexing of folders: list and watch Markdown files, cut changed ones into chunks and send them.

Hidden files and folders and symbolic links are skipped, so that nothing outside the folder is read. A file that cannot
be read keeps its index; a deleted one loses it.
"""

import hashlib
import os
import stat
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ebb.contract.operation import BATCH_SECONDS
from ebb.contract.values import MOST_FACTS, storable

from workers.core.chunks import Chunk, chunks
from workers.core.tokens import Count, counter
from workers.errors import InvalidInputError, UnavailableError

IN_FLIGHT = 4
REMOVED_AT_ONCE = 100
CUT = "2"
"""Version of the chunking, part of each digest: a change re-indexes every file."""

LARGEST = 4 * 1_048_576
LONGEST_PATH = 1_024
UPLOADED = ""
"""The folder of files that were uploaded, which no folder's index removes."""

ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
"""How a folder is opened on the way to a file; where there is no O_PATH, as on macOS, it must be readable."""

SETTLED_SECONDS = 2.0
"""A file changed more recently than this may change again with the same time stamp."""

Stat = tuple[int, int, int]
"""Modification time, size and inode: if they are unchanged, the file is not read again."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to index, and the prefix of its paths."""

    root: Path
    name: str


@dataclass(slots=True)
class Listing:
    """The Markdown files below a folder by path, with skipped files, failures and unreadable folders."""

    files: dict[str, Path] = field(default_factory=dict)
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


def folder(root: Path, name: str | None = None) -> Folder:
    """Return a folder to index, named after itself by default.

    Raises:
        InvalidInputError: it is not a folder, or the name is not valid.
    """
    if not os.path.isdir(root):  # noqa: PTH112 - unlike `is_dir`, of a name that is too long, too
        raise InvalidInputError(f"{root} is no folder: give one with Markdown files.")
    name = root.resolve().name if name is None else name
    if not name or "/" in name or name in (".", ".."):
        raise InvalidInputError(f"{name!r} is no name for {root}: give one without slashes with --as.")
    return Folder(root.resolve(), name)


def listing(folder: Folder) -> Listing:
    """Return the Markdown files of a folder, ordered by path.

    Raises:
        InvalidInputError: it is not a folder.
    """
    _identity(folder)
    found = Listing()

    def unreadable(error: OSError) -> None:
        path = _path(folder, Path(str(error.filename))).removesuffix("/.")
        found.failed.append({"path": path, "error": cause(error)})
        found.closed.append(f"{path}/")

    for place, folders, files in os.walk(folder.root, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*folders, *files]):
            _take(found, folder, Path(place) / name, is_file=name not in folders)
    return found


def _take(found: Listing, folder: Folder, file: Path, *, is_file: bool) -> None:
    """Add a file to the listing, or the reason for skipping it."""
    if file.name.startswith(".") or (is_file and file.suffix.lower() != ".md"):
        return
    path = _path(folder, file)
    if os.path.islink(file):  # noqa: PTH114 - `is_symlink` raises in a folder that may be listed but not entered
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
    """Return the text of a file, and the digest of its content and chunking.

    Raises:
        InvalidInputError: it is too large, not a regular file, or not text.
        OSError: it cannot be read, or a link leads to it.
    """
    with os.fdopen(_opened(file), "rb") as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise InvalidInputError("no regular file")
        raw = source.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise InvalidInputError(f"larger than {LARGEST} bytes; split it")
    try:
        text = storable(raw.decode())
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"no UTF-8 at byte {error.start}; convert it") from None
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
    return text, hashlib.sha256(cut.encode() + raw).hexdigest()


def checked_chunks(text: str, count: Count) -> list[Chunk]:
    """Return the chunks of a file's text.

    Raises:
        InvalidInputError: there are more of them than a file may have.
    """
    found = chunks(text, count)
    if len(found) > MOST_FACTS:
        raise InvalidInputError(f"has {len(found):,} parts, more than {MOST_FACTS:,}; split it into several files")
    return found


def _opened(file: Path) -> int:
    """Return a descriptor of a file, opened one name at a time.

    It, or a folder on the way to it, may have been replaced by a link since it was listed.
    """
    above = os.open(file.anchor, ON_THE_WAY)
    try:
        *folders, name = file.relative_to(file.anchor).parts
        for one in folders:
            below = os.open(one, ON_THE_WAY, dir_fd=above)
            os.close(above)
            above = below
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
    finally:
        os.close(above)


def look(file: Path) -> Stat | None:
    """Return a file's `Stat`, or None if it changed just now."""
    state = file.stat()
    if time.time() - state.st_mtime < SETTLED_SECONDS:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def cause(error: Exception) -> str:
    """Return why a file could not be read."""
    return str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)


def changes(folder: Folder) -> Iterator[bool]:
    """Yield about once a second whether anything changed below a folder, until the folder is replaced.

    Hidden files do not count.

    Raises:
        InvalidInputError: the folder is gone.
        UnavailableError: the watcher failed, such as at a name that is no UTF-8; try again.
    """
    from watchfiles import watch  # noqa: PLC0415 - needed only for watching

    def counts(_change: object, path: str) -> bool:
        return not any(part.startswith(".") for part in Path(path).relative_to(folder.root).parts)

    watched = _identity(folder)
    ticks = watch(folder.root, watch_filter=counts, debounce=500, step=100, rust_timeout=1_000, yield_on_timeout=True)
    try:
        for changed in ticks:
            # The watcher reports nothing about a new folder of the same name.
            if _identity(folder) != watched:
                return
            yield bool(changed)
    except RuntimeError as error:
        raise UnavailableError(f"{folder.root} cannot be watched: {error}.") from None


def _identity(folder: Folder) -> tuple[int, int]:
    """Return device and inode of the folder.

    Raises:
        InvalidInputError: it no longer exists.
    """
    if not folder.root.is_dir():
        raise InvalidInputError(f"{folder.root} is no folder any more; nothing was changed.")
    state = folder.root.stat()
    return state.st_dev, state.st_ino


@dataclass(frozen=True, slots=True)
class Reading:
    """A file that was read: its digest, and its `Stat` unless it had just changed."""

    path: str
    digest: str
    looks: Stat | None


@dataclass(slots=True)
class Sync:
    """Result of a synchronisation: counts of files and chunks, skipped files and failures."""

    files: Counter[str] = field(default_factory=Counter)
    chunks: Counter[str] = field(default_factory=Counter)
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Return whether anything changed or failed."""
        return bool(self.files["indexed"] or self.files["removed"] or self.failed)


class Memory(Protocol):
    """Where a folder's chunks are stored: a client, or a worker itself."""

    def documents(self, name: str) -> dict[str, Any]:
        """Return the indexed files of a folder."""

    def clock(self) -> str:
        """Return the current time."""

    def send_document(self, path: str, chunks: Sequence[dict[str, Any]], digest: str, folder: str, read_at: str) -> Any:
        """Send the chunks of a file, and a time of `clock` before it was read; return what `wait` needs."""

    def wait(self, sent: Any, seconds: float) -> dict[str, Any]:
        """Return the answer to a sent document."""

    def unindex(self, paths: list[str]) -> dict[str, Any]:
        """Erase the chunks of removed files."""


class Indexer:
    """Keeps a folder's files indexed, and remembers their `Stat` to read only changed ones."""

    def __init__(self, memory: Memory, folder: Folder, tokenizer: str) -> None:
        self._memory = memory
        self._folder = folder
        self._count = counter(tokenizer)
        self._cut = f"{CUT} {tokenizer} "
        self._seen: dict[str, Reading] = {}

    def known(self) -> dict[str, Any]:
        """Return the folder's indexed files by path.

        Raises:
            InvalidInputError: another folder is indexed under its name.
        """
        documents = self._memory.documents(self._folder.name)["documents"]
        known = {one["path"]: one for one in documents if one["folder"] != UPLOADED}
        _refuse_another(self._folder, known)
        return known

    def sync(self, on_progress: Callable[[int, int], None], *, empty: bool = False) -> Sync:
        """Index new and changed files, and remove deleted ones.

        Raises:
            InvalidInputError: the folder no longer exists, another one is indexed under its name, or all of its files
                are gone and `empty` is false; nothing was changed.
            UnavailableError: Redis or the workers do not answer; try again.
        """
        known = self.known()
        found = listing(self._folder)
        if known and not (found.files or found.failed or empty):
            raise InvalidInputError(
                f"{self._folder.root} holds no Markdown file any more (indexed: {len(known)}), and nothing was "
                "removed. If they are gone for good, say so with `ebb index --empty`."
            )
        done = Sync(skipped=found.skipped, failed=found.failed)
        self._send_changed(found, known, done, on_progress)
        self._remove_gone(found, known, done)
        return done

    def _send_changed(
        self, found: Listing, known: dict[str, Any], done: Sync, on_progress: Callable[[int, int], None]
    ) -> None:
        waiting: deque[tuple[Reading, Any]] = deque()
        for number, (path, file) in enumerate(found.files.items(), start=1):
            sent = self._send(path, file, known.get(path, {}).get("digest"), done)
            if sent is not None:
                waiting.append(sent)
            while len(waiting) >= IN_FLIGHT:
                self._settle(*waiting.popleft(), done)
            on_progress(number, len(found.files))
        while waiting:
            self._settle(*waiting.popleft(), done)

    def _send(self, path: str, file: Path, known_digest: str | None, done: Sync) -> tuple[Reading, Any] | None:
        """Send a file's chunks if it changed; otherwise record that it did not, or why it cannot be read."""
        try:
            looks, seen = look(file), self._seen.get(path)
            if looks is not None and seen is not None and (seen.looks, seen.digest) == (looks, known_digest):
                done.files["unchanged"] += 1
                return None
            read_at = self._memory.clock()  # not later than the text is
            text, digest = read(file, self._cut)
            parts = [] if digest == known_digest else [asdict(one) for one in checked_chunks(text, self._count)]
        except (OSError, InvalidInputError) as error:
            done.failed.append({"path": path, "error": cause(error)})
            return None
        reading = Reading(path, digest, looks)
        if digest == known_digest:
            self._seen[path] = reading
            done.files["unchanged"] += 1
            return None
        return reading, self._memory.send_document(path, parts, digest, str(self._folder.root), read_at)

    def _settle(self, reading: Reading, sent: Any, done: Sync) -> None:
        """Wait until a file's chunks are stored, and count them."""
        try:
            answer = self._memory.wait(sent, BATCH_SECONDS)
        except InvalidInputError as error:
            done.failed.append({"path": reading.path, "error": str(error)})
            return
        done.files["indexed"] += 1
        for name in ("added", "unchanged", "removed", "forgotten", "without_vector"):
            done.chunks[name] += answer[name]
        self._seen[reading.path] = reading

    def _remove_gone(self, found: Listing, known: dict[str, Any], done: Sync) -> None:
        there = found.files.keys() | {one["path"] for one in found.failed}
        gone = [path for path in known if path not in there and not path.startswith(tuple(found.closed))]
        for start in range(0, len(gone), REMOVED_AT_ONCE):
            done.chunks["removed"] += self._memory.unindex(gone[start : start + REMOVED_AT_ONCE])["removed"]
        done.files["removed"] += len(gone)


def _refuse_another(folder: Folder, known: dict[str, Any]) -> None:
    """Refuse a folder if another existing one is indexed under its name: each would remove the other's files."""
    for other in {one["folder"] for one in known.values() if one["folder"]}:
        if other != str(folder.root) and _is_another(folder, other):
            raise InvalidInputError(
                f"{other} is indexed as {folder.name!r} already: give {folder.root} another name with --as."
            )


def _is_another(folder: Folder, path: str) -> bool:
    """Return whether another folder is at a path; one that this user may not look at counts as one."""
    try:
        found = Path(path).stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and not os.path.samestat(found, folder.root.stat())
