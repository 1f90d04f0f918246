"""Embeddings: compute missing ones, restore those of faded facts that are used, and replace all of them."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias
from uuid import UUID

import numpy as np

from workers.context import PROBE, Context
from workers.coordination import pause
from workers.core.arrays import Bytes, Vectors
from workers.core.fading import as_written
from workers.core.fidelity import FULL
from workers.core.signature import SEED, encode
from workers.embedding.vectors import REQUEST_BYTES, batches
from workers.errors import EmbedderAwayError, EmbedderMismatchError, EmbedderPausedError, EmbeddingError
from workers.memory.namespace_settings import rules_for
from workers.storage import activity, due, facts, namespaces, signatures, vectors
from workers.storage.connection import Connection, again_after_deadlock, lift_limits, transaction
from workers.storage.vectors import StoredEmbedder

log = logging.getLogger(__name__)

ANSWERED_SECONDS = 40.0
"""Time within which the last batch is answered or given up, even with the longest EBB_EMBEDDING_TIMEOUT."""

EMBEDDING_SECONDS = 15.0
"""Time after which no further embedding batch is started, so that a slow embedder does not exceed the task's limit."""

TRYING_SECONDS = 30.0
"""The same for a batch of pending facts, which are embedded one by one if that fails."""

LEFT_OUT_SECONDS = 600.0
"""Time for which a text is left out at which the embedder did not answer any more."""

AWAY = (EmbedderAwayError, EmbedderPausedError)
"""Failures that other texts would meet, too."""

Key: TypeAlias = tuple[int, UUID]
"""A fact: namespace and id."""


def vectors_of(context: Context, texts: Sequence[str]) -> list[Vectors | None]:
    """Return the (dims,) vector of each text, None where the embedder fails or time runs out.

    Facts without a vector are found by their words and embedded in the background. There are no retries here, and no
    attempts while the embedder is paused. A batch that it refuses stops no other.
    """
    until = _last_start(context)
    found: list[Vectors | None] = []
    try:
        for batch in batches(texts, context.embedder.batch, REQUEST_BYTES):
            if found and time.monotonic() >= until:
                break
            found += _unless_refused(context, batch)
    except EmbeddingError as error:
        log.warning("facts are stored without vector and embedded later: %s", error)
    return found + [None] * (len(texts) - len(found))


def _last_start(context: Context) -> float:
    """Return when, on the monotonic clock, a further batch may be started at the latest; the first always is."""
    return time.monotonic() + min(EMBEDDING_SECONDS, ANSWERED_SECONDS - context.settings.embedding_timeout)


def _unless_refused(context: Context, texts: Sequence[str]) -> list[Vectors | None]:
    """Return the (dims,) vectors of a batch, or None for each text if the embedder refuses one.

    Raises:
        EmbeddingError: the embedder does not answer.
    """
    try:
        return list(context.embedder.embed(texts, retry=False))
    except AWAY:
        raise
    except EmbeddingError as error:
        log.warning("%d facts are stored without vector and embedded later: %s", len(texts), error)
        return [None] * len(texts)


def regenerate(context: Context, namespace: str, ids: Sequence[UUID], now: datetime) -> list[UUID]:
    """Embed facts again that have less than their full vector; return the facts that changed. Idempotent.

    A text that the embedder refuses stops no other. Those for which no time is left stay as they are.

    Raises:
        EmbeddingError: the embedder fails for any text; nothing was changed.
    """
    if not context.settings.regeneration_enabled:
        return []
    with context.namespace(namespace) as (db, tenant):
        rows = activity.lock(db, tenant, ids)
        texts = facts.texts(db, tenant, rows.only(rows.anchors.fidelity != FULL).ids)
    if not texts or not _is_current(context):
        return []
    until, found, left = _last_start(context), dict[Key, Vectors](), iter(texts)
    for number, batch in enumerate(batches([*texts.values()], context.embedder.batch, REQUEST_BYTES)):
        if number and time.monotonic() >= until:
            break
        some = {(tenant, id_): text for text, id_ in zip(batch, left, strict=False)}
        found |= embed_each(context, some, until, retry=False).vectors
    if not found:
        return []
    with transaction(context.database_url) as db:
        ids, embedded = [id_ for _, id_ in found], np.stack([*found.values()])
        restored = restore_vectors(context, db, tenant, ids, embedded, now)
    for id_ in restored:
        log.info("[decay-2.0] regenerated/reinforced memory mem_%s", id_.hex)
    return restored


def restore_vectors(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], embedded: Vectors, now: datetime
) -> list[UUID]:
    """Write (n, dims) full vectors of n facts, for those that are live and not at full fidelity; return these."""
    if not _is_embedder(context, db):
        return []
    place = {id_: i for i, id_ in enumerate(ids)}
    rows = activity.lock(db, tenant, ids)
    live = facts.texts(db, tenant, rows.ids)
    rows = rows.only(np.array([id_ in live for id_ in rows.ids], dtype=np.bool_) & (rows.anchors.fidelity != FULL))
    if rows.ids:
        found = embedded[[place[id_] for id_ in rows.ids]]
        keep_vectors(db, tenant, rows.ids, found, encode(found))
        at_full = replace(rows.anchors, fidelity=np.full(len(rows), FULL, dtype=np.int64))
        faded = as_written(at_full, now.timestamp(), rules_for(context, db, rows.namespaces))
        due.write_faded(db, rows, faded, rows.held)
    return rows.ids


def _is_current(context: Context) -> bool:
    """Return whether the database still has this process's embedder, before one is asked for vectors in vain.

    A database has none yet if the embedder did not answer at the first start.
    """
    own = _own(context)
    with transaction(context.database_url) as db:
        vectors.add_embedder(db, own)
        return _is_embedder(context, db)


def _is_embedder(context: Context, db: Connection) -> bool:
    same = vectors.is_embedder(db, context.embedder.name)
    if not same:
        log.warning("the database has changed to another embedder than %s: restart", context.embedder.name)
    return same


def keep_vectors(db: Connection, tenant: int, ids: Sequence[UUID], embedded: Vectors, signed: Bytes) -> None:
    """Write the (n, dims) full vectors of n facts and their (n, 128) signatures."""
    vectors.write(db, tenant, ids, embedded)
    signatures.add(db, tenant, ids, signed)


@dataclass(frozen=True, slots=True)
class Tried:
    """The (dims,) vectors of facts, and the facts whose texts were tried or left out, in order."""

    vectors: dict[Key, Vectors] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)

    @property
    def refused(self) -> list[Key]:
        """Return the facts without vector."""
        return [key for key in self.keys if key not in self.vectors]


def embed_each(context: Context, texts: Mapping[Key, str], until: float, *, retry: bool) -> Tried:
    """Embed texts together or, if the embedder fails at them, one by one until `until` on the monotonic clock.

    Texts that it refuses get no vector. Those at which it stops to answer are tried one by one after the pause, and one
    that is the reason is left out for `LEFT_OUT_SECONDS`, so that it causes no pause again and again.

    Raises:
        EmbeddingError: the embedder fails for any text.
    """
    noted = _suspects(context, texts)
    wanted = {key: text for key, text in texts.items() if noted.get(key, 0.0) <= 0}
    if wanted and noted.keys().isdisjoint(wanted):
        try:
            found = context.embedder.embed(list(wanted.values()), retry=retry)
            return Tried(dict(zip(wanted, found, strict=True)), list(texts))
        except AWAY as error:
            _suspect(context, wanted, error)
            raise
        except EmbeddingError:
            if len(wanted) == 1:
                return Tried({}, list(texts))
            context.embedder.embed([PROBE])
    return _one_by_one(context, texts, wanted, until)


def _one_by_one(context: Context, texts: Mapping[Key, str], wanted: Collection[Key], until: float) -> Tried:
    done = Tried()
    for key, text in texts.items():
        try:
            if key in wanted:
                done.vectors[key] = context.embedder.embed([text], retry=False)[0]
        except AWAY as error:
            _suspect(context, [key], error)
            log.warning("the other texts wait: %s", error)
            break
        except EmbeddingError as error:
            log.debug("fact %s of namespace %d: %s", key[1], key[0], error)
        done.keys.append(key)
        if time.monotonic() >= until:
            break
    return done


def _suspect(context: Context, keys: Collection[Key], error: EmbeddingError) -> None:
    """Note the texts at which the embedder stopped to answer, if they may be the reason."""
    if isinstance(error, EmbedderAwayError) and error.doubtful and context.settings.redis_url:
        until = context.seconds() + LEFT_OUT_SECONDS if len(keys) == 1 else 0.0
        pause.suspect(context.redis, [_member(key) for key in keys], until)


def _suspects(context: Context, keys: Collection[Key]) -> dict[Key, float]:
    """Return the suspects among texts, and for how many seconds each is still left out, if at all."""
    if context.embedder.quick or not context.settings.redis_url:
        return {}
    found = pause.suspects(context.redis, [_member(key) for key in keys])
    now = context.seconds() if any(found) else 0.0
    return {key: until - now for key, until in zip(keys, found, strict=True) if until is not None}


def _member(key: Key) -> str:
    return f"{key[0]} {key[1]}"


Position: TypeAlias = Key
"""The position of an iteration over all facts."""

START: Position = (0, UUID(int=0))


def check_embedder(context: Context) -> None:
    """Set the database's embedder at the first start, and verify it at later ones.

    Raises:
        EmbedderMismatchError: the database has vectors of another embedder; the message says what to do.
        EmbeddingError: the embedder fails to report its dimensions.
    """
    own = _own(context)
    with transaction(context.database_url) as db:
        vectors.add_embedder(db, own)
        stored = vectors.embedder(db)
    if stored is not None and stored != own:
        raise EmbedderMismatchError(_mismatch(stored, own))


def reset(context: Context) -> int:
    """Replace the database's embedder by the configured one and delete all vectors; return how many facts wait.

    Facts are found by words until `embed_pending` has computed the new vectors. The vector indexes of large namespaces
    are built again when these have enough of them.

    Raises:
        EmbeddingError: the embedder fails; nothing was changed.
    """
    if context.settings.redis_url:
        pause.Pause(context.redis, pause.EMBEDDER).answered()  # end a pause: the embedder may have been repaired
    context.embedder.embed([PROBE])
    waiting = sum(again_after_deadlock(partial(_reset_shard, context)) for _ in context.each_shard())
    context.__dict__.pop("known_rules", None)  # cached; they depend on the dimensions
    return waiting


def _reset_shard(context: Context) -> int:
    with transaction(context.database_url) as db:
        lift_limits(db)
        vectors.replace_embedder(db, _own(context))
        # Facts before vectors, the lock order of a pass, to avoid a deadlock.
        for _ in range(2):  # again for those that left deep memory, or came there, meanwhile
            vectors.mark_all_pending(db)
            vectors.clear_deep(db)
        vectors.clear(db)  # at the end, as recalls wait from here on
        signatures.drop_indexes(db)
        return vectors.count_pending(db)


def waiting(context: Context) -> int:
    """Return the number of facts without a vector."""
    found = 0
    for _ in context.each_shard():
        with transaction(context.database_url) as db:
            found += vectors.count_pending(db)
    return found


def waiting_among(context: Context, namespace: str, ids: Sequence[UUID]) -> set[UUID]:
    """Return the facts among these that have no vector yet."""
    with context.at(namespace), transaction(context.database_url) as db:
        return vectors.pending_among(db, namespaces.id_of(db, namespace), ids)


def embed_pending(context: Context, after: Position, now: datetime) -> Position | None:
    """Embed the next batch of facts without a vector; return the position to continue from, or None at the end.

    Facts that have ended get a signature. Texts that the embedder refuses are left without one. There is nothing to do
    for another embedder than the database's: its vectors, which may cost time and money, would not be stored.

    Raises:
        EmbeddingError: the embedder fails for any text; nothing of the batch was changed.
    """
    until = time.monotonic() + TRYING_SECONDS
    with transaction(context.database_url) as db:
        waiting = vectors.pending(db, after, context.settings.embedding_batch)
    if not waiting or not _is_current(context):
        return None
    batch = next(batches([text for *_, text in waiting], len(waiting), REQUEST_BYTES))
    texts = {(tenant, id_): text for tenant, id_, text in waiting[: len(batch)]}
    done = embed_each(context, texts, until, retry=True)
    _restore_each(context, done.vectors, now)
    if refused := done.refused:
        tenant, fact = refused[0]
        said = "the embedder refuses %d texts, which stay without vector; the first is fact %s of namespace %d"
        log.warning(said, len(refused), fact, tenant)
    return done.keys[-1] if done.keys else None


def _restore_each(context: Context, embedded: Mapping[Key, Vectors], now: datetime) -> None:
    """Write the (dims,) vectors of facts in order; of those that have ended, their signatures."""
    with transaction(context.database_url) as db:
        for tenant, group in groupby(embedded, key=itemgetter(0)):
            found = {id_: embedded[tenant, id_] for _, id_ in group}
            live = restore_vectors(context, db, tenant, list(found), np.stack([*found.values()]), now)
            _sign_ended(context, db, tenant, {id_: found[id_] for id_ in found if id_ not in live})


def _sign_ended(context: Context, db: Connection, tenant: int, embedded: Mapping[UUID, Vectors]) -> None:
    """Write the signatures of locked facts that have ended, from their (dims,) vectors."""
    if not embedded or not _is_embedder(context, db):
        return
    if signed := sorted(vectors.mark_signed(db, tenant, list(embedded))):
        signatures.add(db, tenant, signed, encode(np.stack([embedded[id_] for id_ in signed])))
        signatures.retire(db, [tenant] * len(signed), signed)


def _mismatch(stored: StoredEmbedder, own: StoredEmbedder) -> str:
    """Return the error message: the stored embedder, the configured one, and what to do."""
    commands = "`ebb reembed`, or `ebb up --reembed` where nothing runs."
    if (stored.name, stored.dims) == (own.name, own.dims):
        return f"The database holds signatures of another version of Ebb. Compute all vectors again: {commands}"
    return (
        f"The database holds vectors of {stored.name} ({stored.dims} dims); "
        f"configured is {own.name} ({own.dims} dims). "
        f"Set EBB_EMBEDDER and EBB_EMBEDDING_MODEL back, or compute all vectors with the configured one: {commands}"
    )


def _own(context: Context) -> StoredEmbedder:
    return StoredEmbedder(context.embedder.name, context.embedder.dims, SEED)
