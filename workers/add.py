"""Add: facts that are new are written with their activity, vectors and signatures, each thing said once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zlib import crc32

import numpy as np

from workers.context import Context
from workers.core import lifetime, tiers
from workers.core.arrays import Vectors
from workers.core.fading import written
from workers.core.fidelity import FULL, PENDING
from workers.errors import InvalidInputError, UnavailableError
from workers.intake import NewFact
from workers.regenerate import keep_vectors
from workers.storage import activity, embedders, facts, pending
from workers.storage.connection import Connection
from workers.storage.facts import Fact, Known


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one given fact: its id or that of the one that says the same, and whether it has a vector."""

    id: UUID
    action: str
    embedded: bool


def add_within(
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
    activity.add(db, tenant, ids, segments, anchors, classes, [fact.decay_class_source for _, fact in new], faded)


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


def answers_for(
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
