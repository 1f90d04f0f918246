"""Consolidate: find near-duplicates and merge them into one fact, which is strengthened; the others become tombstones.

Merging happens only on request, after a list. Merged facts can be restored and are not merged again. The result is
deterministic; no LLM is involved.
"""

import logging
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from workers.context import Context
from workers.core import confidence, lifetime
from workers.core import near_duplicates as alike
from workers.core.arrays import Ints, Vectors
from workers.core.fading import Anchors, as_written, select
from workers.decay.forget_limit import take_allowance
from workers.memory.edit import union_of_tags
from workers.memory.forget import forget_within
from workers.memory.namespace_settings import rules_for
from workers.memory.touch import confirmed, salience
from workers.storage import (
    activity,
    duplicate_pairs,
    events,
    facts,
    links,
    merged_texts,
    occurrences,
    packing,
    runs,
    signatures,
    statements,
    vectors,
)
from workers.storage.activity import PERMANENT, Activity
from workers.storage.connection import Connection
from workers.storage.duplicate_pairs import Member, Pair

log = logging.getLogger(__name__)

MOST_PAIRS = 50_000
"""Pairs examined in one round, most similar first; a namespace with more is merged in several rounds."""

AT_ONCE = 200
"""Groups merged in one transaction."""

REASON = "merged"


@dataclass(frozen=True, slots=True)
class Group:
    """The fact that is kept, and those merged into it, each with its cosine to the kept one."""

    keep: Member
    merge: list[tuple[Member, float]]


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged groups, the number of facts held by the forget limit, and kept facts with a reduced vector."""

    groups: list[Group] = field(default_factory=list)
    held: int = 0
    faded: list[UUID] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of compared facts, the merged groups, and whether there is more to do."""

    compared: int = 0
    merged: Merged = Merged()
    more: bool = False


def consolidate(
    context: Context, namespace: str, run: UUID, now: datetime, until: float, *, apply: bool, force: bool = False
) -> Progress:
    """Compare new facts, and merge near-duplicates if `apply` is true, until an instant on the monotonic clock.

    Another call continues where it stopped; `run` has one forget limit, unless `force` is true.
    """
    compared = 0
    while batch := compare(context, namespace, now):
        compared += batch
        if time.monotonic() >= until:
            return Progress(compared, more=True)
    merged, more = _merge_all(context, namespace, run, now, until, force=force) if apply else (Merged(), False)
    return Progress(compared, merged, more)


def _merge_all(
    context: Context, namespace: str, run: UUID, now: datetime, until: float, *, force: bool
) -> tuple[Merged, bool]:
    """Merge round by round; return the result, and whether time ran out."""
    done, went_on = Merged(), True
    while went_on and not done.held:
        groups, went_on = near_duplicates(context, namespace, now), False
        for begin in range(0, len(groups), AT_ONCE):
            step = merge(context, namespace, run, groups[begin : begin + AT_ONCE], now, force=force)
            went_on |= bool(step.groups)
            done = Merged(done.groups + step.groups, step.held, done.faded + step.faded)
            if done.held or time.monotonic() >= until:
                return done, not done.held
    return done, False


def near_duplicates(context: Context, namespace: str, now: datetime) -> list[Group]:
    """Return the groups of near-duplicates among compared facts."""
    with context.namespace(namespace) as (db, tenant):
        pairs = duplicate_pairs.unsettled(db, tenant, now, MOST_PAIRS)
        there = duplicate_pairs.members(db, tenant, list({id_ for pair in pairs for id_ in pair}), now)
    cosines = {pair: cosine for pair, cosine in pairs.items() if there.keys() >= set(pair)}
    best_first = [member.id for member in sorted(there.values(), key=_keep_order)]
    staying = frozenset(member.id for member in there.values() if _is_exempt(member))
    return [
        Group(there[kept], [(there[id_], cosines[min(id_, kept), max(id_, kept)]) for id_ in gone])
        for kept, gone in alike.groups(best_first, cosines, staying)
    ]


def merge(
    context: Context, namespace: str, run: UUID, groups: Sequence[Group], now: datetime, *, force: bool = False
) -> Merged:
    """Merge groups in one transaction, without facts that changed meanwhile; `run` has one forget limit. Idempotent."""
    with context.namespace(namespace) as (db, tenant):
        if not tenant or not groups:
            return Merged()
        runs.record(db, run, now, "consolidation", None, force=force)
        rows = activity.lock(db, tenant, sorted({member.id for group in groups for member in _members(group)}))
        wanted = _unchanged(db, tenant, groups, now)
        total = sum(len(group.merge) for group in wanted)
        granted = total if force else take_allowance(context, db, tenant, total, now)
        going = _cut(wanted, granted)
        faded = _merge(context, db, tenant, run, rows, going, now) if going else []
    if granted < total:
        log.warning("FORGET LIMIT MET: %d near-duplicates are kept that would be merged", total - granted)
    return Merged(going, total - granted, faded)


def _keep_order(member: Member) -> tuple[bool, bool, float, int, datetime, UUID]:
    """Return the sort key of facts, the one to keep first.

    Pinned facts come first, then permanent ones, those with a longer lifetime, more confirmations, and an earlier
    creation.
    """
    seconds = lifetime.lifetime(member.decay_class or None).seconds
    lives = math.inf if seconds is None else seconds
    passing = member.decay_class != PERMANENT
    return not member.pinned, passing, -lives, -member.confirmations, member.created_at, member.id


def _is_exempt(member: Member) -> bool:
    return member.pinned or member.decay_class == PERMANENT


def _members(group: Group) -> list[Member]:
    return [group.keep, *(member for member, _ in group.merge)]


def _unchanged(db: Connection, tenant: int, groups: Sequence[Group], now: datetime) -> list[Group]:
    """Return the groups without facts that were forgotten, pinned, edited or set apart before they were locked."""
    there = duplicate_pairs.members(db, tenant, [member.id for group in groups for member in _members(group)], now)
    pairs = [(group.keep.id, one.id) for group in groups for one, _ in group.merge]
    same = set(_saying_the_same(db, tenant, pairs))  # earlier versions found pairs that differ
    left = [
        Group(
            there[group.keep.id],
            [
                (there[one.id], cosine)
                for one, cosine in group.merge
                if (group.keep.id, one.id) in same and one.id in there and not _is_exempt(there[one.id])
            ],
        )
        for group in groups
        if group.keep.id in there
    ]
    return [group for group in left if group.merge]


def _cut(groups: Sequence[Group], granted: int) -> list[Group]:
    """Return the groups, cut after `granted` merged facts."""
    going = []
    for group in groups:
        if granted > 0:
            going.append(replace(group, merge=group.merge[:granted]))
        granted -= len(group.merge)
    return going


def _merge(
    context: Context, db: Connection, tenant: int, run: UUID, rows: Activity, groups: Sequence[Group], now: datetime
) -> list[UUID]:
    """Merge locked groups; return the kept facts with less than the full vector."""
    faded = _strengthen(context, db, tenant, rows, groups, now)
    merges = [(group.keep.id, member.id, round(cosine, 4)) for group in groups for member, cosine in group.merge]
    into, gone = [keep for keep, _, _ in merges], [member for _, member, _ in merges]
    forget_within(db, [tenant] * len(gone), gone, [REASON] * len(gone), now, run)
    noted = []
    for keep, member, cosine in merges:
        noted.append((member, "merged into", {"id": str(keep), "similarity": cosine}))
        noted.append((keep, "took in", {"id": str(member), "similarity": cosine}))
    events.add_many(db, tenant, now, noted)
    links.take_over(db, tenant, gone, into)
    occurrences.take_over(db, tenant, gone, into)
    statements.identify(db, tenant, [*gone, *into])
    merged_texts.take_over(db, tenant, gone, into)
    keepers = [group.keep.id for group in groups]
    importances = [max(member.importance for member in _members(group)) for group in groups]
    tags = [union_of_tags(*(member.tags for member in _members(group))) for group in groups]
    duplicate_pairs.take_over(db, tenant, keepers, tags, importances)
    activity.update_worth(db, tenant, keepers)
    return faded


def _strengthen(
    context: Context, db: Connection, tenant: int, rows: Activity, groups: Sequence[Group], now: datetime
) -> list[UUID]:
    """Confirm the kept facts now, with the highest strength, confidence and expiry of their groups.

    Return those with less than the full vector.
    """
    place = {id_: i for i, id_ in enumerate(rows.ids)}
    groups = sorted(groups, key=lambda group: place[group.keep.id])
    members = [[place[member.id] for member in _members(group)] for group in groups]
    keepers = np.zeros(len(rows), dtype=np.bool_)
    keepers[[own[0] for own in members]] = True
    kept, times = rows.only(keepers), np.array([len(group.merge) for group in groups], dtype=np.int64)
    anchors = confirmed(_best_of(rows.anchors, members, times, now), kept, now.timestamp(), always=True)
    latest = np.array([rows.anchors.expires_at[own].max() for own in members])
    anchors = replace(anchors, expires_at=np.maximum(anchors.expires_at, latest))
    faded = as_written(anchors, now.timestamp(), rules_for(context, db, kept.namespaces))
    activity.write_used(db, kept, anchors, faded, now)
    activity.confirm(db, tenant, kept.ids, times.tolist())
    return kept.only(kept.anchors.reduced).ids


def _best_of(facts: Anchors, members: Sequence[Sequence[int]], times: Ints, now: datetime) -> Anchors:
    """Return the anchors of each group's first member, with the highest strength and confidence of the group."""
    alive = salience(facts, now.timestamp())
    strongest = select(facts, np.array([own[int(alive[own].argmax())] for own in members], dtype=np.int64))
    surest = np.array([facts.confidence[own].max() for own in members])
    return replace(
        select(facts, np.array([own[0] for own in members], dtype=np.int64)),
        base=strongest.base,
        coactivations=strongest.coactivations,
        last_seen_at=strongest.last_seen_at,
        confidence=confidence.reinforced(surest, times),
    )


KIND = "semantic"
"""Only semantic facts: two equal episodes happened twice, and chunks mirror files."""

COMPARED = 500
"""Facts compared in one transaction, for which all signatures of the namespace are read once."""

COMPARED_BY_INDEX = 20
"""The same in a namespace with an HNSW index, which is searched for each fact."""

NEAREST = 200
"""Number of nearest facts that are compared in detail; facts of one pattern with other figures have near signatures."""

PAIRS = 4_000
"""Number of pairs whose texts and vectors are read at once."""

Number = TypeVar("Number", np.float32, np.uint8)


def compare(context: Context, namespace: str, now: datetime) -> int:
    """Find the near-duplicates of the next uncompared facts; return how many were compared. Idempotent.

    Those that are written meanwhile are compared again later.
    """
    with context.namespace(namespace) as (db, tenant):
        indexed = signatures.is_indexed(db, tenant)
        waiting = duplicate_pairs.uncompared(db, tenant, COMPARED_BY_INDEX if indexed else COMPARED)
        if not waiting:
            return 0
        if indexed:
            near = signatures.nearest_of_each(db, tenant, list(waiting), NEAREST, alike.MOST_BITS)
        else:
            near = _nearest_of_each(db, tenant, list(waiting))
        candidates = sorted({(min(pair), max(pair)) for pair in near})
        found: dict[Pair, float] = {}
        for begin in range(0, len(candidates), PAIRS):
            found |= _alike(db, tenant, candidates[begin : begin + PAIRS])
        marked = duplicate_pairs.mark_compared(db, tenant, waiting)  # before the facts, as an erasure does
        duplicate_pairs.add(db, tenant, list(found), list(found.values()), now)
        return marked


def _nearest_of_each(db: Connection, tenant: int, ids: Sequence[UUID]) -> list[Pair]:
    """Return pairs of a live fact and one of its nearest live facts, by comparing all signatures of the namespace."""
    own = signatures.read(db, tenant, ids, live=True)
    if not own:
        return []
    mine = np.stack(list(own.values()))
    rows, bits, keys = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, "V16")
    for others, signs in signatures.all_live(db, tenant):
        more, places, differing = alike.nearest(mine, signs, NEAREST + 1)  # one is the fact itself
        rows, bits = np.concatenate([rows, more]), np.concatenate([bits, differing])
        keys = np.concatenate([keys, np.array(others, "V16")[places]])
        first = alike.first_of_each(rows, bits, NEAREST + 1)
        rows, bits, keys = rows[first], bits[first], keys[first]
    facts = list(own)
    pairs = [(facts[row], UUID(bytes=key)) for row, key in zip(rows.tolist(), keys.tolist(), strict=True)]
    return [(one, two) for one, two in pairs if one != two]


def _alike(db: Connection, tenant: int, candidates: Sequence[Pair]) -> dict[Pair, float]:
    """Return the near-duplicates among pairs, with their cosines."""
    found = _similarities(db, tenant, _saying_the_same(db, tenant, candidates))
    return {pair: cosine for pair, cosine in found.items() if cosine >= alike.ALIKE}


def _saying_the_same(db: Connection, tenant: int, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of live facts about the same whose wordings do not differ."""
    related = duplicate_pairs.about_the_same(db, tenant, pairs, KIND)
    texts = facts.texts(db, tenant, list({*chain.from_iterable(related)}))
    said = {id_: alike.wording(text) for id_, text in texts.items()}
    there = [pair for pair in related if said.keys() >= set(pair)]  # others were forgotten just now
    common = packing.frequent_words()
    return [(one, two) for one, two in there if not alike.differ(said[one], said[two], common)]


def _similarities(db: Connection, tenant: int, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """Return the cosine of each pair, by vectors pooled to the same size if both have one, else by signatures."""
    ids = sorted({*chain.from_iterable(pairs)})
    kept, signs = _vectors(db, tenant, ids), signatures.read(db, tenant, ids)
    by_shape: dict[tuple[int, int], list[Pair]] = defaultdict(list)
    for one, two in (pair for pair in pairs if signs.keys() >= set(pair)):
        first, second = (one, two) if _dims(kept, one) >= _dims(kept, two) else (two, one)
        by_shape[_dims(kept, first), _dims(kept, second)].append((first, second))
    found: dict[Pair, float] = {}
    for (_, fewer), some in by_shape.items():
        # For near-duplicates two signatures are more precise than a signature and a vector.
        cosines = alike.cosines(*_sides(kept, some)) if fewer else alike.estimated_cosines(*_sides(signs, some))
        found |= {(min(pair), max(pair)): cosine for pair, cosine in zip(some, cosines.tolist(), strict=True)}
    return found


def _sides(own: Mapping[UUID, NDArray[Number]], pairs: Sequence[Pair]) -> tuple[NDArray[Number], NDArray[Number]]:
    """Return the arrays of the first and of the second facts of pairs, one row a pair."""
    return np.stack([own[one] for one, _ in pairs]), np.stack([own[two] for _, two in pairs])


def _vectors(db: Connection, tenant: int, ids: Sequence[UUID]) -> dict[UUID, Vectors]:
    by_dims = vectors.read(db, [tenant] * len(ids), ids)
    return {ids[place]: row for places, rows in by_dims.values() for place, row in zip(places, rows, strict=True)}


def _dims(kept: Mapping[UUID, Vectors], id_: UUID) -> int:
    return len(kept[id_]) if id_ in kept else 0
