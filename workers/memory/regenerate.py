"""Regenerate: what faded is restored to its full vector, from the original text, once it is used again."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import numpy as np

from workers.context import Context
from workers.core.arrays import Vectors
from workers.core.fading import Faded, written
from workers.core.fidelity import FULL
from workers.core.signature import encode
from workers.memory.decay_rules import rules_for
from workers.storage import activity, due, embedders, facts, namespaces, signatures, vectors
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction

log = logging.getLogger(__name__)


def regenerate(context: Context, namespace: str, ids: Sequence[UUID], now: datetime) -> list[UUID]:
    """Embed these facts' texts anew and keep the full vectors; return whom that changed.

    What is at full fidelity already stays as it is, so a repeat changes nothing.

    Raises:
        EmbeddingError: the embedder fails; nothing was changed.
    """
    if not context.settings.regeneration_enabled:
        return []
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        texts = facts.texts(db, tenant.id, _less_than_full(db, tenant.id, ids)) if tenant else {}
    if tenant is None or not texts:
        return []
    embedded = context.embedder.embed(list(texts.values()), retry=False)
    with transaction(context.database_url) as db:
        restored = restore_vectors(context, db, tenant.id, list(texts), embedded, now)
    for id_ in restored:
        log.info("[decay-2.0] regenerated/reinforced memory mem_%s", id_.hex)
    return restored


def _less_than_full(db: Connection, tenant: int, ids: Sequence[UUID]) -> list[UUID]:
    rows = activity.lock(db, tenant, ids)
    return rows.only(rows.anchors.fidelity != FULL).ids


def restore_vectors(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], embedded: Vectors, now: datetime
) -> list[UUID]:
    """Write (n, dims) vectors for n facts as far as they are live and not full, and make them full."""
    if not embedders.holds(db, context.embedder.name):
        log.warning("the database has changed to another embedder than %s: restart", context.embedder.name)
        return []
    place = {id_: i for i, id_ in enumerate(ids)}
    rows = activity.lock(db, tenant, ids)
    live = facts.texts(db, tenant, rows.ids)
    rows = rows.only(np.array([id_ in live for id_ in rows.ids], dtype=np.bool_) & (rows.anchors.fidelity != FULL))
    if rows.ids:
        keep_vectors(db, tenant, rows.ids, embedded[[place[id_] for id_ in rows.ids]])
        due.write_faded(db, rows, _at_full(context, db, rows, now), rows.held)
    return rows.ids


def keep_vectors(db: Connection, tenant: int, ids: Sequence[UUID], embedded: Vectors) -> None:
    """Write the (n, dims) full vectors of n facts and their signatures."""
    vectors.write(db, [tenant] * len(ids), ids, [embedded.shape[1]] * len(ids), list(embedded))
    signatures.add(db, tenant, ids, encode(embedded))


def _at_full(context: Context, db: Connection, rows: Activity, now: datetime) -> Faded:
    anchors = replace(rows.anchors, fidelity=np.full(len(rows), FULL, dtype=np.int64))
    return written(anchors, now.timestamp(), rules_for(context, db, rows.namespaces))
