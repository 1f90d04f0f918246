"""Forget: hide facts behind tombstones, which keep the text so that they can be restored; by ids or by subject."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from ebb.contract.faults import show
from ebb.contract.retention import Forget, Forgot, Outcome
from ebb.contract.values import REQUESTED

from workers.clock import MOST_AHEAD
from workers.context import Context
from workers.coordination import contexts
from workers.core.fading import REASONS, ends, is_over
from workers.core.text import beginning
from workers.errors import InvalidInputError, NotFoundError
from workers.memory.namespace_settings import rules_for
from workers.memory.unpack import unpack
from workers.storage import (
    activity,
    deep,
    events,
    facts,
    occurrences,
    signatures,
    statements,
    subjects,
    tombstones,
    turns,
    vectors,
)
from workers.storage.activity import Activity
from workers.storage.connection import Connection, reading
from workers.storage.subjects import Subject
from workers.storage.tombstones import Standing


def forget(
    context: Context,
    namespace: str,
    ids: Sequence[UUID],
    now: datetime,
    *,
    purge: bool = False,
    run: UUID | None = None,
    session: str | int | None = None,
) -> list[Outcome | InvalidInputError]:
    """Forget facts on request, including pinned and permanent ones; return the outcomes in order.

    Facts that decay has forgotten become forgotten on request. Facts extracted only from a given turn are forgotten
    with it, and near-duplicates with the fact that they were merged into; if a `session` is forgotten, only those that
    were said in no other place, and the others leave it. `purge` erases them at once. Facts restored after `now` are
    refused, so that a late redelivery cannot undo a restore.
    """
    with context.namespace(namespace) as (db, tenant):
        unpack(context, db, tenant, ids)
        staying = set() if session is None else _leave(db, tenant, ids, session, purge=purge)
        asked = [id_ for id_ in ids if id_ not in staying]
        unpack(context, db, tenant, turns.packed_from(db, tenant, asked))
        going = _with_merged(context, db, tenant, [*asked, *turns.drawn_from(db, tenant, asked)], now, session)
        outcomes = _forget(context, db, tenant, going, now, purge=purge, run=run)
    contexts.drop(context.redis, namespace, {str(id_) for id_ in (*going, *staying)})
    return [Outcome(id=id_, action="kept") if id_ in staying else outcomes[id_] for id_ in ids]


def _leave(db: Connection, tenant: int, ids: Sequence[UUID], session: str | int, *, purge: bool) -> set[UUID]:
    """Take those among facts that were also said elsewhere out of a session to forget; return them.

    The lock decides which of two sessions that are forgotten at once is the last, and whether a fact is said again in
    time.
    """
    activity.lock(db, tenant, ids)
    staying = occurrences.staying(db, tenant, ids, session)
    if staying:
        occurrences.leave(db, tenant, list(staying), session, purge=purge)
    return staying


def _with_merged(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime, session: str | int | None
) -> list[UUID]:
    """Return facts with those that were merged into them, which leave deep memory.

    With a session, only those that were said in no other place. What a fact that was restored after `now` took in stays
    with it.
    """
    new, going = list(ids), dict.fromkeys(ids)
    while taken := [id_ for id_ in events.took_in(db, tenant, new) if id_ not in going]:
        unpack(context, db, tenant, taken)
        restored = restored_later(context, db, tenant, new, now)
        new = [*events.still_merged(db, tenant, taken, [id_ for id_ in new if id_ not in restored])]
        if session is not None:
            staying = occurrences.staying(db, tenant, new, session)
            new = [id_ for id_ in new if id_ not in staying]
        going |= dict.fromkeys(new)
    return list(going)


def _forget(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime, *, purge: bool, run: UUID | None
) -> dict[UUID, Outcome | InvalidInputError]:
    activity.lock(db, tenant, ids)
    before = tombstones.standings(db, tenant, ids, now)
    restored = restored_later(context, db, tenant, list(before), now)
    going = [id_ for id_ in before if id_ not in restored]
    requested = [id_ for id_ in going if before[id_].reason not in REQUESTED]
    forget_within(db, [tenant] * len(requested), requested, ["asked"] * len(requested), now, run)
    if purge:
        tombstones.erase(db, [tenant] * len(going), going)
    erased = statements.forgotten_of(db, tenant, [id_ for id_ in ids if id_ not in before])
    outcomes: dict[UUID, Outcome | InvalidInputError] = {
        id_: _outcome(id_, before.get(id_), erased.get(id_), now, purge=purge) for id_ in ids
    }
    return outcomes | {id_: overtaken_error(id_, "restored", at, now) for id_, at in restored.items()}


def restored_later(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime
) -> dict[UUID, datetime]:
    """Return which facts were restored on request after `now`, and when."""
    restored = events.later(db, tenant, ids, ["restored"], now)
    return {id_: at for id_, at in restored.items() if context.may_be_later(db, at)}


def stored_later(context: Context, db: Connection, created: Mapping[UUID, datetime], now: datetime) -> set[UUID]:
    """Return the facts that were stored later than `now` by more than clocks may differ; `created` has the times."""
    later = {id_: at for id_, at in created.items() if at > now + timedelta(seconds=MOST_AHEAD)}
    return {id_ for id_, at in later.items() if context.may_be_later(db, at)}


def _outcome(
    id_: UUID, before: Standing | None, erased: tuple[datetime, str] | None, now: datetime, *, purge: bool
) -> Outcome:
    """Return the outcome of a fact that was live or forgotten `before`, or `erased` with this time and reason."""
    if before is None:
        return Outcome(id=id_, action="unknown") if erased is None else outcome_of(id_, *erased)
    if before.reason in REQUESTED:
        return outcome_of(id_, before.forgotten_at, before.reason, "purged" if purge else "unchanged")
    return outcome_of(id_, now, "asked", "purged" if purge else "forgotten")


def outcome_of(id_: UUID, at: datetime | None, reason: str | None, action: str = "unchanged") -> Outcome:
    """Return the outcome of a fact with the time and reason of its tombstone."""
    return Outcome(id=id_, action=action, forgotten_at=at, reason=reason)


def refused(id_: UUID, error: InvalidInputError) -> Outcome:
    """Return the outcome of a fact that was not changed because of an error."""
    return Outcome(id=id_, action="unknown" if isinstance(error, NotFoundError) else "refused", error=str(error))


def overtaken_error(id_: UUID, what: str, then: datetime, now: datetime) -> InvalidInputError:
    """Return the error for a request that arrives after a later one was applied."""
    return InvalidInputError(f"id: {id_} was {what} at {then}, later than this was asked, at {now}; ask again.")


def forget_within(
    db: Connection,
    tenants: Sequence[int],
    ids: Sequence[UUID],
    reasons: Sequence[str],
    now: datetime,
    run: UUID | None = None,
    details: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Forget facts, each with its namespace and reason; return how many changed.

    `run` is the pass, consolidation or review, by which they can be restored together; `details` are added to each
    fact's history. Vectors are deleted at once, as they are large and can be computed again.
    """
    if not ids:
        return 0
    retire_within(db, tenants, ids)
    forgotten = facts.forget(db, tenants, ids, reasons, now, run, details)
    if not set(REQUESTED).isdisjoint(reasons):
        statements.add_forgotten(db, tenants, ids)
    return forgotten


def retire_within(db: Connection, tenants: Sequence[int], ids: Sequence[UUID]) -> None:
    """Exclude facts from searches for live ones and from passes, and delete their vectors except for the signatures."""
    vectors.drop(db, tenants, ids)
    signatures.retire(db, tenants, ids)
    activity.retire(db, tenants, ids)


def forget_ended(context: Context, db: Connection, tenant: int, known: statements.Known, now: datetime) -> bool:
    """Forget known facts that ended and no pass has forgotten yet, so that the same statements can be stored again.

    Returns whether there were any.
    """
    ended = activity.ended(db, tenant, [one.id for stated in known.values() for one in stated], now) if known else ()
    if ended:
        activity.ask_lock(db, tenant, list(ended))  # read after it: a fact may have been superseded meanwhile
        forget_ended_of(context, db, tenant, activity.read_live(db, tenant, list(ended)), now)
    return bool(ended)


def forget_ended_of(context: Context, db: Connection, tenant: int, rows: Activity, now: datetime) -> int:
    """Forget the ended ones of a namespace's live, locked facts; return how many.

    Facts that the next pass would hold are left.
    """
    unseen = activity.ended(db, tenant, rows.ids, now)
    ends_at, reason = ends(rows.anchors, rules_for(context, db, rows.namespaces))
    held = np.array([id_ not in unseen for id_ in rows.ids], dtype=np.bool_)
    over = is_over(ends_at, held, now.timestamp())
    gone, reasons = rows.only(over), [REASONS[code] for code in reason[over]]
    return forget_within(db, gone.namespaces.tolist(), gone.ids, reasons, now)


BATCH = 500
SHOWN = 100
"""Maximum number of facts in the answer."""

LONGEST = 200
"""Maximum characters of a text in the answer."""

FORGOT = ("forgotten", "purged")


def forget_subject(
    context: Context,
    asked: Forget,
    now: datetime,
    run: UUID,
    until: float,
    *,
    part: UUID | None = None,
    so_far: Forgot | None = None,
) -> Forgot:
    """Forget or count the facts that match a subject, in batches until `until` on the monotonic clock.

    Facts that were stored after `now` stay, so that a late or long request cannot undo what was said since.
    `part` is the id of this part of the run, the first by default, and `so_far` the answer of earlier ones. What an
    earlier delivery of the same part forgot is counted again, as is what another successor forgot: a part that was
    killed once it had sent one sends another.

    Raises:
        InvalidInputError: the query has no word to search for.
    """
    earlier = so_far or Forgot(results=[])
    shown, actions, left = {one.id: one for one in earlier.results}, Counter[str](), False
    before = 0 if asked.dry_run else _forgotten(context, asked.namespace, now, part or run)
    before, kept = max(before, earlier.done or 0), earlier.kept or 0
    for found in _batches(context, asked, now):
        outcomes = _forget_batch(context, asked, found, now, run)
        actions.update(one.action for one in outcomes)
        # What an earlier part refused is refused again.
        shown = dict(islice((shown | {one.id: one for one in outcomes}).items(), SHOWN))
        left = time.monotonic() >= until
        if left:
            break
    own = sum(actions[name] for name in FORGOT)
    if so_far is not None and not asked.dry_run:
        # By all parts, as they do it at one instant.
        before = max(before, _forgotten(context, asked.namespace, now) - own)
    done = {"done": before + own, "left": left, "run": run, "at": now}
    return Forgot(
        results=list(shown.values()),
        matching=before + kept + actions.total(),
        kept=None if asked.session is None else kept + actions["kept"],
        **(done if left or not asked.dry_run else {}),
    )


def _forgotten(context: Context, namespace: str, now: datetime, part: UUID | None = None) -> int:
    """Return how many facts all parts of a run have forgotten or erased by now; 0 at the first delivery of a `part`."""
    with context.namespace(namespace) as (db, tenant):
        if part is not None and (not tenant or activity.claim_uses(db, tenant, [part])):
            return 0
        return statements.count_forgotten(db, tenant, now)


def _forget_batch(
    context: Context, asked: Forget, found: Mapping[UUID, str], now: datetime, run: UUID
) -> list[Outcome]:
    """Forget facts unless in a dry run; return the outcomes, with the start of each text that is not erased."""
    texts = {id_: {"text": beginning(text, LONGEST)} for id_, text in found.items()}
    if asked.dry_run:
        staying = _staying(context, asked, list(found))
        return [Outcome(id=id_, action="kept" if id_ in staying else "matching", **texts[id_]) for id_ in found]
    outcomes = forget(context, asked.namespace, list(found), now, purge=asked.purge, run=run, session=asked.session)
    return [_brief(id_, one, texts[id_], purge=asked.purge) for id_, one in zip(found, outcomes, strict=True)]


def _staying(context: Context, asked: Forget, ids: Sequence[UUID]) -> set[UUID]:
    """Return the facts that were also said outside the session to forget, if there is one."""
    if asked.session is None:
        return set()
    with context.namespace(asked.namespace) as (db, tenant):
        unpack(context, db, tenant, ids)
        return occurrences.staying(db, tenant, ids, asked.session)


def _batches(context: Context, asked: Forget, now: datetime) -> Iterator[dict[UUID, str]]:
    """Yield batches of matching facts as texts by id, each fact once.

    Those in deep memory come first, as others take what was merged into them along. Each batch is read from both
    places in one snapshot, as a fact may be moved meanwhile in either direction. A session is looked through until it
    has no others: a consolidation may have merged its facts into facts that were not said in it before.
    """
    fields = {name: one for name, one in asked.subject.items() if name != "query"}
    with context.namespace(asked.namespace) as (db, tenant):
        stems = None if asked.query is None else subjects.stems(db, asked.query)
    if stems == []:
        raise InvalidInputError(f"query: {show(asked.query)} has only words that every text has; give others.")
    subject = Subject(fields, stems, asked.purge)
    with reading(context.database_url) as db:
        deep_ids, found = deep.ids(db, tenant), subjects.ids(db, tenant, subject, now)
    listed = set[UUID]()
    for batch in _matching(context, tenant, subject, deep_ids, now):
        yield batch
        listed.update(batch)
    while found:
        yield from _matching(context, tenant, subject, found, now)
        listed.update(found)
        if asked.session is None:
            return
        with reading(context.database_url) as db:
            found = [id_ for id_ in subjects.ids(db, tenant, subject, now) if id_ not in listed]


def _matching(
    context: Context, tenant: int, subject: Subject, ids: Sequence[UUID], now: datetime
) -> Iterator[dict[UUID, str]]:
    """Yield batches of the facts among some that match a subject."""
    for begin in range(0, len(ids), BATCH):
        among = ids[begin : begin + BATCH]
        with reading(context.database_url) as db:
            texts = subjects.matching_deep(db, tenant, subject, among)
            texts |= subjects.matching(db, tenant, subject, among, now)
            later = stored_later(context, db, facts.created(db, tenant, list(texts)), now)
            texts = {id_: text for id_, text in texts.items() if id_ not in later}
        if texts:
            yield texts


def _brief(id_: UUID, outcome: Outcome | InvalidInputError, text: Mapping[str, str], *, purge: bool) -> Outcome:
    done = refused(id_, outcome) if isinstance(outcome, InvalidInputError) else Outcome(id=id_, action=outcome.action)
    return done.model_copy(update={} if purge and done.action != "kept" else text)
