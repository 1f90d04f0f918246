"""Store: what was said becomes facts, each once, whatever runs at the same time or twice."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zlib import crc32

import numpy as np
from uuid_utils.compat import uuid7

from workers.context import Context
from workers.core import lifetime, tiers
from workers.core.arrays import Vectors
from workers.core.fading import written
from workers.core.fidelity import FULL, PENDING
from workers.core.text import digest
from workers.errors import EmbeddingError, InvalidInputError, UnavailableError
from workers.forget import forget_ended
from workers.intake import NewFact
from workers.regenerate import keep_vectors
from workers.storage import activity, embedders, facts, namespaces, pending
from workers.storage.connection import Connection, transaction, writing
from workers.storage.facts import Fact, Known
from workers.touch import touch_within

log = logging.getLogger(__name__)

EMBEDDING_SECONDS = 15.0
"""After this no further batch is begun, so that storing ends before its task's limit however slow the embedder is."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one given fact: its id or that of the one that says the same, and whether it has a vector."""

    id: UUID
    action: str
    embedded: bool


def store_many(
    context: Context, namespace: str, given: Sequence[NewFact], now: datetime, *, touch: bool = True
) -> list[Stored | InvalidInputError]:
    """Store facts in one transaction and one embedding batch; return what became of each, in order.

    A fact that is there already is touched, as if it had been recalled, unless `touch` is false.

    Raises:
        UnavailableError: the database does not answer; nothing was stored.
    """
    rows = [_row(fact, now) for fact in given]
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace).id
        forget_ended(db, tenant, [row.hash for row in rows], now)
        known = facts.known_by_hash(db, tenant, [row.hash for row in rows])
    fresh = {row.hash: row.text for row in rows if row.hash not in known}
    embedded = dict(zip(fresh, embed(context, list(fresh.values())), strict=True))
    with writing(context.database_url) as db:
        added = _add(context, db, tenant, rows, given, embedded, now)
        answers = _answers(db, tenant, rows, added)
        repeated = [answer.id for answer in answers if isinstance(answer, Stored) and answer.action == "duplicate"]
        if touch and repeated:
            touch_within(context, db, tenant, repeated, now)
    return answers


def embed(context: Context, texts: Sequence[str]) -> list[Vectors | None]:
    """Return a vector for each text, batch by batch, and none for what the embedder fails at or has no time for.

    Those facts are kept all the same, found by their words, and embedded later.
    """
    size = context.settings.embedding_batch
    until = time.monotonic() + EMBEDDING_SECONDS
    found: list[Vectors | None] = []
    try:
        while len(found) < len(texts) and time.monotonic() < until:
            found += list(context.embedder.embed(texts[len(found) : len(found) + size]))
    except EmbeddingError as error:
        log.warning("facts are stored without vector and embedded later: %s", error)
    return found + [None] * (len(texts) - len(found))


def _row(fact: NewFact, now: datetime) -> Fact:
    created_at = fact.created_at or now
    return Fact(
        id=fact.id or uuid7(),
        kind=fact.kind,
        text=fact.text,
        hash=digest(fact.text),
        summary=fact.summary,
        category=fact.category,
        entity=fact.entity,
        key=fact.key,
        value=fact.value,
        source=fact.source,
        tags=fact.tags,
        importance=fact.importance,
        session=fact.session,
        turn=fact.turn,
        source_date=fact.source_date,
        created_at=created_at,
        valid_from=min(created_at, fact.source_date or created_at),
    )


def _add(
    context: Context,
    db: Connection,
    tenant: int,
    rows: Sequence[Fact],
    given: Sequence[NewFact],
    embedded: dict[bytes, Vectors | None],
    now: datetime,
) -> dict[UUID, bytes]:
    """Write what is new with its activity, vector and signature; return the new ids with their hashes."""
    once = _once(rows, given, set(facts.known_by_id(db, tenant, [row.id for row in rows])))
    added = facts.add(db, tenant, [row for row, _ in once.values()])
    new = [(row, fact, embedded.get(row.hash)) for row, fact in once.values() if added.get(row.id) == row.hash]
    # An embedder that fails may not even know its name, so it is asked only with vectors at hand.
    some = any(vector is not None for _, _, vector in new)
    usable = some and embedders.holds(db, context.embedder.name)
    with_vector = [(row, fact, vector) for row, fact, vector in new if usable and vector is not None]
    without = [(row, fact, None) for row, fact, vector in new if not usable or vector is None]
    for group, fidelity in ((with_vector, FULL), (without, PENDING)):
        _add_activity(context, db, tenant, [(row, fact) for row, fact, _ in group], fidelity, now)
    if with_vector:
        keep_vectors(db, tenant, [row.id for row, _, _ in with_vector], np.stack([v for _, _, v in with_vector]))
    return added


def _once(rows: Sequence[Fact], given: Sequence[NewFact], taken: set[UUID]) -> dict[bytes, tuple[Fact, NewFact]]:
    """Return by hash the first of the facts that say each thing, among those whose id is free."""
    once: dict[bytes, tuple[Fact, NewFact]] = {}
    ids = set(taken)
    for row, fact in zip(rows, given, strict=True):
        if row.hash not in once and row.id not in ids:
            once[row.hash] = (row, fact)
            ids.add(row.id)
    return once


def _add_activity(
    context: Context,
    db: Connection,
    tenant: int,
    new: Sequence[tuple[Fact, NewFact]],
    fidelity: int,
    now: datetime,
) -> None:
    if not new:
        return
    columns = [_anchor(row, fact) for row, fact in new]
    classes = [fact.decay_class for _, fact in new]
    anchors = activity.anchors_for({name: [c[name] for c in columns] for name in columns[0]}, classes, fidelity)
    faded = written(anchors, now.timestamp(), context.rules)
    ids = [row.id for row, _ in new]
    segments = [crc32(id_.bytes) % context.settings.segments for id_ in ids]
    activity.add(db, tenant, ids, segments, anchors, classes, faded)


def _anchor(row: Fact, fact: NewFact) -> dict[str, float]:
    """Return where a fact's forgetting starts: at its last use, or else at its creation (C-O24)."""
    created, seen = row.created_at.timestamp(), (fact.last_seen_at or row.created_at).timestamp()
    life = lifetime.lifetime(fact.decay_class)
    confirmed = max(created, seen) if life.refreshed_by_use else created
    strength = fact.salience if fact.strength is None else fact.strength
    base = float(tiers.base_for(np.array([strength]), np.array([fact.coactivations]))[0])
    return {
        "base": base,
        "coactivations": fact.coactivations,
        "last_seen_at": seen,
        "confidence": fact.confidence,
        "confirmed_at": confirmed,
        "expires_at": lifetime.expiry(fact.decay_class, confirmed),
    }


def _answers(
    db: Connection, tenant: int, rows: Sequence[Fact], added: dict[UUID, bytes]
) -> list[Stored | InvalidInputError]:
    """Say of each given fact what it became; the second of two that say the same is a duplicate of the first."""
    said = facts.known_by_hash(db, tenant, [row.hash for row in rows])
    taken = facts.known_by_id(db, tenant, [row.id for row in rows])
    unembedded = pending.among(db, tenant, list(said.values()))
    unanswered = dict(added)
    answers: list[Stored | InvalidInputError] = []
    for row in rows:
        there = said.get(row.hash)
        if unanswered.get(row.id) == row.hash:
            del unanswered[row.id]
            answers.append(Stored(row.id, "added", row.id not in unembedded))
        elif there is not None:
            answers.append(Stored(there, "unchanged" if there == row.id else "duplicate", there not in unembedded))
        else:
            answers.append(_not_live(row, taken.get(row.id)))
    return answers


def _not_live(row: Fact, taken: Known | None) -> Stored | InvalidInputError:
    if taken is None:
        raise UnavailableError("A fact that said the same was forgotten at this very moment: try again.")
    if taken.hash == row.hash:
        return Stored(row.id, "unchanged", embedded=False)
    return InvalidInputError(f"id: {row.id} belongs to another fact already; leave it out, or give a new one.")
