"""Doctor: find facts with inconsistent rows, and repair them from their texts and anchors."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

import numpy as np
from ebb.contract.admin import Examined, FactFault

from workers.context import Context
from workers.coordination import signals
from workers.core.arrays import Bools
from workers.core.fading import GUARD, SAME_INSTANT, Faded, FadingRules, as_written, fade
from workers.core.fidelity import FINGERPRINT, FULL, PENDING
from workers.core.signature import encode
from workers.memory.embed import Position
from workers.memory.namespace_settings import rules_for, unapplied
from workers.storage import activity, due, faults, namespaces, signatures, tallies, vectors
from workers.storage.activity import Activity
from workers.storage.connection import Connection, transaction
from workers.storage.faults import Parts, Range

BATCH = 500
MOST_NAMED = 10

FAULTS = {
    "no activity": "it has no anchor, so it would never fade: it starts again as it was stored",
    "no vector": "its vector is gone though it should be there: it is embedded again",
    "no signature": "it cannot be found by meaning: it is embedded again",
    "signature of another": "its signature is not that of its vector: it is embedded again",
    "wrong dimensions": "its vector has not as many dimensions as its fidelity says: it is embedded again",
    "vector left over": "only the signature of it should be left: the vector is deleted",
    "hidden": "it is live, and its signature is not: it is shown",
    "shown": "it has ended, and its signature is live: it is hidden",
    "not counted": "it is live, and stats does not count it: it is counted",
    "counted though ended": "it has ended, and stats counts it as live: it is not counted any more",
    "due though ended": "it has ended, and a pass would take it: it is never due again",
    "wrong due": "it changes before a pass would look at it: its due instant is computed again",
    "left over": "it is gone, and rows of it are left, or name it: these are deleted",
    "miscounted": "stats counts so many more, or fewer, than there are: they are counted again",
}
"""The faults of facts, with their meaning and repair.

A due fact has no fault, as the next pass updates it; after a change of settings all are due. The signature of a pooled
vector cannot be checked. Word counts are refreshed regularly, and after a repair.
"""

LACKING = ("no vector", "no signature", "signature of another", "wrong dimensions")
MOST_BITS = 32
"""Maximum Hamming distance, of 1,024 bits, between a signature and that of its vector; half precision changes one."""

FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)


def examine(
    context: Context, namespace: str | None, after: Position, now: datetime, so_far: Examined
) -> tuple[Position | None, Examined]:
    """Examine the next batch of one namespace, or all; return the position to continue from, if any, and all faults.

    `so_far.mended` says whether faults are repaired; missing vectors are computed by `embed_pending`.
    """
    mend = so_far.mended
    with transaction(context.database_url) as db:
        own = namespaces.id_within(db, namespace)
        batch = faults.following(db, own, after, BATCH)
        again = unapplied(context, db, own) if batch else []
        wrong = defaultdict[str, list[UUID]](list)
        for one, those in groupby(batch, key=lambda one: one[0]):
            found = _faults(context, db, one, [id_ for _, id_ in those], now, mend=mend, is_due=one in again)
            for fault, ids in found.items():
                wrong[fault] += ids
        wrong["left over"] = _orphans(db, own, after, batch, mend=mend)
        miscounted = 0 if batch else tallies.audit(db, own, mend=mend)
        if mend and not batch:
            for name in [namespace] if namespace else namespaces.all_names(db):
                signals.mark_grown(context.redis, name)
    return batch[-1] if batch else None, _sum(so_far, len(batch), wrong, miscounted)


def _sum(so_far: Examined, examined: int, wrong: Mapping[str, Sequence[UUID]], miscounted: int) -> Examined:
    """Return the faults of earlier batches with those of this one, in the order of `FAULTS`."""
    known, found = {one.fault: one for one in so_far.faults}, list[FactFault]()
    for fault, meaning in FAULTS.items():
        before, ids = known.get(fault), wrong.get(fault, ())
        count = (before.facts if before else 0) + (miscounted if fault == "miscounted" else len(ids))
        first = [*(before.first if before else ()), *ids][:MOST_NAMED]
        if count:
            found.append(FactFault(fault=fault, facts=count, meaning=meaning, first=first))
    return Examined(examined=so_far.examined + examined, faults=found, mended=so_far.mended)


def _orphans(db: Connection, own: int | None, after: Position, batch: Sequence[Position], *, mend: bool) -> list[UUID]:
    """Return the facts with orphaned rows, up to the end of a batch; `mend` deletes the rows."""
    gone = faults.leftovers(db, ranges(own, after, batch, faults.empty_namespaces(db, own) if not batch else []))
    if mend and gone:
        faults.delete_leftovers(db, gone)
    return [id_ for _, id_ in gone]


def ranges(own: int | None, after: Position, batch: Sequence[Position], empty: Sequence[int]) -> list[Range]:
    """Return the ranges of ids of each namespace from a position to the end of a batch, or to the very end."""
    last = dict(batch)
    open_ = [after[0]] if after[0] and own in (None, after[0]) else []
    tenants = dict.fromkeys([*open_, *last, *empty])
    upto = batch[-1] if batch else None
    return [
        (tenant, after[1] if tenant == after[0] else FIRST, LAST if upto is None or tenant != upto[0] else upto[1])
        for tenant in tenants
    ]


def _faults(
    context: Context, db: Connection, tenant: int, ids: list[UUID], now: datetime, *, mend: bool, is_due: bool
) -> dict[str, list[UUID]]:
    """Return the facts of one namespace with each fault, locked until the commit; `mend` repairs them.

    If `is_due`, the next pass computes all of them by changed settings, so that none is due at a wrong instant.
    """
    rows = activity.lock(db, tenant, ids)
    parts = faults.parts(db, tenant, ids)
    embedder = vectors.embedder(db)
    wrong = defaultdict[str, list[UUID]](list)
    for one in parts.values():
        for fault in faults_of(one, embedder.dims if embedder else None):
            wrong[fault].append(one.id)
    lacking = set(_having(wrong, LACKING))
    sound = [one for one in parts.values() if one.id not in lacking]
    wrong["signature of another"] = _with_other_signature(db, tenant, sound)
    awaiting = set(_having(wrong, LACKING))
    live = rows.among({id_ for id_, one in parts.items() if not one.ended and id_ not in awaiting})
    late, faded = _wrongly_due(rules_for(context, db, live.namespaces), live, parts, now)
    late &= not is_due
    wrong["wrong due"] = live.only(late).ids
    if mend:
        _mend(db, tenant, wrong, now)
        due.write_faded(db, live.only(late), faded.only(late), live.held[late])
    return wrong


def faults_of(one: Parts, dims: int | None) -> list[str]:
    """Return the faults of a fact's rows, except for its due time; full vectors have `dims` dimensions."""
    if one.fidelity is None:
        return ["no activity"]
    embedded = not one.ended and one.fidelity != PENDING
    with_vector = embedded and one.fidelity != FINGERPRINT
    fitting = one.dims == (one.full_dims or 0) // max(one.fidelity, FULL) and dims in (None, one.full_dims)
    found = {
        "not counted": one.retired and not one.ended,
        "no signature": embedded and one.live is None,
        "hidden": embedded and one.live is False,
        "no vector": with_vector and one.dims is None,
        "wrong dimensions": with_vector and one.dims is not None and not fitting,
        "vector left over": one.fidelity == FINGERPRINT and one.dims is not None,
        "shown": one.ended and one.live is True,
        "due though ended": one.ended and one.due,
        "counted though ended": one.ended and not one.retired,
    }
    return [fault for fault, there in found.items() if there]


def _with_other_signature(db: Connection, tenant: int, those: Sequence[Parts]) -> list[UUID]:
    """Return the facts with a full vector and a signature that does not belong to it."""
    ids = [one.id for one in those if one.fidelity == FULL and not one.ended]
    signed = signatures.read(db, tenant, ids)
    others: list[UUID] = []
    for places, stored in vectors.read(db, [tenant] * len(ids), ids).values():
        given = np.stack([signed[ids[place]] for place in places])
        bits = np.bitwise_count(encode(stored) ^ given).sum(axis=1)
        others += [ids[place] for place in places[bits > MOST_BITS]]
    return others


def _wrongly_due(rules: FadingRules, rows: Activity, parts: dict[UUID, Parts], now: datetime) -> tuple[Bools, Faded]:
    """Return which facts change before they are due, or end at another instant than stored, and their correct state.

    Due facts, held facts, and facts that a pass has processed as of a later instant are no fault. Nor is one that has
    changed just now, as it is due a little later.
    """
    instant = now.timestamp()
    soon = instant + GUARD + SAME_INSTANT
    faded, current = as_written(rows.anchors, instant, rules), fade(rows.anchors, instant, rules)
    due_at = np.array([parts[id_].due_at for id_ in rows.ids], dtype=np.float64)
    ends_at = np.array([parts[id_].ends_at for id_ in rows.ids], dtype=np.float64)
    ahead = rows.tier > current.tier
    changed = (current.tier != rows.tier) | (current.fidelity != rows.anchors.fidelity)
    later = due_at > faded.due_at + SAME_INSTANT
    moved = ~np.isclose(ends_at, faded.ends_at, rtol=0.0, atol=SAME_INSTANT)
    return ~rows.held & (due_at > soon) & (((changed | later) & ~ahead) | moved), faded


def _having(wrong: Mapping[str, Sequence[UUID]], kinds: Collection[str]) -> list[UUID]:
    return [id_ for fault in kinds for id_ in wrong.get(fault, [])]


def _mend(db: Connection, tenant: int, wrong: Mapping[str, Sequence[UUID]], now: datetime) -> None:
    def mend(statement: str, *kinds: str) -> None:
        faults.mend(db, statement, tenant, _having(wrong, kinds), now)

    def having(*kinds: str) -> tuple[Sequence[int], Sequence[UUID]]:
        ids = _having(wrong, kinds)
        return [tenant] * len(ids), ids

    mend(faults.ADD_ACTIVITY, "no activity")
    activity.update_worth(db, tenant, _having(wrong, ["no activity"]))
    mend(faults.MARK_PENDING, *LACKING)
    vectors.drop(db, *having(*LACKING, "vector left over"))
    mend(faults.TOGGLE_LIVE, "hidden", "shown")
    mend(faults.TOGGLE_RETIRED, "not counted", "counted though ended")
    activity.retire(db, *having("due though ended"))
