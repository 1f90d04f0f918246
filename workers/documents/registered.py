"""Registered folders: Markdown files that workers keep indexed, by the rules of `ebb index`."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebb.contract.documents import (
    Index,
    ListDocuments,
    ListFolders,
    RegisteredFolder,
    RegisteredFolders,
    RegisterFolder,
    Unindex,
    UnregisteredFolder,
    UnregisterFolder,
)

from workers.context import Context
from workers.documents import files
from workers.documents.folders import Folder, Indexer, Sync, cause, folder
from workers.errors import InvalidInputError
from workers.settings import Settings
from workers.storage import documents, namespaces
from workers.storage.connection import transaction


class _TimeOverError(Exception):
    """A folder is not read to its end yet."""


@dataclass(frozen=True, slots=True)
class _Here:
    """The memory of one namespace, without a detour by tasks; past `until`, each file is the last one."""

    context: Context
    namespace: str
    until: float = math.inf

    def documents(self, name: str) -> dict[str, Any]:
        asked = ListDocuments(name=name, namespace=self.namespace)
        return files.known(self.context, asked).model_dump()

    def send_document(self, path: str, chunks: Sequence[dict[str, Any]], digest: str, folder: str) -> Index:
        given = {"path": path, "chunks": chunks, "digest": digest, "folder": folder, "namespace": self.namespace}
        return Index.model_validate(given)

    def wait(self, sent: Index, seconds: float) -> dict[str, Any]:  # noqa: ARG002 - done at once
        done = files.index(self.context, sent, self.context.now()).model_dump()
        if time.monotonic() > self.until:
            raise _TimeOverError
        return done

    def unindex(self, paths: list[str]) -> dict[str, Any]:
        return files.remove(self.context, Unindex(paths=paths, namespace=self.namespace)).model_dump()


def register(context: Context, asked: RegisterFolder) -> RegisteredFolder:
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


def unregister(context: Context, asked: UnregisterFolder) -> UnregisteredFolder:
    """Stop keeping a folder indexed; what was indexed stays."""
    with context.namespace(asked.namespace) as (db, tenant):
        return UnregisteredFolder(removed=documents.unregister(db, tenant, asked.name))


def listed(context: Context, asked: ListFolders) -> RegisteredFolders:
    """Return the registered folders of a namespace."""
    with transaction(context.read_url) as db:
        tenant = namespaces.id_of(db, asked.namespace)
        return RegisteredFolders(folders=documents.registered(db, tenant))


def everywhere(context: Context) -> Sequence[tuple[str, str]]:
    """Return (namespace, folder) of all registered folders of this group of shards, by their names."""
    found: list[tuple[str, str]] = []
    for _ in context.each_shard(own=True):
        with transaction(context.database_url) as db:
            found += documents.all_registered(db)
    return sorted(found)


def read(context: Context, namespace: str, name: str, until: float) -> bool:
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
        documents.note_reading(db, tenant, name, context.now(), _error(done), whole=whole)
    return True


def _allowed(settings: Settings, path: str) -> Path:
    """Return where a path leads after all symbolic links.

    Raises:
        InvalidInputError: that is not below a folder of `EBB_FOLDERS`.
    """
    if not settings.folder_roots:
        raise InvalidInputError(
            "EBB_FOLDERS is empty, so workers read no folders: set it for workers and beat to the folders below which "
            "they may, such as /srv/notes, and start them again."
        )
    real = Path(path).resolve()
    if not any(real.is_relative_to(root.resolve()) for root in settings.folder_roots):
        raise InvalidInputError(
            f"path: {path} is not below a folder that workers may read, {settings.folders}: give another one, or add "
            "it to EBB_FOLDERS of workers and beat."
        )
    return real


def _error(done: Sync) -> str | None:
    """Return the first failure of a reading and how many others there are."""
    if not done.failed:
        return None
    others = f" (and {len(done.failed) - 1} more)" if len(done.failed) > 1 else ""
    return f"{done.failed[0]['path']}: {done.failed[0]['error']}{others}"
