"""Import: write the records of an archive as they were, with their past, and restore facts that have ended since."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID
from zlib import crc32

import numpy as np
from ebb.contract.retention import Outcome
from ebb.contract.values import LAST_INSTANT, REQUESTED

from workers.context import Context
from workers.core.arrays import Vectors
from workers.core.fading import as_written
from workers.core.fidelity import FINGERPRINT, FULL, PENDING
from workers.core.hygiene import merged
from workers.core.signature import encode
from workers.core.text import same_record
from workers.core.tiers import Tier
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.memory import estimate
from workers.memory.add import Stored
from workers.memory.embed import keep_vectors, vectors_of
from workers.memory.lifetime import date_ends
from workers.memory.namespace_settings import rules_for
from workers.memory.restore import restore_within
from workers.memory.unpack import know_merged, known_by_id, unpack
from workers.storage import (
    activity,
    documents,
    due,
    imports,
    links,
    namespaces,
    occurrences,
    signatures,
    statements,
    vectors,
)
from workers.storage.connection import Connection, transaction, writing
from workers.storage.facts import Known, TextInSession
from workers.validation.archived import (
    ArchivedContradiction,
    ArchivedDocument,
    ArchivedEvent,
    ArchivedFact,
    ArchivedLikeness,
    ArchivedLink,
    ArchivedNamespace,
    ArchivedOccurrence,
    ArchivedRelation,
    ArchivedWish,
    Event,
    Record,
)
from workers.validation.facts import digest, ttl

Imported = Stored | InvalidInputError | str
Writer = Callable[[Connection, int, Sequence[Any]], list[Imported]]

CONTENT = (
    "kind", "text", "summary", "category", "entity", "key", "value", "source", "tags", "importance", "metadata",
    "session", "turn", "role", "source_date",
)  # fmt: skip
PAST = (
    "created_at", "valid_from", "valid_until", "superseded_at", "superseded_by", "supersedes_id", "forgotten_at",
    "forgotten_reason", "forgotten_by", "tombstone_at", "content_salience", "salience_given",
)  # fmt: skip

DONE = ("created_at", "superseded_at", "forgotten_at", "tombstone_at")
"""Instants at which something was done to a fact; others may lie in the future, such as the end of a lifetime."""

USED = ("last_seen_at", "last_confirmed_at", "last_accessed_at", "encoded_at")
"""Instants of its state from which its strength and lifetime follow."""

SEEN = ("last_observed", "forgotten_at", "read_at", "at", "after")
"""Instants of relations, deletion requests, documents and events."""


def import_records(context: Context, namespace: str, records: Sequence[Record], now: datetime) -> list[Imported]:
    """Write the records of an archive into a namespace; return the outcomes in order. Idempotent.

    A fact with a known id is left unchanged, but restored if decay has forgotten it since the archive was written. A
    live fact that equals another is not written, nor is any that must stay forgotten or was erased on request, unless
    the archive has it as forgotten on request, too. Nor is a chunk of a file that was indexed here, as the file does
    not contain it any more. Vectors are computed from the texts, and reduced by the next pass.

    Raises:
        UnavailableError: the database does not answer, or an equal fact was forgotten concurrently; no fact was
            written.
    """
    outcomes: dict[int, Imported] = {}
    by_kind: dict[type[Record], dict[int, Any]] = defaultdict(dict)
    latest = LAST_INSTANT if context.settings.time_travel else max(now, context.now())
    for place, record in enumerate(records):
        by_kind[type(record)][place] = _not_after(record, latest)
    if found := by_kind.pop(ArchivedNamespace, {}):  # by its settings facts fade from the beginning
        with transaction(context.database_url) as db:
            tenant = namespaces.find_or_add(db, namespace).id
            outcomes |= zip(found, _own(db, tenant, list(found.values())), strict=True)
    if found := by_kind[ArchivedFact]:
        given = list(found.values())
        done = _restored(context, namespace, given, _facts(context, namespace, given, now), now)
        outcomes |= zip(found, done, strict=True)
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace).id
        if named := _facts_of(records):
            unpack(context, db, tenant, [*named])  # locks before the facts, as an erasure does
            imports.lock_facts(db, tenant, named)
        for kind, write in WRITERS:
            if those := by_kind[kind]:
                outcomes |= zip(those, write(db, tenant, list(those.values())), strict=True)
        if further := by_kind[ArchivedEvent]:  # which may say that its fact was merged
            know_merged(context, db, tenant, {one.fact for one in further.values()})
    return [outcomes[place] for place in range(len(records))]


def _not_after(record: Record, latest: datetime) -> Record:
    """Return a record in which later instants of what was done are replaced by `latest`.

    A request dated in the future could be neither purged nor overtaken by another until then, a fact or a relation used
    in the future would not fade until then, and a file read in the future would not be indexed again until then.
    """
    if isinstance(record, ArchivedFact):
        past = record.past
        done = {name: min(at, latest) for name in DONE if (at := getattr(past, name)) is not None}
        events = [Event(at=min(one.at, latest), what=one.what, details=one.details) for one in past.events]
        used = {name: min(at, latest) for name in USED if (at := getattr(past.state, name)) is not None}
        state = past.state.model_copy(update=used)
        return replace(record, past=past.model_copy(update={**done, "state": state, "events": events}))
    seen = {name: latest for name in SEEN if getattr(record, name, latest) > latest}
    if isinstance(record, ArchivedEvent):
        return ArchivedEvent(**(dict(record) | seen))  # without a length of time that is too long then
    return record.model_copy(update=seen)


def _facts_of(records: Sequence[Record]) -> set[UUID]:
    """Return the facts that records stand beside."""
    found = set[UUID]()
    for record in records:
        if isinstance(record, ArchivedLink):
            found |= {record.source, record.target}
        elif isinstance(record, ArchivedContradiction | ArchivedLikeness):
            found |= {record.fact, record.other}
        elif isinstance(record, ArchivedOccurrence | ArchivedWish | ArchivedEvent):
            found.add(record.fact)
    return found


def _facts(context: Context, namespace: str, given: Sequence[ArchivedFact], now: datetime) -> list[Imported]:
    hashes = [digest(one.fact) for one in given]
    with transaction(context.database_url) as db:
        tenant = namespaces.find_or_add(db, namespace).id
        outcomes: dict[int, Imported] = {**_refused(context, db, tenant, given, hashes)}
    new = {place: pair for place, pair in enumerate(zip(given, hashes, strict=True)) if place not in outcomes}
    outcomes |= zip(new, _added(context, tenant, list(new.values()), now), strict=True)
    done = [outcomes[place] for place in range(len(given))]
    _note_repeats(context, tenant, given, done)
    return done


def _note_repeats(context: Context, tenant: int, given: Sequence[ArchivedFact], done: Sequence[Imported]) -> None:
    """Record where facts that others state already were said, too."""
    said = [
        (known.id, one.id, one.fact.session, one.fact.turn, one.fact.role, one.fact.source_date or one.past.created_at)
        for one, known in zip(given, done, strict=True)
        if isinstance(known, Stored) and known.action == "duplicate"
    ]
    if said:
        with transaction(context.database_url) as db:
            imports.lock_facts(db, tenant, {known for known, *_ in said})
            occurrences.add(db, tenant, said)


def _added(
    context: Context, tenant: int, new: Sequence[tuple[ArchivedFact, bytes]], now: datetime
) -> list[Stored | InvalidInputError]:
    """Write facts, each with its hash; return their outcomes."""
    embedded = zip(new, vectors_of(context, [one.fact.text for one, _ in new]), strict=True)
    having = {one.id: vector for (one, _), vector in embedded if vector is not None}
    with writing(context.database_url) as db:
        added = imports.add_facts(db, tenant, _estimated(db, tenant, [_row(*one) for one in new]))
        stated = [hash_ for one, hash_ in new if one.id in added and one.past.forgotten_reason not in REQUESTED]
        if statements.forgotten_among(db, tenant, stated):
            raise UnavailableError("Something of this was forgotten at this very moment: import it again.")
        with_vector = _write(context, db, tenant, [one for one, _ in new if one.id in added], having, now)
        unwritten = [(one, hash_) for one, hash_ in new if one.id not in added]
        others = known_by_id(context, db, tenant, [one.id for one, _ in unwritten])
        said = statements.known_exactly(db, tenant, [hash_ for one, hash_ in unwritten if not one.past.ended])
    return [
        Stored(one.id, "kept" if one.past.ended else "added", one.id in with_vector)
        if one.id in added
        else _met(one.id, hash_, others.get(one.id), None if one.past.ended else said.get(hash_))
        for one, hash_ in new
    ]


def _met(id_: UUID, hash_: bytes, known: Known | None, stated: UUID | None) -> Stored | InvalidInputError:
    """Return the outcome of a fact that could not be added: another delivery, or an equal line, was just stored.

    `known` is the fact with its id, `stated` the live one that states it.
    """
    if known is not None and same_record(known.hash, hash_):
        return Stored(id_, "unchanged", embedded=True)
    if known is None and stated is not None:
        return Stored(stated, "duplicate", embedded=True)
    return InvalidInputError(f"id: what {id_} says was just stored by another: import it again.")


def _restored(
    context: Context, namespace: str, given: Sequence[ArchivedFact], outcomes: list[Imported], now: datetime
) -> list[Imported]:
    """Restore facts that were live when the archive was written and that decay has forgotten since."""
    there = [
        isinstance(outcome, Stored) and outcome.action == "unchanged" and outcome.id == one.id and one.past.live
        for one, outcome in zip(given, outcomes, strict=True)
    ]
    ids = [one.id for one, is_there in zip(given, there, strict=True) if is_there]
    if not ids:
        return outcomes
    with context.namespace(namespace) as (db, tenant):
        restored, faded = restore_within(context, db, tenant, ids, now, namespace, by="import")
    return [
        _outcome(one.id, restored[one.id], faded=one.id in faded) if is_there else outcome
        for one, outcome, is_there in zip(given, outcomes, there, strict=True)
    ]


def _outcome(id_: UUID, outcome: Outcome | InvalidInputError, *, faded: bool) -> Stored:
    """Return the outcome of a fact that was known; it may have been erased since."""
    if isinstance(outcome, InvalidInputError):  # it is erased, or it equals a live fact
        return Stored(id_, "forgotten" if isinstance(outcome, NotFoundError) else "duplicate", embedded=True)
    action = "forgotten" if outcome.reason in REQUESTED else outcome.action
    return Stored(id_, action, embedded=True, faded=faded)


def _refused(
    context: Context, db: Connection, tenant: int, given: Sequence[ArchivedFact], hashes: Sequence[bytes]
) -> dict[int, Stored | InvalidInputError]:
    """Return the outcomes and errors of the facts that are not written, by index."""
    known = known_by_id(context, db, tenant, [one.id for one in given])
    stating = {id_: one.hash for id_, one in known.items()}
    said = statements.known_exactly(db, tenant, hashes)
    deleted = statements.forgotten_among(db, tenant, hashes)
    erased = statements.forgotten_of(db, tenant, [one.id for one in given])
    indexed = documents.indexed(db, tenant, {path for one in given if (path := _file(one))})
    refused: dict[int, Stored | InvalidInputError] = {}
    for place, (one, hash_) in enumerate(zip(given, hashes, strict=True)):
        stated = None if one.past.ended else hash_
        if one.id in stating and not same_record(stating[one.id], hash_):
            refused[place] = InvalidInputError(f"id: {one.id} belongs to another fact already.")
        elif one.id in stating:
            refused[place] = Stored(one.id, "unchanged", embedded=True)
            if stated is not None and stated not in deleted:
                said.setdefault(stated, one.id)  # of a later line, which was a duplicate when this one was stored
        elif stated in said:
            action = "unchanged" if said[stated] == one.id else "duplicate"  # just added by another delivery
            refused[place] = Stored(said[stated], action, embedded=True)
        elif one.past.forgotten_reason not in REQUESTED and (hash_ in deleted or one.id in erased):
            refused[place] = Stored(deleted.get(hash_, one.id), "forgotten", embedded=False)
        elif _file(one) in indexed:
            refused[place] = Stored(one.id, "forgotten", embedded=False)
        else:
            stating[one.id] = hash_
            if stated is not None:
                said[stated] = one.id
    return refused


def _file(one: ArchivedFact) -> str | None:
    """Return the file of which a fact is a chunk, if any."""
    return one.fact.source if one.fact.kind == "chunk" else None


def _row(one: ArchivedFact, hash_: bytes) -> dict[str, Any]:
    content, past = one.fact.model_dump(mode="json"), one.past.model_dump(mode="json")
    own = {"id": str(one.id), "hash": f"\\x{hash_.hex()}"}
    said = {name: content[name] for name in CONTENT} | {"tags": content["tags"] or []}
    return own | said | {name: past[name] for name in PAST}


def _estimated(db: Connection, tenant: int, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with their content salience, estimated where the archive has none."""
    columns = ("id", "text", "role", "session", "turn")
    said = [TextInSession(*(row[name] for name in columns)) for row in rows if row["content_salience"] is None]
    found = iter(estimate.salience_within(db, tenant, said))
    return [
        row | {"content_salience": next(found), "salience_given": False} if row["content_salience"] is None else row
        for row in rows
    ]


def _write(
    context: Context,
    db: Connection,
    tenant: int,
    those: Sequence[ArchivedFact],
    having: Mapping[UUID, Vectors],
    now: datetime,
) -> Collection[UUID]:
    """Write the other rows of facts just added; return those that have a vector or, if they ended, a signature."""
    if not those:
        return ()
    if having and not vectors.is_embedder(db, context.embedder.name):
        having = {}
    states = [_activity(one, now, context.settings.segments, embedded=one.id in having) for one in those]
    imports.add(db, imports.ADD_ACTIVITY, tenant, states)
    imports.take_own(db, tenant, max(one.past.state.occurred or 0 for one in those), {})
    events = [{"fact": str(one.id), **event.model_dump(mode="json")} for one in those for event in one.past.events]
    imports.add(db, imports.ADD_EVENTS, tenant, events)
    know_merged(context, db, tenant, [one.id for one in those])
    _write_vectors(db, tenant, [one for one in those if one.id in having], having)
    rows = activity.lock(db, tenant, [one.id for one in those if not one.past.ended])
    faded = as_written(rows.anchors, now.timestamp(), rules_for(context, db, rows.namespaces))
    due.write_faded(db, rows, faded, rows.held)
    date_ends(context, db, tenant, [one.id for one in those if one.past.ended])
    return having


def _write_vectors(db: Connection, tenant: int, those: Sequence[ArchivedFact], having: Mapping[UUID, Vectors]) -> None:
    live = [one.id for one in those if not one.past.ended]
    ended = [one.id for one in those if one.past.ended]
    if live:
        found = np.stack([having[id_] for id_ in live])
        keep_vectors(db, tenant, live, found, encode(found))
    if ended:
        signatures.add(db, tenant, ended, encode(np.stack([having[id_] for id_ in ended])))
        signatures.retire(db, [tenant] * len(ended), ended)


def _activity(one: ArchivedFact, now: datetime, segments: int, *, embedded: bool) -> dict[str, Any]:
    """Return a row of `activity`; its decay state is computed after it is written."""
    ended, fact = one.past.ended, one.fact
    own = ttl(fact.kind, fact.entity, fact.key, fact.metadata)
    state = one.past.state if own is None else one.past.state.with_ttl(own)
    fidelity = PENDING if not embedded else FINGERPRINT if ended else FULL
    return state.model_dump(mode="json") | {
        "fact": str(one.id),
        "segment": crc32(one.id.bytes) % segments,
        "tier": int(Tier.COLD),
        "fidelity": fidelity,
        "retired": ended,
        "held": one.past.state.held and not ended,
        "due_at": "infinity" if ended else now.isoformat(),
    }


def _links(db: Connection, tenant: int, given: Sequence[ArchivedLink]) -> list[Imported]:
    added = imports.add_links(db, tenant, [one.model_dump(mode="json") for one in given])
    activity.update_worth(db, tenant, {id_ for source, target, _ in added for id_ in (source, target)})
    there = imports.linked(db, tenant, [(one.source, one.target) for one in given])
    lacking = "link: {} and {} cannot be linked, as one of them is not in this namespace. Import both facts first."
    return [
        "linked"
        if (one.source, one.target, one.type) in there
        else InvalidInputError(lacking.format(one.source, one.target))
        for one in given
    ]


def _adding(statement: str, outcome: str) -> Writer:
    """Return a function that adds records unchanged, all with the same outcome."""

    def write(db: Connection, tenant: int, given: Sequence[Any]) -> list[Imported]:
        imports.add(db, statement, tenant, [one.model_dump(mode="json") for one in given])
        return [outcome] * len(given)

    return write


def _own(db: Connection, tenant: int, given: Sequence[ArchivedNamespace]) -> list[Imported]:
    """Add turns, and the settings that the namespace has not set itself."""
    for one in given:
        imports.take_salt(db, tenant, one.salt)
        known, _ = namespaces.lock_settings(db, tenant)
        imports.take_own(db, tenant, one.turns, merged(one.settings, known))
    return ["settled"] * len(given)


def _wishes(db: Connection, tenant: int, given: Sequence[ArchivedWish]) -> list[Imported]:
    """Restore deletion requests, unless the fact lives: by digest, or where that has another salt, by the tombstone."""
    live = links.linkable(db, tenant, [one.fact for one in given])
    standing = [one for one in given if one.fact not in live]
    usable = [one for one in standing if imports.take_salt(db, tenant, one.salt)]
    imports.add(db, imports.ADD_DELETION_REQUESTS, tenant, [one.model_dump(mode="json") for one in usable])
    others = [one.fact for one in standing if one not in usable]
    statements.add_forgotten(db, [tenant] * len(others), others)
    kept = live | imports.deletion_requests_of(db, tenant, [one.fact for one in standing])
    foreign = "wish: fact {} is purged, and its digest has another salt than this namespace; import into an empty one."
    return ["wished" if one.fact in kept else InvalidInputError(foreign.format(one.fact)) for one in given]


def _events(db: Connection, tenant: int, given: Sequence[ArchivedEvent]) -> list[Imported]:
    imports.add_further_events(db, tenant, [(one.after, one.model_dump(mode="json")) for one in given])
    return ["remembered"] * len(given)


WRITERS: tuple[tuple[type[Any], Writer], ...] = (
    (ArchivedLink, _links),
    (ArchivedContradiction, _adding(imports.ADD_CONTRADICTIONS, "contradicting")),
    (ArchivedLikeness, _adding(imports.ADD_LIKENESSES, "alike")),
    (ArchivedOccurrence, _adding(imports.ADD_OCCURRENCES, "recurring")),
    (ArchivedDocument, _adding(imports.ADD_DOCUMENTS, "documented")),
    (ArchivedRelation, _adding(imports.ADD_RELATIONS, "related")),
    (ArchivedWish, _wishes),
    (ArchivedEvent, _events),
)
