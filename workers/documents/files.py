"""Documents: the chunks of Markdown files as facts, kept as long as the file contains them.

The file is the original, so chunks have no lifetime and leave no tombstones: those no longer in the file are erased at
once, and return when the file contains them again. A chunk's id follows from its text and place, so indexing a file
again changes nothing, and of a changed file only the changed chunks are embedded.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from ebb.contract.documents import Chunk as FilePart
from ebb.contract.documents import Documents, Index, Indexed, ListDocuments, Unindex, Unindexed, Upload
from ebb.contract.facts import NewFact

from workers.context import Context
from workers.coordination import signals
from workers.core import tokens
from workers.core.chunks import chunks
from workers.errors import UnavailableError, require_all
from workers.memory.add import Stored
from workers.memory.store import store_many
from workers.storage import activity, documents, namespaces
from workers.storage.connection import transaction
from workers.validation.facts import own_words

CHUNK_IDS = uuid5(NAMESPACE_URL, "ebb:chunk")
ALONE_SECONDS = 29.0
"""Lock TTL: longer than the task may take, shorter than its retry window."""


def known(context: Context, asked: ListDocuments) -> Documents:
    """Return the indexed files of a folder."""
    with transaction(context.read_url) as db:
        return Documents(documents=documents.known(db, namespaces.id_of(db, asked.namespace), asked.name))


def index(context: Context, asked: Index, read_at: datetime) -> Indexed:
    """Store a document's chunks and erase others of its path; a repeat changes nothing.

    Chunks forgotten on request stay forgotten as long as the file contains the same text.

    Raises:
        InvalidInputError: a chunk is too long.
        UnavailableError: the database does not answer, or another caller is indexing the file; try again.
    """
    chunks = _own_chunks(asked, context.settings.max_text)
    with signals.try_lock(context.redis, f"document:{asked.namespace}:{asked.path}", ALONE_SECONDS) as alone:
        if not alone:
            raise UnavailableError(f"{asked.path} is being indexed by another task: try again.")
        with transaction(context.database_url) as db:
            tenant = namespaces.find_or_add(db, asked.namespace).id
            before = documents.read_at(db, tenant, asked.path)
        if before is not None and before > read_at:
            return _indexed(asked.path, outdated=True)
        given = [_fact(asked.namespace, asked.path, chunk) for chunk in chunks]
        stored = store_many(context, asked.namespace, given, read_at, touch=False) if given else []
        return _settle(context, tenant, asked, given, require_all(stored), read_at)


def upload(context: Context, asked: Upload, read_at: datetime) -> Indexed:
    """Keep the chunks of a text as those of a file, in place of others of its path."""
    parts = chunks(asked.text, tokens.counter(context.settings.tokenizer))
    made = [FilePart(section=one.section, text=one.text, line=one.line) for one in parts]
    digest = hashlib.sha256(asked.text.encode()).hexdigest()
    return index(context, Index(path=asked.path, chunks=made, digest=digest, namespace=asked.namespace), read_at)


def remove(context: Context, asked: Unindex) -> Unindexed:
    """Erase all chunks of files that no longer exist; return their number."""
    with context.namespace(asked.namespace) as (db, tenant):
        gone = documents.chunks(db, tenant, asked.paths)
        activity.lock(db, tenant, gone)
        return Unindexed(removed=documents.drop(db, tenant, gone, asked.paths))


def _own_chunks(asked: Index, max_text: int) -> list[FilePart]:
    """Return the chunks without injected memory blocks, unless they are empty."""
    own = [FilePart(**dict(one) | {"text": own_words(one.text, "chunks.text", max_text)}) for one in asked.chunks]
    return [one for one in own if one.text]


def _fact(namespace: str, path: str, chunk: FilePart) -> NewFact:
    id_ = uuid5(CHUNK_IDS, f"{namespace}\0{path}\0{chunk.section}\0{chunk.text}")
    return NewFact(id=id_, kind="chunk", text=chunk.text, source=path, key=chunk.section or None, turn=chunk.line)


def _settle(
    context: Context, tenant: int, asked: Index, given: Sequence[NewFact], stored: Sequence[Stored], read_at: datetime
) -> Indexed:
    """Erase chunks that are no longer in the document, and record their lines and when it was read."""
    wanted = {answer.id for answer in stored}
    with transaction(context.database_url) as db:
        before = documents.chunks(db, tenant, [asked.path])
        activity.lock(db, tenant, before)
        removed = documents.drop(db, tenant, [id_ for id_ in before if id_ not in wanted])
        lines = {answer.id: one.turn for one, answer in zip(given, stored, strict=True) if one.turn}
        documents.put_lines(db, tenant, lines)
        documents.put(db, tenant, asked.path, asked.folder, bytes.fromhex(asked.digest), read_at)
    return _indexed(asked.path, stored, removed)


def _indexed(path: str, done: Sequence[Stored] = (), removed: int = 0, *, outdated: bool = False) -> Indexed:
    actions = [answer.action for answer in done]
    return Indexed(
        path=path,
        added=actions.count("added"),
        unchanged=actions.count("unchanged") + actions.count("duplicate"),
        removed=removed,
        forgotten=actions.count("forgotten"),
        without_vector=sum(not answer.embedded for answer in done if answer.action != "forgotten"),
        outdated=outdated,
    )
