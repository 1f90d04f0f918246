"""Store: what was said becomes facts, each once, whatever runs at the same time or twice."""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID, uuid5

from ebb.contract.facts import NewFact
from uuid_utils.compat import uuid7

from workers.context import Context
from workers.core import injection, lifetime
from workers.core.arrays import Vectors
from workers.core.intent import Intent, asked, stretches
from workers.core.names import extract_tags
from workers.core.text import says_less, stem
from workers.errors import EmbeddingError, InvalidInputError, UnavailableError
from workers.memory import supersede
from workers.memory.add import Stored, add_within, answers_for
from workers.memory.classify import judge
from workers.memory.edit import edit_within, united
from workers.memory.forget import forget_ended
from workers.memory.lifetime import lives
from workers.memory.namespace_settings import careful
from workers.memory.restate import explicit, ignored, restate_within
from workers.memory.supersede import Decision, Settled, find_within
from workers.memory.touch import touch_within
from workers.storage import activity, edits, facts, namespaces, statements, vectors
from workers.storage.connection import Connection, transaction, writing
from workers.storage.edits import Classed, Editable
from workers.storage.facts import Fact
from workers.storage.namespaces import Namespace
from workers.validation.facts import digest

log = logging.getLogger(__name__)

EMBEDDING_SECONDS = 15.0
"""After this no further batch is begun, so that storing ends before its task's limit however slow the embedder is."""

JUDGED_SECONDS = 25.0
"""After this the LLM is not asked about a fact any more, for the same reason."""

Embedded: TypeAlias = dict[bytes, Vectors | None]
"""The (dims,) vectors of new statements by hash, and none where there is none yet."""

NEW = ("added", "updated")
IDENTIFYING = frozenset({"entity", "key", "value"})


@dataclass(frozen=True, slots=True)
class Batch:
    """Facts that are stored together: as given, as rows, with class and tags, and what is to be done about each."""

    said: Sequence[NewFact]
    rows: Sequence[Fact]
    given: Sequence[NewFact]
    intents: Sequence[Intent]

    @property
    def insisted(self) -> set[bytes]:
        """Return the hashes of what is to be stored even if it was forgotten on request."""
        return {row.hash for row, fact in zip(self.rows, self.said, strict=True) if fact.again}

    def without(self, unwanted: Collection[bytes]) -> "Batch":
        """Return the facts that may be stored."""
        kept = [i for i, row in enumerate(self.rows) if row.hash not in unwanted]
        columns = (self.said, self.rows, self.given, self.intents)
        return Batch(*([column[i] for i in kept] for column in columns))  # type: ignore[arg-type]  # each its own


@dataclass(frozen=True, slots=True)
class Known:
    """The namespace of a batch, which of its statements live facts make, and which were forgotten on request."""

    owner: Namespace
    stated: dict[bytes, UUID]
    unwanted: dict[bytes, UUID]


@dataclass(frozen=True, slots=True)
class Options:
    """Whether known facts count as used, whether turns age episodes, and by which id this is counted once."""

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
    count_turns: bool = True,
    use: UUID | None = None,
) -> list[Stored | InvalidInputError]:
    """Store facts in one transaction and one embedding batch; return what became of each, in order.

    A fact that is there already is touched, as if it had been recalled, and its lifetime starts again, unless `touch`
    is false: once by the id `use`; `regenerate` is then for the caller to ask for, where it had faded. A fact without
    decay class or tags gets them by its words, unless `classify` is false: then it has no tags, and never expires.
    What was forgotten on request is not stored, unless the fact has `again`. A late repeat by the same `use` changes no
    fields of known facts, and does not insist. Without `count_turns` the turns of the facts age no episodes, as those
    of an archive must not.

    Raises:
        UnavailableError: the database does not answer, or the same fact is being forgotten at this moment; nothing was
            stored.
    """
    until = time.monotonic() + JUDGED_SECONDS
    batch = _batch(context, given, now, classify=classify)
    known = _known(context, namespace, batch, now)
    batch = replace(batch, given=_with_classes(context, batch.given, known.owner, classify=classify))
    embedded = _embedded(context, batch, known)
    if context.settings.classify_before_write:
        planned = batch.rows, batch.given, batch.intents
        batch = Batch(batch.said, *judge(context, known.owner, *planned, embedded, now, until))
    with writing(context.database_url) as db:
        return _store_within(context, db, batch, known, embedded, now, Options(touch, count_turns, use))


def _batch(context: Context, said: Sequence[NewFact], now: datetime, *, classify: bool) -> Batch:
    given = [_with_tags(fact, classify=classify) for fact in said]
    rows = _aligned([_row(context, fact, now) for fact in given])
    return Batch(said, rows, given, [asked(fact.supersedes) for fact in given])


def _known(context: Context, namespace: str, batch: Batch, now: datetime) -> Known:
    hashes = [row.hash for row in batch.rows]
    with transaction(context.database_url) as db:
        owner = namespaces.find_or_add(db, namespace)
        forget_ended(context, db, owner.id, hashes, now)
        statements.identify_stated(db, owner.id, hashes)
        stated = statements.known_by_hash(db, owner.id, hashes)
        unwanted = _unwanted(db, owner.id, batch.rows, stated, batch.insisted)
    # What is about to be superseded may be stated again, and then needs a vector of its own.
    superseded = {fact.supersedes for fact in batch.given}
    return Known(owner, {hash_: id_ for hash_, id_ in stated.items() if id_ not in superseded}, unwanted)


def _embedded(context: Context, batch: Batch, known: Known) -> Embedded:
    """Return the vectors of new statements by hash, and none where the embedder fails."""
    fresh = {row.hash: row.text for row in batch.rows if row.hash not in known.stated | known.unwanted}
    return dict(zip(fresh, embed(context, list(fresh.values())), strict=True))


def _store_within(
    context: Context, db: Connection, batch: Batch, known: Known, embedded: Embedded, now: datetime, options: Options
) -> list[Stored | InvalidInputError]:
    """Write a batch and do what follows from it; return what became of each fact."""
    tenant, unwanted, insisted = known.owner.id, known.unwanted, batch.insisted
    first = _is_first(db, tenant, batch.said, options.use)
    if insisted and not first:
        insisted = set()
        unwanted = unwanted | _unwanted(db, tenant, batch.rows, known.stated, insisted)
    done = _write(context, db, known.owner, batch.without(unwanted), embedded, now, count_turns=options.count_turns)
    answers = _merged(batch.rows, unwanted, done)
    new = _new(batch.rows, answers)
    _settle_deletion_requests(db, tenant, {row.hash for row in new}, insisted)
    faded = _touched(context, db, tenant, answers, now, options.use) if options.touch else []
    if first:
        answers = _edited(context, db, tenant, batch, answers, now)
    moved = [one.id for one in answers if isinstance(one, Stored) and not IDENTIFYING.isdisjoint(one.changed)]
    find_within(db, tenant, new, now, moved)
    answers = _with_lives(context, db, known.owner, batch, answers, now)
    return [replace(one, faded=True) if isinstance(one, Stored) and one.id in faded else one for one in answers]


def _new(rows: Sequence[Fact], answers: Sequence[Stored | InvalidInputError]) -> list[Fact]:
    new = {answer.id for answer in answers if isinstance(answer, Stored) and answer.action in NEW}
    return [row for row in rows if row.id in new]


def _touched(
    context: Context,
    db: Connection,
    tenant: int,
    answers: Sequence[Stored | InvalidInputError],
    now: datetime,
    use: UUID | None,
) -> list[UUID]:
    """Count known facts that were stated again as used; return those that have less than their full vector."""
    repeated = [one.id for one in answers if isinstance(one, Stored) and one.action == "duplicate"]
    if not repeated:
        return []
    restate_within(context, db, tenant, repeated, now)
    return touch_within(context, db, tenant, repeated, now, use).faded


def _is_first(db: Connection, tenant: int, said: Sequence[NewFact], use: UUID | None) -> bool:
    """Return whether no delivery by the same id `use` was stored before, as far as a late one could undo something.

    That is what was edited or consolidated since, and a later wish to forget what `again` insists on.
    """
    undoes = any(fact.again or explicit(fact) for fact in said)
    return not undoes or use is None or activity.claim_use(db, tenant, uuid5(use, "statement"))


def _with_lives(
    context: Context,
    db: Connection,
    owner: Namespace,
    batch: Batch,
    answers: Sequence[Stored | InvalidInputError],
    now: datetime,
) -> list[Stored | InvalidInputError]:
    """Return answers that say how long the facts live; what had ended when it was stored is over at once."""
    stored = {one.id: one.action for one in answers if isinstance(one, Stored) and one.action != "forgotten"}
    again = {one.id for one in answers if isinstance(one, Stored) and one.changed}
    added = {
        row.id: Classed(row.kind, fact.decay_class_source, row.entity, row.key, row.value, row.text)
        for row, fact in zip(batch.rows, batch.given, strict=True)
        if stored.get(row.id) in NEW and row.id not in again
    }
    found = lives(context, db, owner, added, list(stored), now)
    return [replace(one, life=found[one.id]) if isinstance(one, Stored) and one.id in found else one for one in answers]


def _edited(
    context: Context,
    db: Connection,
    tenant: int,
    batch: Batch,
    answers: Sequence[Stored | InvalidInputError],
    now: datetime,
) -> list[Stored | InvalidInputError]:
    """Apply what was given of facts that are there, tags to those they have; return answers that name it."""
    again = {
        place: one
        for place, (row, one) in enumerate(zip(batch.rows, answers, strict=True))
        if isinstance(one, Stored) and (one.action == "duplicate" or (one.action, one.id) == ("unchanged", row.id))
    }
    # Locked before the tags are read: a consolidation that is at work may be adding to them.
    known = edits.read(db, tenant, activity.lock(db, tenant, [one.id for one in again.values()]).ids)
    stated = {place: (batch.said[place], known[one.id]) for place, one in again.items() if one.id in known}
    wanted = _wanted(stated)
    changed = edit_within(context, db, tenant, wanted, now) if wanted else {}
    edited = list(answers)
    for place, (fact, before) in stated.items():
        named = {*explicit(fact), "decay_class"}
        done = [name for name in changed.get(before.id, []) if name in named]
        action = "updated" if done else again[place].action
        edited[place] = replace(again[place], action=action, changed=done, ignored=ignored(fact, before))
    return edited


def _wanted(stated: Mapping[int, tuple[NewFact, Editable]]) -> dict[UUID, dict[str, Any]]:
    """Return what is to become of known facts by what was stated of them, in order; tags come to those they have."""
    wanted: dict[UUID, dict[str, Any]] = {}
    for fact, known in stated.values():
        own, before = explicit(fact), wanted.get(known.id, {})
        if "tags" in own:
            own["tags"] = united(before.get("tags", known.tags), own["tags"])
        if own:
            wanted[known.id] = before | own
    return wanted


def _unwanted(
    db: Connection, tenant: int, rows: Sequence[Fact], known: Collection[bytes], insisted: Collection[bytes]
) -> dict[bytes, UUID]:
    """Return what must not be stored, and as which fact it was forgotten: no live fact says it, `again` not given."""
    hashes = [row.hash for row in rows if row.hash not in known and row.hash not in insisted]
    return statements.forgotten_among(db, tenant, hashes)


def _settle_deletion_requests(db: Connection, tenant: int, added: set[bytes], insisted: set[bytes]) -> None:
    """Drop revoked deletion requests; raise if one came after `_unwanted` looked, even while adding waited."""
    if statements.forgotten_among(db, tenant, list(added - insisted)):
        raise UnavailableError("Something of this was forgotten at this very moment: try again.")
    if revoked := list(added & insisted):
        statements.lift_forgotten(db, tenant, revoked)


def _merged(
    rows: Sequence[Fact], unwanted: dict[bytes, UUID], answers: Sequence[Stored | InvalidInputError]
) -> list[Stored | InvalidInputError]:
    """Return the answers in the order of the rows, with those for what must not be stored."""
    stored = iter(answers)
    return [
        Stored(unwanted[row.hash], "forgotten", embedded=False) if row.hash in unwanted else next(stored)
        for row in rows
    ]


def embed(context: Context, texts: Sequence[str]) -> list[Vectors | None]:
    """Return a vector for each text, batch by batch, and none for what the embedder fails at or has no time for.

    Those facts are kept all the same, found by their words, and embedded later. No attempt is repeated, and while the
    embedder is paused none is made: what retries in the background costs no caller's time.
    """
    until = time.monotonic() + EMBEDDING_SECONDS
    found: list[Vectors | None] = []
    try:
        size = context.embedder.batch
        while len(found) < len(texts) and time.monotonic() < until:
            found += list(context.embedder.embed(texts[len(found) : len(found) + size], retry=False))
    except EmbeddingError as error:
        log.warning("facts are stored without vector and embedded later: %s", error)
    return found + [None] * (len(texts) - len(found))


def _with_tags(fact: NewFact, *, classify: bool) -> NewFact:
    """Return the fact with the tags that it was given, even if none, or else those of the topics it names.

    Archives are left as they are, as with decay classes; so are chunks, which are found by their file.
    """
    if fact.tags is not None or not classify or fact.kind == "chunk":
        return fact
    return fact.model_copy(update={"tags": extract_tags(fact.text, fact.entity)})


def _with_classes(context: Context, given: Sequence[NewFact], owner: Namespace, *, classify: bool) -> list[NewFact]:
    """Return facts with their decay classes, as their namespace has them chosen."""
    is_careful = careful(context, owner.settings)
    return [_with_class(fact, classify=classify, careful=is_careful) for fact in given]


def _with_class(fact: NewFact, *, classify: bool, careful: bool) -> NewFact:
    """Return the fact with its decay class, and with who chose it.

    A chunk lives as long as its file, and an episode by its durability.
    """
    if fact.decay_class is None and classify and fact.kind == "semantic":
        own = lifetime.classify_decay(fact.entity, fact.key, fact.value, fact.text, careful=careful)
        return fact.model_copy(update={"decay_class": own, "decay_class_source": "auto"})
    source = None if fact.decay_class is None else fact.decay_class_source or "explicit"
    return fact.model_copy(update={"decay_class_source": source})


def _row(context: Context, fact: NewFact, now: datetime) -> Fact:
    created_at = fact.created_at or now
    return Fact(
        id=fact.id or uuid7(),
        kind=fact.kind,
        text=fact.text,
        hash=digest(fact),
        summary=_summary(fact, context.settings.summary_threshold),
        category=fact.category,
        entity=fact.entity,
        key=fact.key,
        value=fact.value,
        source=fact.source,
        tags=fact.tags or [],
        importance=fact.importance,
        metadata=fact.metadata,
        session=fact.session,
        turn=fact.turn,
        role=fact.role,
        content_salience=round(fact.salience, 6) if _gives_salience(fact) else None,
        salience_given=_gives_salience(fact),
        source_date=fact.source_date,
        created_at=created_at,
        valid_from=fact.valid_from or min(filter(None, (created_at, fact.source_date, fact.valid_until))),
        valid_until=fact.valid_until,
    )


def _gives_salience(fact: NewFact) -> bool:
    """Return whether the caller gave a salience; beside a strength it is an archive's, which means the strength."""
    return "salience" in fact.model_fields_set and fact.strength is None


def _aligned(rows: Sequence[Fact]) -> list[Fact]:
    """Return facts where one that says no more than an earlier one has the identity of that."""
    met: dict[bytes, list[bytes]] = {}
    aligned = []
    for row in rows:
        said = met.setdefault(stem(row.hash), [])
        known = next((one for one in said if row.hash in says_less(one)), None)
        if known is None:
            said.append(row.hash)
        aligned.append(row if known is None else replace(row, hash=known))
    return aligned


def _summary(fact: NewFact, threshold: int) -> str | None:
    """Return a fact's own summary, or one for a long text; a part of a document needs none."""
    if fact.summary is None and fact.kind not in ("chunk", "item") and len(fact.text) > threshold:
        return injection.summary(fact.text)
    return fact.summary


def _write(
    context: Context,
    db: Connection,
    owner: Namespace,
    batch: Batch,
    embedded: Embedded,
    now: datetime,
    *,
    count_turns: bool,
) -> list[Stored | InvalidInputError]:
    """Write facts as if each were stored by itself, in order; return what became of each."""
    tenant, rows, intents = owner.id, batch.rows, batch.intents
    targets = [intent.target for intent in intents if intent.target is not None]
    said = {known.id: known.hash for known in facts.known_by_id(db, tenant, targets).values()} if targets else {}
    answers: dict[int, Stored | InvalidInputError] = {}
    ids, hashes = [row.id for row in rows], [row.hash for row in rows]
    for places in stretches(ids, hashes, intents, said):
        own = [rows[i] for i in places]
        decisions = supersede.settle_within(db, tenant, own, [intents[i] for i in places], now)
        adding = [i for i, decision in zip(places, decisions, strict=True) if decision.answer is None]
        if adding:
            own = [rows[i] for i in adding]
            given = [batch.given[i] for i in adding]
            added = add_within(context, db, owner, own, given, embedded, now, count_turns=count_turns)
            answers |= zip(adding, answers_for(db, tenant, own, added), strict=True)
        answers |= _settled(db, tenant, dict(zip(places, decisions, strict=True)), answers)
    return [answers[i] for i in range(len(rows))]


def _settled(
    db: Connection,
    tenant: int,
    decisions: dict[int, Decision],
    answers: dict[int, Stored | InvalidInputError],
) -> dict[int, Stored | InvalidInputError]:
    """Link the facts that were closed with those stored in their place; return the answers that change by it."""
    settled: dict[int, Stored | InvalidInputError] = {}
    pairs: dict[UUID, UUID] = {}
    concerned = [one.answer.id for one in decisions.values() if isinstance(one.answer, Settled)]
    unembedded = vectors.pending_among(db, tenant, concerned) if concerned else set()
    for place, decision in decisions.items():
        match decision.answer, answers.get(place):
            case Settled(id_, action), _:
                settled[place] = Stored(id_, action, id_ not in unembedded)
            case InvalidInputError() as refusal, _:
                settled[place] = refusal
            case None, Stored() as stored if decision.closes is not None:
                pairs[decision.closes.id] = stored.id
                settled[place] = replace(stored, action="updated")
            case None, InvalidInputError() if decision.closes is not None:
                raise UnavailableError("The fact's id was taken by another at this very moment: try again.")
    supersede.link_within(db, tenant, pairs)
    return settled
