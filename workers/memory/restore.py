"""Restore: make forgotten or superseded facts live again, as if they had just been recalled."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import get_args
from uuid import UUID

import numpy as np
from ebb.contract.retention import Outcome
from ebb.contract.values import REQUESTED, Reason

from workers.context import Context
from workers.core import fading
from workers.core.episodes import NOT_YET
from workers.core.fading import as_written, ends
from workers.core.fidelity import FINGERPRINT
from workers.core.text import same_statement, text_digest
from workers.errors import InvalidInputError, no_fact
from workers.memory.forget import forget_ended, forget_ended_of, outcome_of, overtaken_error
from workers.memory.namespace_settings import rules_for
from workers.memory.touch import QUERY_BOOST, strengthened
from workers.memory.unpack import know_merged, unpack
from workers.storage import (
    activity,
    duplicate_pairs,
    events,
    merged_texts,
    signatures,
    statements,
    supersession,
    tombstones,
    turns,
)
from workers.storage.activity import Activity
from workers.storage.connection import Connection
from workers.storage.tombstones import Cursor, Selection, Standing

VOUCHED_FOR = 1.0
"""The confidence of a restored fact that would otherwise end at once."""

MERGED = "merged"
"""Reason of facts that were merged; after a restore, consolidation must not merge them again."""

BY_DECAY = tuple(reason for reason in get_args(Reason) if reason not in REQUESTED)
"""Reasons of forgetting without a request."""

ENOUGH = 2
"""Number of restorations after forgetting without a request, at which a fact is pinned."""

AT_ONCE = 200
"""Facts restored in one transaction."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The outcomes of a restore, the facts with less than the full vector, and where to continue, if anywhere."""

    outcomes: dict[UUID, Outcome | InvalidInputError] = field(default_factory=dict)
    faded: list[UUID] = field(default_factory=list)
    behind: Cursor | None = None


def restore(context: Context, namespace: str, ids: Sequence[UUID], now: datetime) -> Batch:
    """Restore forgotten facts and reopen superseded ones. Idempotent.

    A restored fact is as after a recall: used and confirmed now, strengthened, with its full lifetime; only the
    signature of its vector is left until it is regenerated. Near-duplicates that had been merged into it, and were
    forgotten by the same request, are restored with it. Facts that decay forgot are restored whatever the date of
    their tombstone, and pinned the second time. A superseded fact is live beside its successor and contradicts it if
    their values differ. Refused are unknown ids, facts equal to a live one, and those superseded or forgotten on
    request after `now`.

    Raises:
        UnavailableError: an equal fact is being stored concurrently; nothing was changed.
    """
    with context.namespace(namespace) as (db, tenant):
        outcomes, faded = restore_within(context, db, tenant, _with_merged(db, tenant, ids), now, namespace)
        return Batch({id_: outcomes[id_] for id_ in ids}, faded)


def _with_merged(db: Connection, tenant: int, ids: Sequence[UUID]) -> list[UUID]:
    """Return facts with those merged into them that the same request forgot."""
    new, back = list(ids), dict.fromkeys(ids)
    while taken := [id_ for id_ in events.took_in(db, tenant, new) if id_ not in back]:
        new = tombstones.went_with(db, tenant, new, taken)
        back |= dict.fromkeys(new)
    return list(back)


def restore_next(
    context: Context, namespace: str, selection: Selection, now: datetime, behind: Cursor | None = None
) -> Batch:
    """Restore the next batch of the selected tombstones, newest first, in one transaction.

    Raises:
        UnavailableError: an equal fact is being stored concurrently; nothing was changed.
    """
    with context.namespace(namespace) as (db, tenant):
        chosen = tombstones.found(db, tenant, selection, AT_ONCE, behind)
        if not chosen:
            return Batch()
        outcomes, faded = restore_within(context, db, tenant, [one.id for one in chosen], now, namespace)
    last = Cursor(chosen[-1].forgotten_at, chosen[-1].id) if len(chosen) == AT_ONCE else None
    return Batch(outcomes, faded, last)


def restored_before(context: Context, namespace: str, now: datetime, part: UUID) -> Batch:
    """Return the facts that an earlier delivery of a part of a restore has restored, if there was one."""
    with context.namespace(namespace) as (db, tenant):
        if not tenant or activity.claim_uses(db, tenant, [part]):
            return Batch()
        done = sorted(events.done_at(db, tenant, None, "restored", now))
        live = activity.read_live(db, tenant, done)
    faded = live.only(live.anchors.fidelity == FINGERPRINT).ids
    return Batch({id_: Outcome(id=id_, action="restored") for id_ in done}, faded)


def count_restored(context: Context, namespace: str, now: datetime) -> int:
    """Return how many facts all parts of a restore have restored, as they do it at one instant."""
    with context.namespace(namespace) as (db, tenant):
        return len(events.done_at(db, tenant, None, "restored", now))


def selected(context: Context, namespace: str, selection: Selection) -> int:
    """Return the number of selected tombstones."""
    with context.namespace(namespace) as (db, tenant):
        return tombstones.count_found(db, tenant, selection)


def revive(context: Context, namespace: str, ids: Sequence[UUID], at: datetime) -> tuple[list[UUID], list[UUID]]:
    """Restore the facts that were forgotten without a request, because a recall used them.

    Returns the facts restored by this or an earlier delivery, which need no touch, and those with only a signature
    left. Such restorations do not count towards pinning.
    """
    with context.namespace(namespace) as (db, tenant):
        _, faded = restore_within(context, db, tenant, ids, at, namespace, by="recall")
        restored = events.done_at(db, tenant, ids, "restored", at)
    return [id_ for id_ in ids if id_ in restored], faded


def restore_within(
    context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime, name: str, by: str | None = None
) -> tuple[dict[UUID, Outcome | InvalidInputError], list[UUID]]:
    """Restore facts in an open transaction; return the outcomes, and the facts with less than the full vector.

    `name` is that of the namespace. With `by`, which names the operation in their history, only those that were
    forgotten without a request.
    """
    unpack(context, db, tenant, ids)
    rows = _swept(context, db, tenant, ids, now)
    there = tombstones.standings(db, tenant, ids, now)
    done = events.done_at(db, tenant, ids, "restored", now)
    known = filter(None, map(there.get, dict.fromkeys(ids)))
    gone = [one for one in known if not one.live and (by is None or one.reason in BY_DECAY)]
    forget_ended(context, db, tenant, statements.ask(db, tenant, [one.hash for one in gone])(), now)
    refused = _refused(context, db, tenant, gone, now)
    back = [one for one in gone if one.id not in done and one.id not in refused]
    pinned = _revive(context, db, tenant, rows, back, now, by)
    # with those of an earlier delivery, which may have ended before it asked for their vectors
    live = rows.among({one.id for one in back if _becomes_live(one)} | {id_ for id_ in done if there[id_].live})
    restored = {one.id: Outcome(id=one.id, action="restored", pinned=one.id in pinned) for one in back}
    outcomes = {
        id_: outcome_of(id_, there[id_].forgotten_at, there[id_].reason) if id_ in there else no_fact(id_, name)
        for id_ in ids
    }
    return outcomes | restored | refused, live.only(live.anchors.fidelity == FINGERPRINT).ids


def _swept(context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime) -> Activity:
    """Return the activity of facts, locked, after forgetting the ended ones as a pass would."""
    rows = activity.lock(db, tenant, ids)
    statements.identify(db, tenant, rows.ids)
    live = {one.id for one in tombstones.standings(db, tenant, rows.ids, now).values() if one.live}
    forget_ended_of(context, db, tenant, rows.among(live), now)
    return activity.lock(db, tenant, ids)


def _refused(
    context: Context, db: Connection, tenant: int, gone: Sequence[Standing], now: datetime
) -> dict[UUID, Outcome | InvalidInputError]:
    """Return the refusals by id; of two facts that say the same only the first is restored."""
    said = statements.known_by_hash(db, tenant, [one.hash for one in gone])
    back: dict[bytes, list[Standing]] = {}
    refused: dict[UUID, Outcome | InvalidInputError] = {}
    for one in gone:
        overtaken, before = _overtaken(context, db, one, now), back.setdefault(text_digest(one.hash), [])
        live = [said[one.hash]] if one.hash in said else []
        same = live + [other.id for other in before if same_statement(other.hash, one.hash)]
        if overtaken is not None:
            refused[one.id] = overtaken
        elif _becomes_live(one) and same:
            refused[one.id] = InvalidInputError(
                f"id: {one.id} cannot be restored, for fact {same[0]} says the same; forget that one first."
            )
        elif _becomes_live(one):
            before.append(one)
    return refused


def _overtaken(context: Context, db: Connection, one: Standing, now: datetime) -> InvalidInputError | None:
    """Return the refusal of a restore if a later request superseded or forgot the fact; decay never causes one."""
    if one.forgotten_at is None:
        at, what = one.superseded_at, "superseded"
    else:
        at, what = one.forgotten_at if one.reason in REQUESTED else None, "forgotten"
    if at is None or at <= now or not context.may_be_later(db, at):
        return None
    return overtaken_error(one.id, what, at, now)


def _becomes_live(one: Standing) -> bool:
    """Return whether restoring makes the fact live; a forgotten and superseded one stays superseded."""
    return one.forgotten_at is None or not one.superseded


def _revive(
    context: Context, db: Connection, tenant: int, rows: Activity, back: list[Standing], now: datetime, by: str | None
) -> set[UUID]:
    """Restore tombstones and reopen superseded facts; return those pinned."""
    if not back:
        return set()
    tombstones.revive(db, tenant, [one.id for one in back if one.forgotten_at is not None], now, by)
    reopened = [one for one in back if one.forgotten_at is None]
    # Their history says that it was undone.
    unpack(context, db, tenant, [one.superseded_by for one in reopened if one.superseded_by], waits=False)
    supersession.reopen(db, tenant, [one.id for one in reopened], now)
    statements.lift_forgotten(db, tenant, [one.hash for one in back])
    statements.lift_forgotten_of(db, tenant, [one.id for one in back])
    _set_apart(context, db, tenant, [one.id for one in back if one.reason == MERGED], now)
    live = rows.among({one.id for one in filter(_becomes_live, back)})
    know_merged(context, db, tenant, live.ids)
    signatures.revive(db, tenant, live.ids)
    duplicate_pairs.compare_again(db, tenant, live.ids)
    begin_again(context, db, tenant, live, now)
    often = _restored_often(db, tenant, back, live.ids) if by is None else []
    pinned = _pin_for_good(context, db, tenant, often, now)
    supersession.find_contradictions(db, tenant, live.ids, now)
    return pinned


def _set_apart(context: Context, db: Connection, tenant: int, merged: Sequence[UUID], now: datetime) -> None:
    """Record that merged facts are not what they were merged into, which leaves deep memory with their pair."""
    if merged:
        unpack(context, db, tenant, events.merged_into(db, tenant, merged), waits=False)
        duplicate_pairs.mark_different(db, tenant, merged, now)
        merged_texts.drop(db, tenant, merged)


def _restored_often(db: Connection, tenant: int, back: Sequence[Standing], live: Collection[UUID]) -> list[UUID]:
    """Return the facts just restored that had been forgotten without a request and restored before."""
    ended = [one.id for one in back if one.reason in BY_DECAY and one.id in live]
    before = events.restorations(db, tenant, ended)
    return [id_ for id_, reasons in before.items() if sum(reason in BY_DECAY for reason in reasons) >= ENOUGH]


def _pin_for_good(context: Context, db: Connection, tenant: int, ids: Sequence[UUID], now: datetime) -> set[UUID]:
    """Pin facts without end, unless they are already, and record why; an owner can end the pin."""
    rows = activity.lock(db, tenant, ids)
    rows = rows.only(~np.isposinf(rows.anchors.pinned_until))
    lifetimes = fading.lifetimes(rows.anchors)
    anchors = fading.pin(rows.anchors, lifetimes, np.inf)
    faded = as_written(anchors, now.timestamp(), rules_for(context, db, rows.namespaces))
    activity.write_used(db, rows, anchors, faded, now)
    for id_, seconds in zip(rows.ids, lifetimes.tolist(), strict=True):
        activity.pin_until(db, tenant, id_, np.inf, seconds)
    noted = [(id_, "pinned", {"until": None, "because": "restored twice"}) for id_ in rows.ids]
    events.add_many(db, tenant, now, noted)
    return set(rows.ids)


def begin_again(context: Context, db: Connection, tenant: int, rows: Activity, now: datetime) -> None:
    """Write facts as used and confirmed now, with lifetimes that start now or at the end of a pin.

    Episodes are as if they had been stored now.
    """
    instant, rules = now.timestamp(), rules_for(context, db, rows.namespaces)
    anchors = strengthened(rows.anchors, instant, QUERY_BOOST, coactivations=0)
    confirmed_at = np.maximum(anchors.confirmed_at, instant)
    anchors = replace(
        anchors,
        confirmed_at=confirmed_at,
        halvings=np.zeros_like(anchors.halvings),
        expires_at=fading.renewed(anchors, rows.decay_classes, np.maximum(anchors.pinned_until, confirmed_at)),
        encoded_at=np.full_like(anchors.encoded_at, instant),
        outrun_at=np.full_like(anchors.outrun_at, NOT_YET),
        silent_since=np.full_like(anchors.silent_since, instant),
    )
    over = ends(anchors, rules)[0] <= instant
    anchors = replace(anchors, confidence=np.where(over, VOUCHED_FOR, anchors.confidence))
    turns.encode_again(db, tenant, rows.ids, now)
    activity.write_used(db, rows, anchors, as_written(anchors, instant, rules), now)
