"""Add: write new facts with their activity, vectors and signatures, without duplicates."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeAlias
from uuid import UUID
from zlib import crc32

import numpy as np
from ebb.contract.facts import NewFact
from ebb.contract.facts import Stored as Answer

from workers.context import Context
from workers.core import lifetime, tiers
from workers.core.arrays import Vectors
from workers.core.episodes import branch
from workers.core.fading import FadingRules, as_written
from workers.core.fidelity import FULL, PENDING
from workers.core.signature import encode
from workers.core.text import adds_detail, less_specific, same_record, text_digest
from workers.errors import InvalidInputError, UnavailableError
from workers.memory import estimate
from workers.memory.embed import keep_vectors, vectors_of
from workers.memory.lifetime import UNKNOWN, Ending, Life, endings_at
from workers.memory.namespace_settings import hygiene, rules_of
from workers.memory.turn_limit import Turns, add_turns_within, apply_within
from workers.memory.unpack import ask_known_by_id, known_by_id
from workers.storage import activity, facts, merged_texts, statements, vectors
from workers.storage.connection import Connection, send_all
from workers.storage.facts import Fact, Known, TextInSession
from workers.storage.namespaces import Namespace
from workers.validation.facts import ttl


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome of one fact: its id or that of the equal fact, and whether it has a vector.

    `faded` is a known fact that was touched and has less than its full vector; `changed` and `ignored` name the fields
    that were changed in a known fact, and those that were not. A `repeat` has been stored under its own id before, so
    it is no use of the equal fact. A `restated` one took the place of another.
    """

    id: UUID
    action: str
    embedded: bool
    repeat: bool = False
    restated: bool = False
    faded: bool = False
    life: Life = UNKNOWN
    changed: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    contradicts: list[UUID] = field(default_factory=list)

    @property
    def is_use(self) -> bool:
        """Return whether a known fact was stated again."""
        return (self.action == "duplicate" or self.restated) and not self.repeat

    @property
    def answer(self) -> Answer:
        """Return the answer; `changed`, `ignored`, `contradicts` and `ended_at_once` are set only if they apply."""
        said = {
            "changed": self.changed,
            "ignored": self.ignored,
            "contradicts": self.contradicts,
            "ended_at_once": self.life.over,
        }
        some: dict[str, Any] = {name: one for name, one in said.items() if one}
        return Answer(id=self.id, action=self.action, embedded=self.embedded, **self.life.fields, **some)


@dataclass(frozen=True, slots=True)
class Added:
    """Facts just added: their hashes, those with a vector, and the decay class and ending of each."""

    hashes: dict[UUID, bytes]
    embedded: set[UUID]
    endings: dict[UUID, tuple[str | None, Ending]]


Embedded: TypeAlias = dict[bytes, Vectors | None]
"""The (dims,) vectors of new statements by hash; None where there is none yet."""


def add_within(
    context: Context,
    db: Connection,
    owner: Namespace,
    rows: Sequence[Fact],
    given: Sequence[NewFact],
    embedded: Embedded | None,
    now: datetime,
    known: statements.Known | None = None,
    *,
    count_turns: bool = True,
) -> Added:
    """Write the new facts with their activity, vectors and signatures; without `embedded`, embed them.

    `known` are the live facts with the same texts; without it they are read.
    """
    tenant, own = owner.id, hygiene(context, owner.settings)
    is_current = _ask_whether_current(context, db, rows, embedded)
    sent, read_added = _send_new(context, db, owner, rows, given, known, now)
    send_all(db)  # PostgreSQL writes the facts while their vectors and signatures are computed
    found = _having_vectors(context, [row for row, _ in sent], embedded)
    usable = found if is_current() else {}
    signed = dict(zip(usable, encode(np.stack(list(usable.values()))), strict=True)) if usable else {}
    added = read_added()
    new = [(row, fact) for row, fact in sent if added.get(row.id) == row.hash]
    kept = [row.id for row, _ in new if row.id in usable]
    turns = add_turns_within(db, tenant, [row for row, _ in new], count_turns=count_turns)
    fidelity = [FULL if row.id in usable else PENDING for row, _ in new]
    endings = _add_activity(context, db, tenant, new, turns, rules_of(context, own), fidelity, now)
    if kept:
        keep_vectors(db, tenant, kept, np.stack([usable[id_] for id_ in kept]), np.stack([signed[id_] for id_ in kept]))
    apply_within(context, db, tenant, turns, own.persistent_turns, now)
    return Added({row.id: row.hash for row, _ in new}, set(kept), endings)


def _ask_whether_current(
    context: Context, db: Connection, rows: Sequence[Fact], embedded: Embedded | None
) -> Callable[[], bool]:
    """Ask whether the database's vectors are of the current embedder; return the reader of the answer."""
    if embedded is not None and not any(embedded.get(row.hash) is not None for row in rows):
        return lambda: False  # the name of a failing embedder may be unknown
    return vectors.ask_whether_embedder(db, context.embedder.name)


def _having_vectors(context: Context, rows: Sequence[Fact], embedded: Embedded | None) -> dict[UUID, Vectors]:
    """Return the vectors of facts by id, computed here unless they are given."""
    if embedded is None:
        found = vectors_of(context, [row.text for row in rows])
    else:
        found = [embedded.get(row.hash) for row in rows]
    return {row.id: vector for row, vector in zip(rows, found, strict=True) if vector is not None}


def _send_new(
    context: Context,
    db: Connection,
    owner: Namespace,
    rows: Sequence[Fact],
    given: Sequence[NewFact],
    known: statements.Known | None,
    now: datetime,
) -> tuple[list[tuple[Fact, NewFact]], Callable[[], dict[UUID, bytes]]]:
    """Send the facts with a new statement and an unused id; return them, and the reader of `facts.ask_add`."""
    tenant, hashes = owner.id, [row.hash for row in rows]
    stated = statements.ask(db, tenant, hashes) if known is None else lambda: known
    merged = ask_merged(db, owner, rows, given, now)
    taken = ask_known_by_id(context, db, tenant, [row.id for row in rows])
    estimated = _ask_estimated(db, owner, rows)
    live, taken_in = stated(), merged()
    if said := taken_in | statements.known_with_other_detail(hashes, live):  # wait while one of them is being forgotten
        activity.lock(db, tenant, list(said.values()))
        stated, merged = statements.ask(db, tenant, hashes), ask_merged(db, owner, rows, given, now)
        live, taken_in = stated(), merged()
    once = list(_once(estimated(), given, taken(), live, taken_in).values())
    return once, facts.ask_add(db, tenant, [row for row, _ in once])


def ask_merged(
    db: Connection, owner: Namespace, rows: Sequence[Fact], given: Sequence[NewFact], now: datetime
) -> Callable[[], dict[bytes, UUID]]:
    """Send the query for the live facts into which equal ones were merged, by statement; return its reader.

    Facts that are to stay `apart` equal none. In a namespace without merged facts nothing is sent.
    """
    hashes = [row.hash for row, fact in zip(rows, given, strict=True) if not fact.apart]
    return merged_texts.ask_known(db, owner.id, hashes, now) if owner.merges and hashes else dict


def _ask_estimated(db: Connection, owner: Namespace, rows: Sequence[Fact]) -> Callable[[], list[Fact]]:
    """Return a function that gives the facts with their content salience, estimated where none was given."""
    wanting = [row for row in rows if row.content_salience is None]
    said = [TextInSession(row.id, row.text, row.role, row.session, row.turn) for row in wanting]
    read = estimate.ask_salience(db, owner.id, said, owner.counted_facts, owner.mean_words)

    def estimated() -> list[Fact]:
        found = iter(read())
        return [row._replace(content_salience=next(found)) if row.content_salience is None else row for row in rows]

    return estimated


def _once(
    rows: Sequence[Fact],
    given: Sequence[NewFact],
    taken: Mapping[UUID, Known],
    live: statements.Known,
    merged: Collection[bytes],
) -> dict[bytes, tuple[Fact, NewFact]]:
    """Return the first fact with an unused id for each new statement, by hash.

    One that a `live` fact makes, or one before it, with more or less detail, is not new. Nor is one that has ended
    since it was stored, if it is repeated in the batch, as in an import that is made again: it was a duplicate then.
    """
    once: dict[bytes, tuple[Fact, NewFact]] = {}
    by_age = attrgetter("created_at", "id")
    said = {text: {one.identity: one.identity for one in sorted(own, key=by_age)} for text, own in live.items()}
    ids, ended = set(taken), set[bytes]()
    for row, fact in zip(rows, given, strict=True):
        alike = said.setdefault(text_digest(row.hash), {})
        if _has_ended(row, taken.get(row.id)):
            ended.update(less_specific(row.hash))
        is_known = row.hash in alike or row.hash in merged or adds_detail(alike, row.hash)
        if not is_known and (fact.again or row.hash not in ended) and row.id not in ids:
            once[row.hash] = (row, fact)
            ids.add(row.id)
            alike.setdefault(row.hash, row.hash)
    return once


def _has_ended(row: Fact, known: Known | None) -> bool:
    """Return whether a fact was stored before under its id and is not live any more."""
    return known is not None and not known.live and same_record(known.hash, row.hash)


def _add_activity(
    context: Context,
    db: Connection,
    tenant: int,
    new: Sequence[tuple[Fact, NewFact]],
    turns: Turns,
    rules: FadingRules,
    fidelity: Sequence[int],
    now: datetime,
) -> dict[UUID, tuple[str | None, Ending]]:
    """Write the activity of new facts; return their decay classes and endings."""
    if not new:
        return {}
    classes = [fact.decay_class for _, fact in new]
    anchors = activity.anchors_for(_starts(context, new, now), classes, fidelity)
    faded = as_written(anchors, now.timestamp(), rules)
    ids = [row.id for row, _ in new]
    segments = [crc32(id_.bytes) % context.settings.segments for id_ in ids]
    sources = [fact.decay_class_source for _, fact in new]
    activity.add(db, tenant, ids, segments, anchors, classes, sources, [turns.turns] * len(ids), faded)
    return dict(zip(ids, zip(classes, endings_at(faded.ends_at, faded.end_reason), strict=True), strict=True))


def _starts(context: Context, new: Sequence[tuple[Fact, NewFact]], now: datetime) -> dict[str, Any]:
    """Return the initial anchors by column: decay starts now, or at the last use that an archive gives.

    With a last use, a lifetime that use does not prolong starts at the creation, as it did in the archive.
    """
    encoded = [_encoded_at(fact, now).timestamp() for _, fact in new]
    confirmed = [_confirmed_at(fact, now).timestamp() for _, fact in new]
    strength = np.array([_strength(context, row, fact) for row, fact in new], np.float64)
    coactivations = np.array([fact.coactivations for _, fact in new])
    return {
        "base": tiers.base_for(strength, coactivations),
        "coactivations": coactivations,
        "last_seen_at": [(fact.last_seen_at or now).timestamp() for _, fact in new],
        "confidence": [fact.confidence for _, fact in new],
        "confirmed_at": confirmed,
        "branch": [branch(row.kind, fact.durability) for row, fact in new],
        "encoded_at": encoded,
        "expires_at": [_expiry(fact, at) for (_, fact), at in zip(new, confirmed, strict=True)],
    }


def _expiry(fact: NewFact, confirmed_at: float) -> float:
    own = ttl(fact.kind, fact.entity, fact.key, fact.metadata)
    return lifetime.expiry(fact.decay_class, confirmed_at) if own is None else confirmed_at + own


def _strength(context: Context, row: Fact, fact: NewFact) -> float:
    """Return the strength of a new fact: as given, else its content salience."""
    if fact.strength is not None:
        return fact.strength
    if row.salience_given or row.content_salience is None or context.settings.salience == "constant":
        return fact.salience
    return row.content_salience


def _encoded_at(fact: NewFact, now: datetime) -> datetime:
    """Return the start of a lifetime that use does not prolong."""
    return now if fact.last_seen_at is None else fact.created_at or fact.last_seen_at


def _confirmed_at(fact: NewFact, now: datetime) -> datetime:
    """Return the start of a lifetime, which is the last use if use prolongs it."""
    encoded_at = _encoded_at(fact, now)
    is_renewed = lifetime.lifetime(fact.decay_class).refreshed_by_use
    return max(encoded_at, fact.last_seen_at or now) if is_renewed else encoded_at


def answers_for(
    context: Context,
    db: Connection,
    owner: Namespace,
    rows: Sequence[Fact],
    given: Sequence[NewFact],
    added: Added,
    now: datetime,
) -> list[Stored | InvalidInputError]:
    """Return the outcome of each given fact; of two equal ones the second is a duplicate of the first."""
    first = _first_of_each(rows, added.hashes)
    others = [i for i, new in enumerate(first) if not new]
    known = iter(_answers_for_known(context, db, owner, [rows[i] for i in others], [given[i] for i in others], now))
    return [
        Stored(row.id, "added", row.id in added.embedded) if new else next(known)
        for row, new in zip(rows, first, strict=True)
    ]


def _answers_for_known(
    context: Context, db: Connection, owner: Namespace, rows: Sequence[Fact], given: Sequence[NewFact], now: datetime
) -> list[Stored | InvalidInputError]:
    if not rows:
        return []
    tenant = owner.id
    said = statements.known_by_hash(db, tenant, [row.hash for row in rows])
    taken = known_by_id(context, db, tenant, [row.id for row in rows])
    merged = ask_merged(db, owner, rows, given, now)()
    unembedded = vectors.pending_among(db, tenant, [*said.values(), *merged.values()]) if said or merged else set()
    answers: list[Stored | InvalidInputError] = []
    ended: dict[bytes, UUID] = {}
    for row in rows:
        if (there := said.get(row.hash)) is None:
            if _has_ended(row, taken.get(row.id)):
                ended |= {one: ended.get(one, row.id) for one in less_specific(row.hash)}
            if row.id not in taken and row.hash in ended:
                answers.append(Stored(ended[row.hash], "duplicate", embedded=False, repeat=True))
            elif row.id not in taken and row.hash in merged:
                there = merged[row.hash]
                answers.append(Stored(there, "duplicate", there not in unembedded))
            else:
                answers.append(_not_live(row, taken.get(row.id)))
        else:
            action = "unchanged" if there == row.id else "duplicate"
            answers.append(Stored(there, action, there not in unembedded, repeat=row.id in taken))
    return answers


def _first_of_each(rows: Sequence[Fact], added: dict[UUID, bytes]) -> list[bool]:
    """Return for each given fact whether it was added itself, not an equal one before it."""
    unanswered = dict(added)
    return [unanswered.get(row.id) == row.hash and unanswered.pop(row.id) is not None for row in rows]


def _not_live(row: Fact, taken: Known | None) -> Stored | InvalidInputError:
    if taken is None:
        raise UnavailableError("A fact that said the same was forgotten at this very moment: try again.")
    if same_record(taken.hash, row.hash):
        return Stored(row.id, "unchanged", embedded=False)
    return InvalidInputError(f"id: {row.id} belongs to another fact already; leave it out, or give a new one.")
