"""Supersede: facts that replace, retract or contradict older ones, or make them outdated.

A fact that another one makes outdated is only linked with it: neither is changed, and a recall ranks the newer one
above the older one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

import numpy as np
from ebb.contract.reports import Contradiction, Contradictions, ContradictoryFact, ListContradictions

from workers.context import Context
from workers.core import ranking, updates
from workers.core.arrays import Floats, Ints
from workers.core.intent import Action, Intent
from workers.core.text import same_record
from workers.errors import InvalidInputError, NotFoundError
from workers.memory.forget import overtaken_error, restored_later, retire_within
from workers.memory.namespace_settings import notices_updates
from workers.storage import activity, candidates, links, namespaces, statements, supersession, tombstones, words
from workers.storage.candidates import Scope
from workers.storage.connection import Connection, transaction
from workers.storage.facts import Fact
from workers.storage.namespaces import Namespace
from workers.storage.supersession import Closed, ContradictionCursor, Pair
from workers.storage.tombstones import Standing
from workers.validation import cursors


@dataclass(frozen=True, slots=True)
class KnownFact:
    """The outcome of a fact that is not added: the known fact, and what was done to it."""

    id: UUID
    action: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a fact, or None if it is to be added, and the known fact that it closes."""

    answer: KnownFact | InvalidInputError | None = None
    closes: Closed | None = None


def settle_within(
    db: Connection, tenant: int, rows: Sequence[Fact], intents: Sequence[Intent], now: datetime
) -> list[Decision]:
    """Decide on facts and close those that they replace or retract, locked until the commit."""
    aimed = [(row, intent.target) for row, intent in zip(rows, intents, strict=True) if intent.target is not None]
    if not aimed:
        return [Decision()] * len(rows)
    hashes = [row.hash for row, _ in aimed]
    concerned = {id_ for row, target in aimed for id_ in (row.id, target)}
    # Equal facts may have replaced the target, so they are locked with it, in one order. They are read again after
    # that, as the transaction that held the locks may have stored one.
    saying = statements.known_by_hash(db, tenant, hashes)
    states = locked_states(db, tenant, sorted(concerned.union(saying.values())), now)
    saying = statements.known_by_hash(db, tenant, hashes)
    decisions = [_decide(row, intent, states, saying, now) for row, intent in zip(rows, intents, strict=True)]
    close_within(db, tenant, [decision.closes for decision in decisions if decision.closes is not None])
    return decisions


def locked_states(db: Connection, tenant: int, ids: Sequence[UUID], now: datetime) -> dict[UUID, Standing]:
    """Return the standings of facts, locked until the commit."""
    activity.lock(db, tenant, ids)
    return tombstones.standings(db, tenant, ids, now)


def close_within(db: Connection, tenant: int, closed: Sequence[Closed]) -> None:
    """Close locked, live facts; without a successor by `link_within` this is a retraction."""
    if closed:
        supersession.close(db, tenant, closed)
        retire_within(db, [tenant] * len(closed), [one.id for one in closed])


def link_within(db: Connection, tenant: int, pairs: Mapping[UUID, UUID]) -> None:
    """Record the successor of each closed fact."""
    if pairs:
        supersession.link(db, tenant, list(pairs.keys()), list(pairs.values()))


def _decide(
    row: Fact, intent: Intent, states: Mapping[UUID, Standing], saying: Mapping[bytes, UUID], now: datetime
) -> Decision:
    target = None if intent.target is None else states.get(intent.target)
    match intent.action:
        case Action.UPDATE:
            return _replace(row, intent, target, states.get(row.id), saying.get(row.hash), now)
        case Action.DELETE if target is not None and target.current:
            return Decision(KnownFact(target.id, "retracted"), Closed(target.id, now, now))
        case Action.DELETE if target is not None and target.retracted:
            return Decision(KnownFact(target.id, "retracted"))
        case Action.NOOP if target is not None and target.current:
            return Decision(KnownFact(target.id, "unchanged"))
    return Decision()


def _replace(
    row: Fact, intent: Intent, target: Standing | None, own: Standing | None, saying: UUID | None, now: datetime
) -> Decision:
    """Decide on a fact that is to replace `target`; `own` has the same id already, and `saying` is an equal fact."""
    if own is not None and same_record(own.hash, row.hash) and own.supersedes_id == intent.target:
        return Decision(KnownFact(own.id, "updated"))
    fault = _fault(row, intent, target, own, saying)
    if fault is not None:
        return Decision(InvalidInputError(fault) if intent.requested else None)
    if target is None or not target.current:
        return Decision()
    return Decision(closes=Closed(target.id, min(row.created_at, now), row.valid_from))


def _fault(row: Fact, intent: Intent, target: Standing | None, own: Standing | None, saying: UUID | None) -> str | None:
    """Return why a fact cannot replace another; None if it can, or an equal one already has."""
    if own is not None and not same_record(own.hash, row.hash):
        return f"id: {row.id} belongs to another fact already; leave it out, or give a new one."
    if own is not None and not own.current:
        return f"id: {row.id} was superseded or forgotten already; leave it out, or give a new one."
    if target is None:
        return f"supersedes: no fact {intent.target} is in this namespace; look for it with `recall`."
    if target.current:
        is_third = intent.apart and saying not in (None, target.id)
        return f"text: the fact {saying} says the same; forget one of them, or give another text." if is_third else None
    if target.superseded_by is None:
        said = "retracted" if target.superseded else "forgotten"
        return f"supersedes: {target.id} was {said} already; leave `supersedes` out."
    successor = target.superseded_by
    return (
        None if successor == saying else f"supersedes: {target.id} was superseded by {successor} already; give that id."
    )


def contradicting(context: Context, asked: ListContradictions, now: datetime) -> Contradictions:
    """Return a page of live facts that contradict each other, those found last first."""
    behind = cursors.place(asked.cursor, ContradictionCursor)
    with context.namespace(asked.namespace) as (db, tenant):
        found = supersession.contradictions(db, tenant, now, asked.limit + 1, behind)
        total = supersession.count_contradictions(db, tenant, now)
    shown, following = cursors.page(found, asked.limit, lambda one: ContradictionCursor(one.found_at, *sorted(one.ids)))
    return Contradictions(contradictions=[_contradiction(one) for one in shown], total=total, next=following)


def _contradiction(pair: Pair) -> Contradiction:
    facts = [
        ContradictoryFact(id=id_, value=value, text=text, created_at=at)
        for at, id_, value, text in sorted(zip(pair.created_at, pair.ids, pair.values, pair.texts, strict=True))
    ]
    return Contradiction(entity=pair.entity, key=pair.key, found_at=pair.found_at, facts=facts)


def keep(context: Context, namespace: str, id_: UUID, others: Sequence[UUID], now: datetime) -> None:
    """Resolve contradictions: one fact supersedes the others. Idempotent.

    A fact that began before the kept one was true until that began, any other until `now`.

    Raises:
        InvalidInputError: one of them does not exist, was superseded by another or forgotten, or restored after `now`;
            nothing was changed.
    """
    with transaction(context.database_url) as db:
        tenant = _tenant(db, namespace)
        states = locked_states(db, tenant, sorted({id_, *others}), now)
        open_ = [other for other in others if other not in states or states[other].superseded_by != id_]
        for one in [*open_, id_] if open_ else []:
            _check_live(one, states.get(one), namespace)
        for other, at in restored_later(context, db, tenant, open_, now).items():
            raise overtaken_error(other, "restored", at, now)
        close_within(db, tenant, [Closed(other, now, _until(states[other], states[id_], now)) for other in open_])
        link_within(db, tenant, dict.fromkeys(open_, id_))


def _until(superseded: Standing, kept: Standing, now: datetime) -> datetime:
    """Return until when a fact was true that another one supersedes."""
    return kept.valid_from if superseded.valid_from < kept.valid_from else now


def accept(context: Context, namespace: str, one: UUID, two: UUID, now: datetime) -> None:
    """Accept a contradiction: both facts hold. Idempotent.

    Raises:
        InvalidInputError: they do not contradict each other.
    """
    with transaction(context.database_url) as db:
        if not supersession.accept_contradiction(db, _tenant(db, namespace), one, two, now):
            raise InvalidInputError(
                f"ids: {one} and {two} are not known to contradict each other; see `ebb contradictions`."
            )


def _tenant(db: Connection, namespace: str) -> int:
    tenant = namespaces.id_of(db, namespace)
    if not tenant:
        raise InvalidInputError(f"namespace: nothing was ever stored in {namespace!r}; check its name.")
    return tenant


def _check_live(id_: UUID, state: Standing | None, namespace: str) -> None:
    if state is None:
        raise NotFoundError(f"ids: no fact {id_} is in namespace {namespace!r}; see `ebb contradictions`.")
    if not state.current:
        what = f"superseded by {state.superseded_by}" if state.superseded_by else "retracted or forgotten"
        raise InvalidInputError(f"ids: {id_} was {what} already; see `ebb contradictions` for what is left.")


UPDATES = "UPDATES"
"""The type of the links from a newer fact to an older one that it makes outdated."""

SPEAKERS = (None, "user")
"""The roles whose statements withdraw others: an assistant repeats what others say."""

MATCH_BUDGET, MOST_OUTDATED = 200, 5
"""Maximum number of facts that are compared with a subject, and of those that are linked, the most similar first."""

FEWEST_FACTS = 100
"""Number of facts by which words are weighed in smaller namespaces, and before the first count."""

LATE = timedelta(hours=1)
"""Facts said so long before they are stored may have been withdrawn already: by those that were stored before them."""

COMMON, MOST_READ, MOST_LATER, MOST_COMPARED = 1_000, 5_000, 500, 20
"""Maximum number of facts that have a word by which withdrawals are found, of facts with such words that are read, of
those said later in which withdrawals are looked for, and of withdrawals that are compared, the newest first."""


def link_outdated_within(context: Context, db: Connection, owner: Namespace, new: Sequence[Fact], now: datetime) -> int:
    """Link new facts to the older ones that they withdraw, and to those that withdraw them; return how many links.

    Chunks of files withdraw nothing, as a file is no statement of the user. Call it last in a transaction: it locks the
    older facts against a purge.
    """
    if not notices_updates(context, owner.settings):
        return 0
    stated = [row for row in new if row.role in SPEAKERS and row.kind != "chunk"]
    pairs = [
        (row.id, older)
        for row in stated
        for subject in updates.withdrawn_subjects(row.text)
        for older in _about(db, owner, row.id, subject, now)
    ]
    pairs += _withdrawn_before(db, owner, stated, now)
    linkable = links.linkable(db, owner.id, sorted({id_ for pair in pairs for id_ in pair})) if pairs else set()
    held = sorted({pair for pair in pairs if linkable.issuperset(pair)})
    return len(links.add(db, owner.id, held, UPDATES, [1.0] * len(held), now)) if held else 0


def _withdrawn_before(
    db: Connection, owner: Namespace, stated: Sequence[Fact], now: datetime
) -> list[tuple[UUID, UUID]]:
    """Return the pairs of a later statement that was stored earlier and a new fact that it withdraws."""
    late = {row.id: row for row in stated if _said_at(row) < now - LATE}
    if not late:
        return []
    known = words.of_query(db, owner.name, updates.WORDS_OF_WITHDRAWALS)
    rare = [term.lexeme for term in known if term.facts <= COMMON]
    since, new = min(map(_said_at, late.values())), [row.id for row in stated]
    roles = [role for role in SPEAKERS if role is not None]
    later = links.said_later(db, owner.id, rare, roles, since, new, MOST_LATER, MOST_READ) if rare else []
    said = updates.beginnings(row.text for row in late.values())
    named = [
        (UUID(bytes=id_), subject)
        for id_, text in later
        for subject in updates.withdrawn_subjects(text)
        if updates.may_be_named(subject.text, said)
    ]
    return [
        (newer, older)
        for newer, subject in named[:MOST_COMPARED]
        for older in _about(db, owner, newer, subject, now)
        if older in late
    ]


def _said_at(row: Fact) -> datetime:
    return row.source_date or row.created_at


def _about(db: Connection, owner: Namespace, newer: UUID, subject: updates.Subject, now: datetime) -> list[UUID]:
    """Return the older facts of the same speaker about what a fact withdraws, the most similar first."""
    terms = [term for term in words.of_query(db, owner.name, subject.text) if term.stem]
    if len(terms) < subject.least_words or not terms:
        return []
    terms.sort(key=lambda term: (term.facts, term.lexeme))
    lexemes, counted = [term.lexeme for term in terms], np.array([term.facts for term in terms], np.int64)
    known, most = _information(owner, counted), float(_information(owner, np.ones(1, np.int64))[0])
    if known[0] < updates.DISTINCTIVE * most:
        return []  # without a search: words that were stored since the last count are even less distinctive
    rarest = lexemes[: updates.decisive(known)]
    found = candidates.matches(db, owner, lexemes, rarest, Scope(now), MATCH_BUDGET)()
    held = found.ranks > 0
    # words that were stored since the last count are at least in the facts read
    information = _information(owner, np.maximum(counted, held.sum(axis=0)))
    shares = updates.withdrawn(held, information, most)
    # of those that are as similar the oldest: PostgreSQL returns them in any order
    about = [id_ for share, id_ in sorted(zip(np.round(-shares, 6).tolist(), found.ids, strict=True)) if share]
    before = links.said_before(db, owner.id, newer, about) if about else {}
    of_it = (id_ for id_ in about if id_ in before and not subject.is_of_another(before[id_]))
    return [UUID(bytes=id_) for id_ in islice(of_it, MOST_OUTDATED)]


def _information(owner: Namespace, frequencies: Ints) -> Floats:
    return ranking.inverse_document_frequency(frequencies, max(owner.counted_facts, FEWEST_FACTS))
