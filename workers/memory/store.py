"""Store: write facts without duplicates, also under concurrency and redelivery."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any
from uuid import UUID, uuid4, uuid5

from ebb.contract.facts import NewFact
from uuid_utils.compat import uuid7

from workers.context import Context
from workers.core import injection, lifetime
from workers.core.episodes import OF_DOCUMENTS
from workers.core.intent import Action, Intent, independent_stretches, requested
from workers.core.names import extract_tags
from workers.core.text import less_specific, same_subject, text_digest
from workers.errors import InvalidInputError, UnavailableError
from workers.memory import supersede
from workers.memory.add import Embedded, Stored, add_within, answers_for, ask_merged
from workers.memory.classify import classified
from workers.memory.edit import IDENTIFYING, edit_within, union_of_tags
from workers.memory.embed import vectors_of
from workers.memory.forget import forget_ended
from workers.memory.lifetime import UNKNOWN, Ending, Life, first_lives, lives
from workers.memory.namespace_settings import careful
from workers.memory.restate import explicit, ignored, restate_within
from workers.memory.supersede import Decision, KnownFact, link_outdated_within
from workers.memory.touch import Shown, touch_within
from workers.memory.unpack import known_by_id
from workers.storage import activity, edits, events, namespaces, occurrences, statements, tombstones, vectors
from workers.storage.connection import Connection, writing
from workers.storage.edits import Classed, Editable
from workers.storage.facts import Fact
from workers.storage.namespaces import Namespace
from workers.storage.supersession import find_contradictions
from workers.validation.facts import digest

JUDGED_SECONDS = 25.0
"""Time after which the LLM is not asked any more, so that a slow one does not exceed the task's limit."""

FEW = 20
"""Up to so many facts, planning for their values costs more than it saves."""

NEW = ("added", "updated")


@dataclass(frozen=True, slots=True)
class Batch:
    """Facts that are stored together: as given, as rows, with class and tags, and the intent of each.

    `reasons` are the words from which their decay classes were just derived, if they were.
    """

    said: Sequence[NewFact]
    rows: Sequence[Fact]
    given: Sequence[NewFact]
    intents: Sequence[Intent]
    reasons: Sequence[str | None]

    @property
    def forced(self) -> set[bytes]:
        """Return the hashes of facts to store even if they were forgotten on request, also with less detail."""
        given = zip(self.rows, self.said, strict=True)
        return {one for row, fact in given if fact.again for one in less_specific(row.hash)}

    def only(self, places: Sequence[int]) -> "Batch":
        """Return the batch of the facts at these indexes."""
        columns = (self.said, self.rows, self.given, self.intents, self.reasons)
        return Batch(*([column[i] for i in places] for column in columns))  # type: ignore[arg-type]  # each its own

    def without(self, deleted: Collection[bytes]) -> "Batch":
        """Return the batch without facts of these hashes."""
        return self.only([i for i, row in enumerate(self.rows) if row.hash not in deleted])


@dataclass(frozen=True, slots=True)
class Known:
    """The namespace of a batch, the statements that live facts make, and those forgotten on request.

    A fact states what was merged into it too. `rows` are the live facts with the same texts; `any_ended` is true if
    facts had to be forgotten first, as they had ended.
    """

    owner: Namespace
    rows: statements.Known
    stated: dict[bytes, UUID]
    deleted: dict[bytes, UUID]
    any_ended: bool


@dataclass(frozen=True, slots=True)
class Options:
    """Whether known facts count as used, whether turns age episodes, and the id for deduplication."""

    touch: bool = True
    count_turns: bool = True
    use: UUID | None = None


def store_many(
    context: Context,
    namespace: str,
    given: Sequence[NewFact],
    now: datetime,
    *,
    touch: bool = True,
    classify: bool = True,
    judge: bool = True,
    count_turns: bool = True,
    use: UUID | None = None,
) -> list[Stored | InvalidInputError]:
    """Store facts in one transaction and one embedding batch; return the outcomes in order.

    One that was forgotten on request is stored only with `again`. `touch` also restarts the lifetimes of known facts;
    the caller requests `regenerate` for faded ones. Without `classify`, no decay classes and tags are derived from the
    words, and facts never expire. Without `judge`, no LLM is asked, whatever the settings. New turns age episodes if
    `count_turns`, which is false for archives. A redelivery, which has the same `use`, neither touches again, nor edits
    known facts, nor applies `again`.

    Raises:
        UnavailableError: the database does not answer, or an equal fact is being forgotten concurrently; nothing was
            stored.
    """
    until = time.monotonic() + JUDGED_SECONDS
    batch, options = _batch(context, given, now, classify=classify), Options(touch, count_turns, use)
    few, judged = len(batch.rows) <= FEW, judge and context.settings.classify_before_write
    at_once = context.embedder.quick and not judged
    with writing(context.database_url, few=few) as db:
        owner = namespaces.find(db, namespace)
        known = _known(context, db, owner or namespaces.find_or_add(db, namespace), batch, now)
        batch = _with_classes(context, batch, known.owner, classify=classify)
        if at_once and owner is not None and not known.any_ended:
            return _store_within(context, db, batch, known, None, now, options)
    # no transaction waits for a slow embedder or an LLM, nor for further facts while it has forgotten ones locked
    fresh = {row.hash: row.text for row in batch.rows if row.hash not in known.stated | known.deleted}
    embedded = dict(zip(fresh, vectors_of(context, list(fresh.values())), strict=True))
    if judged:
        said = batch.rows, batch.given, batch.intents
        planned = classified(context, known.owner, *said, embedded, now, until)
        inherited = zip(batch.rows, planned[0], strict=True)
        embedded |= {row.hash: embedded[before.hash] for before, row in inherited if before.hash in embedded}
        batch = Batch(batch.said, *planned, reasons=[None] * len(given))
    with writing(context.database_url, few=few) as db:
        if judged:  # what is inherited belongs to the statement
            known = _known(context, db, known.owner, batch, now)
        return _store_within(context, db, batch, known, embedded, now, options)


def _batch(context: Context, said: Sequence[NewFact], now: datetime, *, classify: bool) -> Batch:
    given = [_with_tags(fact, classify=classify) for fact in said]
    rows = [_row(context, fact, now) for fact in given]
    intents = [requested(fact.supersedes, apart=fact.apart) for fact in given]
    return Batch(said, rows, given, intents, [None] * len(given))


def _known(context: Context, db: Connection, owner: Namespace, batch: Batch, now: datetime) -> Known:
    hashes = [row.hash for row in batch.rows]
    forgotten = statements.ask_forgotten_among(db, owner.id, hashes) if owner.deletions else dict
    read_merged = ask_merged(db, owner, batch.rows, batch.given, now)
    known = statements.ask(db, owner.id, hashes)()
    any_ended = forget_ended(context, db, owner.id, known, now)
    if any_ended:
        known = statements.ask(db, owner.id, hashes)()
    found = statements.matches_identified(db, owner.id, hashes, known)
    # A fact that is about to be superseded may be stated again, which needs a vector, and no deletion request.
    superseded = {fact.supersedes for fact in batch.given}
    stated = {hash_: id_ for hash_, id_ in found.items() if id_ not in superseded}
    kept = {*stated, *batch.forced}
    deleted = {hash_: id_ for hash_, id_ in forgotten().items() if hash_ not in kept}
    merged = {hash_: id_ for hash_, id_ in read_merged().items() if id_ not in superseded}
    return Known(owner, known, merged | stated, deleted, any_ended)


def _store_within(
    context: Context,
    db: Connection,
    batch: Batch,
    known: Known,
    embedded: Embedded | None,
    now: datetime,
    options: Options,
) -> list[Stored | InvalidInputError]:
    """Write a batch with touches, edits, contradictions and updates; return the outcomes."""
    tenant, deleted, forced = known.owner.id, known.deleted, batch.forced
    first = _is_first(db, tenant, batch.said, options.use)
    if forced and not first:
        forced = set()
        unknown = [row.hash for row in batch.rows if row.hash not in known.stated]
        deleted = deleted | statements.forgotten_among(db, tenant, unknown)
    wanted = batch.without(deleted)
    done, endings = _write(context, db, known, wanted, embedded, now, count_turns=options.count_turns)
    answers = _merged(batch.rows, deleted, done)
    added = {one.id for one in answers if isinstance(one, Stored) and one.action in NEW}
    repeated, new = answers, [row for row in batch.rows if row.id in added]
    _settle_deletion_requests(db, tenant, {row.hash for row in new}, forced)
    faded = _touched(context, db, tenant, batch.intents, answers, now, options)
    if first:
        answers = _edited(context, db, tenant, batch, answers, now)
    moved = [one.id for one in answers if isinstance(one, Stored) and not set(one.changed).isdisjoint(IDENTIFYING)]
    stated = [row.id for row in new if None not in (row.entity, row.key, row.value)]
    others = _contradicted(context, db, known.owner, [*stated, *moved], now)
    link_outdated_within(context, db, known.owner, new, now)
    _record_occurrences(db, tenant, batch.rows, repeated)
    found = _lives(context, db, known.owner, batch, answers, endings, now)
    return [
        replace(one, life=found.get(one.id, UNKNOWN), faded=one.id in faded, contradicts=others.get(one.id, []))
        if isinstance(one, Stored)
        else one
        for one in answers
    ]


def _contradicted(
    context: Context, db: Connection, owner: Namespace, ids: Sequence[UUID], now: datetime
) -> dict[UUID, list[UUID]]:
    """Record what contradicts these facts; return for each what has not been recorded before and has not ended."""
    pairs = find_contradictions(db, owner.id, ids, now)
    known = lives(context, db, owner, {}, sorted({id_ for pair in pairs for id_ in pair}), now) if pairs else {}
    found: dict[UUID, list[UUID]] = {}
    for one, other in chain(pairs, [pair[::-1] for pair in pairs]):
        if other in known and not known[other].over:
            found.setdefault(one, []).append(other)
    return found


def _record_occurrences(
    db: Connection, tenant: int, rows: Sequence[Fact], answers: Sequence[Stored | InvalidInputError]
) -> None:
    """Note where known facts were said again; last, as an erasure locks activity before facts."""
    said = [
        (one.id, row.id, row.session, row.turn, row.role, row.source_date or row.created_at)
        for row, one in zip(rows, answers, strict=True)
        if isinstance(one, Stored) and one.is_use
    ]
    occurrences.add(db, tenant, said)


def _touched(
    context: Context,
    db: Connection,
    tenant: int,
    intents: Sequence[Intent],
    answers: Sequence[Stored | InvalidInputError],
    now: datetime,
    options: Options,
) -> list[UUID]:
    """Touch the known facts of a batch and note that, unless not wanted; return those without their full vector.

    They were stated again in the same words, or in others, as an LLM finds.
    """
    repeated = [
        one.id
        for intent, one in zip(intents, answers, strict=True)
        if isinstance(one, Stored)
        if one.is_use or (intent.action is Action.NOOP and (one.id, one.action) == (intent.target, "unchanged"))
    ]
    if not repeated or not options.touch:
        return []
    return use_within(context, db, tenant, repeated, now, options.use or uuid4())


def use_within(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime, use: UUID
) -> list[UUID]:
    """Count live facts as used by being stated again, once for each `use`; return those without their full vector."""
    restate_within(context, db, tenant, ids, now)
    touched = touch_within(context, db, tenant, [Shown(ids, now, use)])
    events.add_use(db, tenant, touched.changed, now, "stored again", {})
    return touched.faded


def _is_first(db: Connection, tenant: int, said: Sequence[NewFact], use: UUID | None) -> bool:
    """Return whether this is the first delivery with the id `use`, or a repeat could not undo anything.

    A repeat could undo later edits and consolidations, or a later deletion request if `again` is given.
    """
    undoes = any(fact.again or explicit(fact) for fact in said)
    return not undoes or use is None or bool(activity.claim_uses(db, tenant, [uuid5(use, "statement")]))


def _lives(
    context: Context,
    db: Connection,
    owner: Namespace,
    batch: Batch,
    answers: Sequence[Stored | InvalidInputError],
    endings: Mapping[UUID, tuple[str | None, Ending]],
    now: datetime,
) -> dict[UUID, Life]:
    """Return the lifetimes of stored facts; those of facts that nothing changed after `_write` are not read."""
    stored = [one for one in answers if isinstance(one, Stored) and one.action != "forgotten"]
    added = _unchanged(batch, stored)
    aims = any(intent.target is not None for intent in batch.intents)
    as_added = {} if aims else {id_: endings[id_] for id_ in added}
    found = first_lives(context, owner, added, as_added, now)
    if rest := sorted({one.id for one in stored} - as_added.keys()):
        found |= lives(context, db, owner, added, rest, now)
    return found


def _unchanged(batch: Batch, stored: Sequence[Stored]) -> dict[UUID, Classed]:
    """Return the new facts that nothing changed after `_write`."""
    last = {one.id: one.action for one in stored}
    edited = {one.id for one in stored if one.changed}
    return {
        row.id: Classed(row.kind, fact.decay_class_source, row.entity, row.key, row.value, row.text, reason)
        for row, fact, reason in zip(batch.rows, batch.given, batch.reasons, strict=True)
        if last.get(row.id) in NEW and row.id not in edited
    }


def _edited(
    context: Context,
    db: Connection,
    tenant: int,
    batch: Batch,
    answers: Sequence[Stored | InvalidInputError],
    now: datetime,
) -> list[Stored | InvalidInputError]:
    """Apply the given fields to known facts, adding tags to existing ones; return the answers with the changes.

    Raises:
        UnavailableError: a known fact was forgotten, superseded or edited concurrently.
    """
    again = _known_again(batch.rows, answers)
    if not again:
        return list(answers)
    # Locked before the tags are read, as a concurrent consolidation may be adding to them.
    known = edits.read(db, tenant, activity.lock(db, tenant, [one.id for one in again.values()]).ids)
    gone = [one.id for one in again.values() if one.action == "duplicate" and one.id not in known]
    _check_live(db, tenant, gone, batch.intents, now)
    stated = {
        place: (batch.said[place], batch.rows[place], known[one.id]) for place, one in again.items() if one.id in known
    }
    for place, (_, row, now_known) in stated.items():
        if again[place].action == "duplicate" and not same_subject(now_known.hash, row.hash):
            raise UnavailableError("A fact that said the same was edited at this very moment: try again.")
    wanted = _wanted(list(stated.values()))
    changed = edit_within(context, db, tenant, wanted, now) if wanted else {}
    edited = list(answers)
    for place, (fact, _, before) in stated.items():
        named = {*explicit(fact), "decay_class", "valid_until"}
        done = [name for name in changed.get(before.id, []) if name in named]
        action = "updated" if done else again[place].action
        edited[place] = replace(again[place], action=action, changed=done, ignored=ignored(fact, before, done))
    return edited


def _check_live(db: Connection, tenant: int, gone: Sequence[UUID], intents: Sequence[Intent], now: datetime) -> None:
    """Raise if facts that were live a moment ago ended by another request than the batch, which may supersede some."""
    closed = {one.target for one in intents}
    there = tombstones.standings(db, tenant, gone, now) if gone else {}
    if any(id_ not in closed or id_ not in there or there[id_].forgotten_at is not None for id_ in gone):
        raise UnavailableError("Something of this was forgotten or superseded at this very moment: try again.")


def _known_again(rows: Sequence[Fact], answers: Sequence[Stored | InvalidInputError]) -> dict[int, Stored]:
    """Return the answers about known facts that were stated again, by index."""
    return {
        place: one
        for place, (row, one) in enumerate(zip(rows, answers, strict=True))
        if isinstance(one, Stored) and (one.is_use or (one.action, one.id) == ("unchanged", row.id))
    }


def _wanted(stated: Sequence[tuple[NewFact, Fact, Editable]]) -> dict[UUID, dict[str, Any]]:
    """Return the new values of known facts, by id; tags are added to existing ones.

    A statement that was true until some time, and is made again after it, is true without end unless another is given.
    """
    wanted: dict[UUID, dict[str, Any]] = {}
    for fact, row, known in stated:
        own, before = explicit(fact), wanted.get(known.id, {})
        until = before.get("valid_until", known.valid_until)
        if fact.valid_until is None and until is not None and row.id != known.id and row.valid_from >= until:
            own["valid_until"] = None
        if "tags" in own:
            own["tags"] = union_of_tags(before.get("tags", known.tags), own["tags"])
        if own:
            wanted[known.id] = before | own
    return wanted


def _settle_deletion_requests(db: Connection, tenant: int, added: set[bytes], forced: set[bytes]) -> None:
    """Delete revoked deletion requests; raise if a new one was committed since they were read."""
    if statements.forgotten_among(db, tenant, list(added - forced)):
        raise UnavailableError("Something of this was forgotten at this very moment: try again.")
    if revoked := list(added & forced):
        statements.lift_forgotten(db, tenant, revoked)


def _merged(
    rows: Sequence[Fact], deleted: dict[bytes, UUID], answers: Sequence[Stored | InvalidInputError]
) -> list[Stored | InvalidInputError]:
    """Return the answers in the order of the rows, including those of facts that must stay forgotten."""
    stored = iter(answers)
    return [
        Stored(deleted[row.hash], "forgotten", embedded=False) if row.hash in deleted else next(stored) for row in rows
    ]


def _with_tags(fact: NewFact, *, classify: bool) -> NewFact:
    """Return the fact with its given tags, even if empty, or tags derived from its text.

    Facts of archives and chunks of documents get no derived tags.
    """
    if fact.tags is not None or not classify or fact.kind == "chunk":
        return fact
    tags = extract_tags(fact.text, fact.entity)
    return fact.model_copy(update={"tags": tags}) if tags else fact


def _with_classes(context: Context, batch: Batch, owner: Namespace, *, classify: bool) -> Batch:
    """Return the batch with decay classes by the settings of its namespace."""
    is_careful = careful(context, owner.settings)
    classed = [_with_class(fact, classify=classify, careful=is_careful) for fact in batch.given]
    return replace(batch, given=[fact for fact, _ in classed], reasons=[reason for _, reason in classed])


def _with_class(fact: NewFact, *, classify: bool, careful: bool) -> tuple[NewFact, str | None]:
    """Return the fact with its decay class, and the words that decided; only semantic facts get a derived class."""
    if fact.decay_class is None and classify and fact.kind == "semantic":
        own, reason = lifetime.classified(fact.entity, fact.key, fact.value, fact.text, careful=careful)
        return fact.model_copy(update={"decay_class": own, "decay_class_source": "auto"}), reason
    source = None if fact.decay_class is None else fact.decay_class_source or "explicit"
    return fact.model_copy(update={"decay_class_source": source}), None


def _row(context: Context, fact: NewFact, now: datetime) -> Fact:
    """Return a fact as its row; most columns are as they were given."""
    created_at, gives_salience = fact.created_at or now, _gives_salience(fact)
    own: dict[str, Any] = {
        "id": fact.id or uuid7(),
        "hash": digest(fact),
        "summary": _summary(fact, context.settings.summary_threshold),
        "tags": fact.tags or [],
        "content_salience": round(fact.salience, 6) if gives_salience else None,
        "salience_given": gives_salience,
        "created_at": created_at,
        "valid_from": fact.valid_from or min(filter(None, (created_at, fact.source_date, fact.valid_until))),
    }
    return Fact(**own, **{name: getattr(fact, name) for name in Fact._fields if name not in own})


def _gives_salience(fact: NewFact) -> bool:
    """Return whether the caller gave a salience; in an archive, which has a strength, it is not content salience."""
    return "salience" in fact.model_fields_set and fact.strength is None


def _summary(fact: NewFact, threshold: int) -> str | None:
    """Return a fact's own summary, or one for a long text that is no document."""
    if fact.summary is None and fact.kind not in OF_DOCUMENTS and len(fact.text) > threshold:
        return injection.summary(fact.text)
    return fact.summary


def _write(
    context: Context,
    db: Connection,
    known: Known,
    batch: Batch,
    embedded: Embedded | None,
    now: datetime,
    *,
    count_turns: bool,
) -> tuple[list[Stored | InvalidInputError], dict[UUID, tuple[str | None, Ending]]]:
    """Write facts as if each were stored separately, in order; return the outcomes, and the endings of new facts."""
    owner, tenant = known.owner, known.owner.id
    said = _texts_of_targets(context, db, tenant, batch.intents)
    # They still hold: the same transaction has read them, and it has written no fact since.
    read = known.rows if embedded is None and all(intent.target is None for intent in batch.intents) else None
    answers: dict[int, Stored | InvalidInputError] = {}
    endings: dict[UUID, tuple[str | None, Ending]] = {}
    ids, texts = [row.id for row in batch.rows], [text_digest(row.hash) for row in batch.rows]
    for places in independent_stretches(ids, texts, batch.intents, said):
        own = batch.only(places)
        decisions = dict(zip(places, supersede.settle_within(db, tenant, own.rows, own.intents, now), strict=True))
        if adding := [i for i, decision in decisions.items() if decision.answer is None]:
            new = batch.only(adding)
            added = add_within(context, db, owner, new.rows, new.given, embedded, now, read, count_turns=count_turns)
            answers |= zip(adding, answers_for(context, db, owner, new.rows, new.given, added, now), strict=True)
            endings |= added.endings
        apart = {i for i in places if batch.intents[i].apart}
        answers |= _settled(db, tenant, decisions, answers, apart)
    return [answers[i] for i in range(len(ids))], endings


def _texts_of_targets(context: Context, db: Connection, tenant: int, intents: Sequence[Intent]) -> dict[UUID, bytes]:
    targets = [intent.target for intent in intents if intent.target is not None]
    known = known_by_id(context, db, tenant, targets) if targets else {}
    return {id_: text_digest(one.hash) for id_, one in known.items()}


def _settled(
    db: Connection,
    tenant: int,
    decisions: dict[int, Decision],
    answers: dict[int, Stored | InvalidInputError],
    apart: Collection[int],
) -> dict[int, Stored | InvalidInputError]:
    """Link closed facts with their successors, new ones at the places `apart`; return the answers that this changes."""
    settled: dict[int, Stored | InvalidInputError] = {}
    pairs: dict[UUID, UUID] = {}
    concerned = [one.answer.id for one in decisions.values() if isinstance(one.answer, KnownFact)]
    unembedded = vectors.pending_among(db, tenant, concerned) if concerned else set()
    for place, decision in decisions.items():
        match decision.answer, answers.get(place):
            case KnownFact(id_, action), _:
                settled[place] = Stored(id_, action, id_ not in unembedded)
            case InvalidInputError() as refusal, _:
                settled[place] = refusal
            case None, Stored(action="duplicate") if decision.closes is not None and place in apart:
                raise UnavailableError("A fact that says the same was stored at this very moment: try again.")
            case None, Stored() as stored if decision.closes is not None:
                pairs[decision.closes.id] = stored.id
                settled[place] = replace(stored, action="updated", restated=stored.action == "duplicate")
            case None, InvalidInputError() if decision.closes is not None:
                raise UnavailableError("The fact's id was taken by another at this very moment: try again.")
    supersede.link_within(db, tenant, pairs)
    return settled
