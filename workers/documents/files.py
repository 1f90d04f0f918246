"""Documents: the chunks of Markdown files as facts, kept as long as the file contains them.

The file is the original, so chunks have no lifetime and leave no tombstones: those no longer in the file are erased at
once, and return when the file contains them again. A chunk's id follows from its text and place, so indexing a file
again changes nothing, and of a changed file only the changed chunks are embedded.

Workers keep the files of registered folders indexed, by the rules of `ebb index`.
"""

import hashlib
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ebb.contract.documents import Chunk as FilePart
from ebb.contract.documents import (
    Documents,
    Index,
    Indexed,
    ListDocuments,
    ListFolders,
    RegisteredFolder,
    RegisteredFolders,
    RegisterFolder,
    Unindex,
    Unindexed,
    UnregisteredFolder,
    UnregisterFolder,
    Upload,
)
from ebb.contract.facts import NewFact
from ebb.contract.values import none_if_blank, storable

from workers.context import Context
from workers.coordination import signals
from workers.core import tokens
from workers.documents.folders import Folder, Indexer, Sync, cause, checked_chunks, folder
from workers.errors import InvalidInputError, UnavailableError, require_all
from workers.memory.add import Stored
from workers.memory.store import store_many
from workers.settings import Settings
from workers.storage import activity, documents, namespaces
from workers.storage.connection import reading, transaction
from workers.validation.facts import own_words

CHUNK_IDS = uuid5(NAMESPACE_URL, "ebb:chunk")
ALONE_SECONDS = 29.0
"""Lock TTL: shorter than the retry window of the task, which renews it."""

ERASED_AT_ONCE = 5_000
"""Chunks erased in one transaction: an erased fact takes up to a millisecond."""


def known(context: Context, asked: ListDocuments) -> Documents:
    """Return the indexed files of a folder."""
    with reading(context.read_url) as db:
        return Documents(documents=documents.known(db, namespaces.id_of(db, asked.namespace), asked.name))


def index(context: Context, asked: Index, read_at: datetime) -> Indexed:
    """Store a document's chunks and erase others of its path; a repeat changes nothing.

    Chunks forgotten on request stay forgotten as long as the file contains the same text.

    Raises:
        InvalidInputError: a chunk is too long.
        UnavailableError: the database does not answer, or another caller is indexing the file; try again.
    """
    chunks, work = _own_chunks(asked, context.settings.max_text), f"document:{asked.namespace} {asked.path}"
    with signals.try_lock(context.redis, work, ALONE_SECONDS, renew=True) as alone:
        if not alone:
            raise UnavailableError(f"{asked.path} is being indexed by another task: try again.")
        with transaction(context.database_url) as db:
            tenant = namespaces.find_or_add(db, asked.namespace).id
            before = documents.read_at(db, tenant, asked.path)
            overtaken = before is not None and before > read_at and context.may_be_later(db, before)
        if overtaken:
            done = dict.fromkeys(("added", "unchanged", "removed", "forgotten", "without_vector"), 0)
            return Indexed(path=asked.path, **done, outdated=True)
        given = [_fact(asked.namespace, asked.path, chunk) for chunk in chunks]
        stored = store_many(context, asked.namespace, given, read_at, touch=False) if given else []
        return _settle(context, tenant, asked, given, require_all(stored), read_at)


def upload(context: Context, asked: Upload, read_at: datetime) -> Indexed:
    """Keep the chunks of a text as those of a file, in place of others of its path.

    Raises:
        InvalidInputError: the text has too many.
    """
    try:
        parts = checked_chunks(asked.text, tokens.counter(context.settings.tokenizer))
    except InvalidInputError as error:
        raise InvalidInputError(f"text: {error}.") from None
    made = [FilePart(section=one.section, text=one.text, line=one.line) for one in parts]
    digest = hashlib.sha256(asked.text.encode()).hexdigest()
    return index(context, Index(path=asked.path, chunks=made, digest=digest, namespace=asked.namespace), read_at)


def remove(context: Context, asked: Unindex) -> Unindexed:
    """Erase all chunks of files that no longer exist, some in each transaction; return their number.

    Another call continues where one was interrupted.
    """
    removed, more = 0, True
    while more:  # read again, as a file may have been indexed meanwhile
        with context.namespace(asked.namespace) as (db, tenant):
            gone = documents.chunks(db, tenant, asked.paths, ERASED_AT_ONCE)
            activity.lock(db, tenant, gone)
            # with its digest, a file that is back would not be read again
            removed += documents.drop(db, tenant, gone, asked.paths)
        more = bool(gone)
    return Unindexed(removed=removed)


def _own_chunks(asked: Index, max_text: int) -> list[FilePart]:
    """Return the chunks without injected memory blocks, unless they are empty."""
    own = [FilePart(**dict(one) | {"text": own_words(one.text, "chunks.text", max_text)}) for one in asked.chunks]
    return [one for one in own if one.text]


def _fact(namespace: str, path: str, chunk: FilePart) -> NewFact:
    id_ = uuid5(CHUNK_IDS, f"{namespace}\0{path}\0{chunk.section}\0{chunk.text}")
    section = none_if_blank(chunk.section)
    return NewFact(id=id_, kind="chunk", text=chunk.text, source=path, key=section, turn=chunk.line)


def _settle(
    context: Context, tenant: int, asked: Index, given: Sequence[NewFact], stored: Sequence[Stored], read_at: datetime
) -> Indexed:
    """Erase chunks that are no longer in the document, and record their lines and when it was read.

    Raises:
        UnavailableError: chunks that were just stored have been erased.
    """
    wanted, kept = {answer.id for answer in stored}, {answer.id for answer in stored if answer.action != "forgotten"}
    with transaction(context.database_url) as db:
        before = activity.lock(db, tenant, documents.chunks(db, tenant, [asked.path])).ids
        if not kept.issubset(before):  # with its digest, the file would never be read again
            raise UnavailableError(f"{asked.path} was removed at this very moment: try again.")
        removed = documents.drop(db, tenant, [id_ for id_ in before if id_ not in wanted])
        lines = {answer.id: one.turn for one, answer in zip(given, stored, strict=True) if one.turn}
        documents.put_lines(db, tenant, lines)
        documents.put(db, tenant, asked.path, asked.folder, bytes.fromhex(asked.digest), read_at)
    actions = [answer.action for answer in stored]
    return Indexed(
        path=asked.path,
        added=actions.count("added"),
        unchanged=actions.count("unchanged") + actions.count("duplicate"),
        removed=removed,
        forgotten=actions.count("forgotten"),
        without_vector=sum(not answer.embedded for answer in stored if answer.action != "forgotten"),
        outdated=False,
    )


class _TimeOverError(Exception):
    """A folder is not read to its end yet."""


@dataclass(frozen=True, slots=True)
class _Here:
    """The memory of one namespace, without a detour by tasks; past `until`, each change is the last one."""

    context: Context
    namespace: str
    until: float = math.inf

    def documents(self, name: str) -> dict[str, Any]:
        asked = ListDocuments(name=name, namespace=self.namespace)
        return known(self.context, asked).model_dump()

    def clock(self) -> str:
        return self.context.now().isoformat()

    def send_document(
        self, path: str, chunks: Sequence[dict[str, Any]], digest: str, folder: str, read_at: str
    ) -> tuple[Index, datetime]:
        given = {"path": path, "chunks": chunks, "digest": digest, "folder": folder, "namespace": self.namespace}
        return Index.model_validate(given), datetime.fromisoformat(read_at)

    def wait(self, sent: tuple[Index, datetime], seconds: float) -> dict[str, Any]:  # noqa: ARG002 - done at once
        done = index(self.context, *sent)
        self._note_growth(done.added + done.removed)
        return done.model_dump()

    def unindex(self, paths: list[str]) -> dict[str, Any]:
        done = remove(self.context, Unindex(paths=paths, namespace=self.namespace))
        self._note_growth(done.removed)
        return done.model_dump()

    def _note_growth(self, changed: int) -> None:
        """Have the words counted again if facts were added or removed, as most readings change nothing.

        Raises:
            _TimeOverError: `until` is past.
        """
        if changed:
            signals.mark_grown(self.context.redis, self.namespace)
        if time.monotonic() > self.until:
            raise _TimeOverError


def register_folder(context: Context, asked: RegisterFolder) -> RegisteredFolder:
    """Register a folder to be kept indexed. Idempotent.

    Raises:
        InvalidInputError: it is not below a folder of `EBB_FOLDERS`, is no folder, or its name is not allowed.
    """
    place = folder(_allowed(context.settings, asked.path), asked.name)
    Indexer(_Here(context, asked.namespace), place, context.settings.tokenizer).known()
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, asked.namespace).id
        documents.register(db, tenant, place.name, str(place.root))
        return documents.registered(db, tenant, place.name)[0]


def unregister_folder(context: Context, asked: UnregisterFolder) -> UnregisteredFolder:
    """Stop keeping a folder indexed; what was indexed stays."""
    with context.namespace(asked.namespace) as (db, tenant):
        return UnregisteredFolder(removed=documents.unregister(db, tenant, asked.name))


def registered_folders(context: Context, asked: ListFolders) -> RegisteredFolders:
    """Return the registered folders of a namespace."""
    with reading(context.read_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        return RegisteredFolders(folders=documents.registered(db, tenant))


def all_folders(context: Context) -> Sequence[tuple[str, str]]:
    """Return (namespace, folder) of all registered folders of this group of shards, by their names."""
    found: list[tuple[str, str]] = []
    for _ in context.each_shard(own=True):
        with transaction(context.database_url) as db:
            found += documents.all_registered(db)
    return sorted(found)


def read_folder(context: Context, namespace: str, name: str, until: float) -> bool:
    """Index what changed in a folder since the last reading, and record how that went; a repeat changes nothing.

    Returns whether it was read to its end; if `until`, in monotonic seconds, is reached before, call again.

    Raises:
        UnavailableError: the database does not answer, or another caller is indexing one of its files; try again.
    """
    with context.namespace(namespace) as (db, tenant):
        found = documents.registered(db, tenant, name)
    if not found:
        return True
    try:
        place = Folder(_allowed(context.settings, found[0].path), name)
        indexer = Indexer(_Here(context, namespace, until), place, context.settings.tokenizer)
        done = indexer.sync(lambda _, __: None)
    except _TimeOverError:
        return False
    except (InvalidInputError, OSError, RuntimeError) as error:
        done = Sync(failed=[{"path": found[0].path, "error": cause(error)}])
        whole = False
    else:
        whole = True
    with transaction(context.database_url) as db:
        documents.note_reading(db, tenant, name, context.now(), _first_failure(done), whole=whole)
    return True


def _allowed(settings: Settings, path: str) -> Path:
    """Return where a path leads after all symbolic links.

    Raises:
        InvalidInputError: that is not below a folder of `EBB_FOLDERS`, or no UTF-8.
    """
    if not settings.folder_roots:
        raise InvalidInputError(
            "EBB_FOLDERS is empty, so workers read no folders: set it for workers and beat to the folders below which "
            "they may, such as /srv/notes, and start them again."
        )
    real = Path(os.path.realpath(path))  # unlike `resolve`, at a loop of links, too
    if not any(real.is_relative_to(root.resolve()) for root in settings.folder_roots):
        raise InvalidInputError(
            f"path: {path} is not below a folder that workers may read, {settings.folders}: give another one, or add "
            "it to EBB_FOLDERS of workers and beat."
        )
    try:
        storable(str(real))
    except ValueError:
        raise InvalidInputError(f"path: {path} leads to a name that is no UTF-8; rename it.") from None
    return real


def _first_failure(done: Sync) -> str | None:
    """Return the first failure of a reading and how many others there are."""
    if not done.failed:
        return None
    others = f" (and {len(done.failed) - 1} more)" if len(done.failed) > 1 else ""
    return f"{done.failed[0]['path']}: {done.failed[0]['error']}{others}"
