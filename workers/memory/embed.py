"""Embed: facts that still have no vector get one, and all of them get new ones when the embedder changes."""

import logging
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from workers.context import Context
from workers.coordination.embedder_pause import EmbedderPause
from workers.core.signature import SEED
from workers.errors import EmbedderMismatchError
from workers.memory.regenerate import restore_vectors
from workers.storage import embedders, namespaces, pending
from workers.storage.connection import lift_limits, transaction
from workers.storage.embedders import StoredEmbedder

log = logging.getLogger(__name__)

Place = tuple[int, UUID]
"""A namespace's number and a fact: where a walk over all of them stands."""

START: Place = (0, UUID(int=0))


def check_embedder(context: Context) -> None:
    """Make the configured embedder the database's own at first start, and refuse another one later.

    Raises:
        EmbedderMismatchError: the database holds vectors of another embedder; the message says what to do.
        EmbeddingError: the embedder cannot say how many dimensions it has.
    """
    own = _own(context)
    with transaction(context.database_url) as db:
        embedders.add_first(db, own)
        stored = embedders.current(db)
    if stored is not None and stored != own:
        raise EmbedderMismatchError(_mismatch(stored, own))


def reset(context: Context) -> int:
    """Make the configured embedder the database's own and drop all vectors; return how many facts wait for new ones.

    Texts are untouched, and found by their words until `embed_pending` has made the new vectors.

    Raises:
        EmbeddingError: the embedder fails; nothing was changed.
    """
    if context.settings.redis_url:
        EmbedderPause(context.redis).answered()  # whoever resets has mended what failed, and wants to see it now
    context.embedder.embed(["Can this embedder embed?"])
    with transaction(context.database_url) as db:
        lift_limits(db)
        embedders.replace(db, _own(context))
        # In the order of a pass, facts before vectors: the other way round each would wait for the other.
        pending.forget_vectors(db)
        embedders.clear_vectors(db)
        waiting = pending.count(db)
    context.__dict__.pop("rules", None)  # they follow from the dimensions, which are others now
    return waiting


def waiting(context: Context) -> int:
    """Return how many facts have no vector yet."""
    with transaction(context.database_url) as db:
        return pending.count(db)


def waiting_among(context: Context, namespace: str, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of these facts of a namespace that have no vector yet."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return pending.among(db, tenant.id, ids) if tenant else set()


def embed_pending(context: Context, after: Place, now: datetime) -> Place | None:
    """Embed the next batch of facts without vector; return where to go on, or nothing at the end.

    Raises:
        EmbeddingError: the embedder fails; the batch still waits.
    """
    with transaction(context.database_url) as db:
        waiting = pending.following(db, after, context.settings.embedding_batch)
    if not waiting:
        return None
    vectors = context.embedder.embed([text for _, _, text in waiting])
    with transaction(context.database_url) as db:
        for tenant, group in groupby(enumerate(waiting), key=lambda numbered: numbered[1][0]):
            places = [place for place, _ in group]
            restore_vectors(context, db, tenant, _ids(waiting, places), vectors[places], now)
    return waiting[-1][0], waiting[-1][1]


def _mismatch(stored: StoredEmbedder, own: StoredEmbedder) -> str:
    """Say what the database holds instead of what is configured, and what to do."""
    anew = "`ebb reembed`, or `ebb up --reembed` where nothing runs."
    if (stored.name, stored.dims) == (own.name, own.dims):
        return f"The database holds signatures of another version of Ebb. Make all vectors anew from the texts: {anew}"
    return (
        f"The database holds vectors of {stored.name} ({stored.dims} dims); "
        f"configured is {own.name} ({own.dims} dims). "
        f"Set EBB_EMBEDDER and EBB_EMBEDDING_MODEL back, or make all vectors anew with the configured one: {anew}"
    )


def _ids(waiting: Sequence[tuple[int, UUID, str]], places: Sequence[int]) -> list[UUID]:
    return [waiting[place][1] for place in places]


def _own(context: Context) -> StoredEmbedder:
    return StoredEmbedder(context.embedder.name, context.embedder.dims, SEED)
