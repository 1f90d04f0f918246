"""Store: what was said becomes facts, each once, whatever runs at the same time or twice."""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID
from zlib import crc32

import numpy as np
from uuid_utils.compat import uuid7

from workers import supersede
from workers.classify import judge
from workers.context import Context
from workers.contradictions import find_within
from workers.core import lifetime, tiers
from workers.core.arrays import Vectors
from workers.core.fading import written
from workers.core.fidelity import FULL, PENDING
from workers.core.intent import Intent, asked, stretches
from workers.core.text import digest
from workers.errors import EmbeddingError, InvalidInputError, UnavailableError
from workers.forget import forget_ended
from workers.intake import NewFact
from workers.regenerate import keep_vectors
from workers.storage import activity, embedders, facts, forgotten_hashes, namespaces, pending
from workers.storage.connection import Connection, transaction, writing
from workers.storage.facts import Fact, Known
from workers.supersede import Decision, Settled
from workers.touch import touch_within

log = logging.getLogger(__name__)

EMBEDDING_SECONDS = 15.0
"""After this no further batch is begun, so that storing ends before its task's limit however slow the embedder is."""

JUDGED_SECONDS = 25.0
"""After this nobody is asked to judge a fact any more, for the same reason."""

NEW = ("added", "updated")


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one given fact: its id or that of the one that says the same, and whether it has a vector."""

    id: UUID
    action: str
    embedded: bool


def store_many(
    context: Context,
    namespace: str,
    given: Sequence[NewFact],
    now: datetime,
    *,
    touch: bool = True,
    classify: bool = True,
) -> list[Stored | InvalidInputError]:
    """Store facts in one transaction and one embedding batch; return what became of each, in order.

    A fact that is there already is touched, as if it had been recalled, unless `touch` is false. A fact without decay
    class gets one by its words, unless `classify` is false: then it has no lifetime, and never expires. What its owner
    wished forgotten is not stored, unless the fact says `again`.

    Raises:
        UnavailableError: the database does not answer, or somebody forgets the same at this very moment; nothing was
            stored.
    """
    until = time.monotonic() + JUDGED_SECONDS
    given = [_with_class(fact, classify=classify) for fact in given]
    rows = [_row(fact, now) for fact in given]
    hashes = [row.hash for row in rows]
    told_again = {row.hash for row, fact in zip(rows, given, strict=True) if fact.again}
    with transaction(context.database_url) as db:
        owner = namespaces.find_or_add(db, namespace)
        tenant = owner.id
        forget_ended(context, db, tenant, hashes, now)
        known = facts.known_by_hash(db, tenant, hashes)
        unwanted = _unwanted(db, tenant, rows, known, told_again)
    # What is about to be superseded may be said anew, and then needs a vector of its own.
    known = {hash_: id_ for hash_, id_ in known.items() if id_ not in {fact.supersedes for fact in given}}
    fresh = {row.hash: row.text for row in rows if row.hash not in known and row.hash not in unwanted}
    embedded = dict(zip(fresh, embed(context, list(fresh.values())), strict=True))
    intents = [asked(fact.supersedes) for fact in given]
    if context.settings.classify_before_write:
        rows, given, intents = judge(context, owner, rows, given, intents, embedded, now, until)
    with writing(context.database_url) as db:
        own = [i for i, hash_ in enumerate(hashes) if hash_ not in unwanted]
        wanted = [rows[i] for i in own], [given[i] for i in own], [intents[i] for i in own]
        answers = _merged(rows, unwanted, _write(context, db, tenant, *wanted, embedded, now))
        _follow_up(context, db, tenant, rows, answers, told_again, now, touch=touch)
    return answers


def _follow_up(
    context: Context,
    db: Connection,
    tenant: int,
    rows: Sequence[Fact],
    answers: Sequence[Stored | InvalidInputError],
    told_again: set[bytes],
    now: datetime,
    *,
    touch: bool,
) -> None:
    """Do what follows from storing: revoked wishes end, what was there is touched, and contradictions are noted."""
    done = [answer for answer in answers if isinstance(answer, Stored)]
    new = {answer.id for answer in done if answer.action in NEW}
    stored = [row for row in rows if row.id in new]
    _settle_wishes(db, tenant, {row.hash for row in stored}, told_again)
    repeated = [answer.id for answer in done if answer.action == "duplicate"]
    if touch and repeated:
        touch_within(context, db, tenant, repeated, now)
    find_within(db, tenant, stored, now)


def _unwanted(
    db: Connection, tenant: int, rows: Sequence[Fact], known: Collection[bytes], told_again: Collection[bytes]
) -> dict[bytes, UUID]:
    """Return what must not be stored, and as which fact it was forgotten: no live fact says it, and nobody insists."""
    hashes = [row.hash for row in rows if row.hash not in known and row.hash not in told_again]
    return forgotten_hashes.among(db, tenant, hashes)


def _settle_wishes(db: Connection, tenant: int, added: set[bytes], told_again: set[bytes]) -> None:
    """Let go of wishes that were revoked; raise if one came after `_unwanted` looked, even while the adding waited."""
    if forgotten_hashes.among(db, tenant, list(added - told_again)):
        raise UnavailableError("Something of this was forgotten at this very moment: try again.")
    if revoked := list(added & told_again):
        forgotten_hashes.lift(db, tenant, revoked)


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


def _with_class(fact: NewFact, *, classify: bool) -> NewFact:
    """Return the fact with its decay class, and with who chose it (D16, D27)."""
    if fact.decay_class is None and classify:
        own = lifetime.classify_decay(fact.entity, fact.key, fact.value, fact.text)
        return fact.model_copy(update={"decay_class": own, "decay_class_source": "auto"})
    source = None if fact.decay_class is None else fact.decay_class_source or "explicit"
    return fact.model_copy(update={"decay_class_source": source})


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


def _write(
    context: Context,
    db: Connection,
    tenant: int,
    rows: Sequence[Fact],
    given: Sequence[NewFact],
    intents: Sequence[Intent],
    embedded: dict[bytes, Vectors | None],
    now: datetime,
) -> list[Stored | InvalidInputError]:
    """Write facts as if each were stored by itself, in order; return what became of each."""
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
            added = _add(context, db, tenant, own, [given[i] for i in adding], embedded, now)
            answers |= zip(adding, _answers(db, tenant, own, added), strict=True)
        answers |= _settled(db, tenant, dict(zip(places, decisions, strict=True)), answers)
    return [answers[i] for i in range(len(rows))]


def _settled(
    db: Connection,
    tenant: int,
    decisions: dict[int, Decision],
    answers: dict[int, Stored | InvalidInputError],
) -> dict[int, Stored | InvalidInputError]:
    """Link whom facts closed with what was stored in their place; return the answers that differ by that."""
    settled: dict[int, Stored | InvalidInputError] = {}
    pairs: dict[UUID, UUID] = {}
    concerned = [one.answer.id for one in decisions.values() if isinstance(one.answer, Settled)]
    unembedded = pending.among(db, tenant, concerned) if concerned else set()
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
