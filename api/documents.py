"""Documents: a folder's Markdown files are cut into chunks and sent, as far as they changed.

A file that cannot be read keeps what was indexed of it until it can; one that is gone loses it.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from celery.result import AsyncResult

from api.client import Client
from api.folders import Folder, Listing, Stat, cause, listing, look, read
from api.transport import BATCH_SECONDS
from workers.core.chunks import chunks
from workers.core.text import strip_injected
from workers.core.tokens import counter
from workers.errors import InvalidInputError

IN_FLIGHT = 4
REMOVED_AT_ONCE = 1_000
CUT = "1"
"""Changed whenever the same text would be cut otherwise, so that every file is cut anew."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A file that was read: its digest, and what it looked like, unless it had changed just then."""

    path: str
    digest: str
    looks: Stat | None


@dataclass(slots=True)
class Sync:
    """What was found and done: counts of files and of chunks, and what was left out or failed, with why."""

    files: Counter[str] = field(default_factory=Counter)
    chunks: Counter[str] = field(default_factory=Counter)
    skipped: list[dict[str, str]] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Return whether anything is different from before, or went wrong."""
        return bool(self.files["indexed"] or self.files["removed"] or self.failed)


class Indexer:
    """Keeps a folder's files indexed; remembers what they looked like, so as to read only those that changed."""

    def __init__(self, client: Client, folder: Folder, tokenizer: str) -> None:
        self._client = client
        self._folder = folder
        self._count = counter(tokenizer)
        self._cut = f"{CUT} {tokenizer} "
        self._seen: dict[str, Reading] = {}

    def sync(self, on_progress: Callable[[int, int], None], *, empty: bool = False) -> Sync:
        """Index what is new or changed, and remove what is gone; return what was done.

        Raises:
            InvalidInputError: the folder is none any more, another is indexed under its name, or all of its files are
                gone and `empty` is false; nothing was changed.
            UnavailableError: Redis or the workers do not answer; do it again.
        """
        known = {one["path"]: one for one in self._client.documents(self._folder.name)["documents"]}
        _refuse_another(self._folder, known)
        found = listing(self._folder)
        if known and not (found.files or found.failed or empty):
            raise InvalidInputError(
                f"{self._folder.root} holds no Markdown file any more, although {len(known)} are indexed: nothing was "
                "removed. If they are gone for good, say so with --empty."
            )
        done = Sync(skipped=found.skipped, failed=found.failed)
        self._send_changed(found, known, done, on_progress)
        self._remove_gone(found, known, done)
        return done

    def _send_changed(
        self, found: Listing, known: dict[str, Any], done: Sync, on_progress: Callable[[int, int], None]
    ) -> None:
        waiting: deque[tuple[Reading, AsyncResult]] = deque()
        for number, (path, file) in enumerate(found.files.items(), start=1):
            sent = self._send(path, file, known.get(path, {}).get("digest"), done)
            if sent is not None:
                waiting.append(sent)
            while len(waiting) >= IN_FLIGHT:
                self._settle(*waiting.popleft(), done)
            on_progress(number, len(found.files))
        while waiting:
            self._settle(*waiting.popleft(), done)

    def _send(self, path: str, file: Path, known_digest: str | None, done: Sync) -> tuple[Reading, AsyncResult] | None:
        """Send a file's chunks if it changed; note otherwise that it did not, or why it cannot be read."""
        try:
            looks, seen = look(file), self._seen.get(path)
            if looks is not None and seen is not None and (seen.looks, seen.digest) == (looks, known_digest):
                done.files["unchanged"] += 1
                return None
            text, digest = read(file, self._cut)
        except (OSError, InvalidInputError) as error:
            done.failed.append({"path": path, "error": cause(error)})
            return None
        reading = Reading(path, digest, looks)
        if digest == known_digest:
            self._seen[path] = reading
            done.files["unchanged"] += 1
            return None
        parts = [{"section": one.section, "text": one.text} for one in chunks(strip_injected(text), self._count)]
        return reading, self._client.send_document(path, parts, digest, str(self._folder.root))

    def _settle(self, reading: Reading, sent: AsyncResult, done: Sync) -> None:
        """Wait until a file's chunks are stored, and count them."""
        try:
            answer = self._client.wait(sent, BATCH_SECONDS)
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
            done.chunks["removed"] += self._client.unindex(gone[start : start + REMOVED_AT_ONCE])["removed"]
        done.files["removed"] += len(gone)


def _refuse_another(folder: Folder, known: dict[str, Any]) -> None:
    """Refuse a folder if another one that is still there is indexed under its name: each would remove the other's."""
    for other in {one["folder"] for one in known.values() if one["folder"]}:
        if other != str(folder.root) and Path(other).is_dir() and not folder.root.samefile(other):
            raise InvalidInputError(
                f"{other} is indexed as {folder.name!r} already: give {folder.root} another name with --as."
            )
