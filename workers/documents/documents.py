"""Documents: what a Markdown file says is kept as facts, one a chunk, for as long as the file says it.

A file is the original of its chunks. So they have no lifetime and leave no tombstones: what is no longer in the file is
erased at once, and comes back when the file says it again. A chunk's id follows from its words and where they stand, so
reading a file again changes nothing, and of a changed file only the changed chunks are embedded.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from ebb.contract.facts import NewFact

from workers.context import Context
from workers.coordination import signals
from workers.core.chunks import Chunk
from workers.errors import InvalidInputError, UnavailableError
from workers.memory.add import Stored
from workers.memory.store import store_many
from workers.storage import activity, documents, namespaces
from workers.storage.connection import transaction
from workers.storage.documents import Known

CHUNK_IDS = uuid5(NAMESPACE_URL, "ebb:chunk")
ALONE_SECONDS = 29.0
"""Longer than its task may take, and shorter than another is patient: one that died makes room after that."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was read: its path, its folder, its digest, and its chunks."""

    path: str
    folder: str
    digest: bytes
    chunks: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of a document's chunks; `outdated` if it was read again later, and nothing was done."""

    added: int = 0
    unchanged: int = 0
    removed: int = 0
    forgotten: int = 0
    without_vector: int = 0
    outdated: bool = False


def known(context: Context, namespace: str, name: str) -> list[Known]:
    """Return what was last read of the files of a folder."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return [] if tenant is None else documents.known(db, tenant.id, name)


def index(context: Context, namespace: str, document: Document, read_at: datetime) -> Indexed:
    """Keep a document's chunks and no others of its path; repeating it changes nothing.

    What was forgotten on request stays so, as long as the file says it in the same words.

    Raises:
        UnavailableError: the database does not answer, or another caller indexes the file; try again.
    """
    with _alone(context, namespace, document.path):
        with transaction(context.database_url) as db:
            tenant = namespaces.find_or_add(db, namespace).id
            before = documents.read_at(db, tenant, document.path)
        if before is not None and before > read_at:
            return Indexed(outdated=True)
        given = [_fact(namespace, document.path, chunk) for chunk in document.chunks]
        stored = store_many(context, namespace, given, read_at, touch=False) if given else []
        return _settle(context, tenant, document, stored, read_at)


def remove(context: Context, namespace: str, paths: Sequence[str]) -> int:
    """Erase all chunks of files that are not there any more; return how many there were."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return 0
        gone = documents.chunks(db, tenant.id, paths)
        activity.lock(db, tenant.id, gone)
        return documents.drop(db, tenant.id, gone, paths)


def _fact(namespace: str, path: str, chunk: Chunk) -> NewFact:
    id_ = uuid5(CHUNK_IDS, f"{namespace}\0{path}\0{chunk.section}\0{chunk.text}")
    return NewFact(id=id_, kind="chunk", text=chunk.text, source=path, key=chunk.section or None)


def _settle(
    context: Context,
    tenant: int,
    document: Document,
    stored: Sequence[Stored | InvalidInputError],
    read_at: datetime,
) -> Indexed:
    """Erase what the document no longer says, and note that it was read."""
    refused = [answer for answer in stored if isinstance(answer, InvalidInputError)]
    if refused:
        raise refused[0]
    done = [answer for answer in stored if isinstance(answer, Stored)]
    wanted = {answer.id for answer in done}
    with transaction(context.database_url) as db:
        gone = [id_ for id_ in documents.chunks(db, tenant, [document.path]) if id_ not in wanted]
        activity.lock(db, tenant, gone)
        removed = documents.drop(db, tenant, gone)
        documents.put(db, tenant, document.path, document.folder, document.digest, read_at)
    actions = [answer.action for answer in done]
    return Indexed(
        added=actions.count("added"),
        unchanged=actions.count("unchanged") + actions.count("duplicate"),
        removed=removed,
        forgotten=actions.count("forgotten"),
        without_vector=sum(not answer.embedded for answer in done if answer.action != "forgotten"),
    )


@contextmanager
def _alone(context: Context, namespace: str, path: str) -> Iterator[None]:
    with signals.only_one(context.redis, f"document:{namespace}:{path}", ALONE_SECONDS) as alone:
        if not alone:
            raise UnavailableError(f"{path} is being indexed by another task: try again.")
        yield
