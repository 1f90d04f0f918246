"""Passes: due facts cool, lose dimensions, are fingerprinted or forgotten; the cost depends on changes, not on size.

A prune is a pass that takes only expired facts (hard) or those near their expiry (soft).

A pass computes the state from the anchors and the instant, and claims only facts whose next change is due. So repeated,
concurrent or missed passes lead to the same state as one pass.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from uuid import UUID

import numpy as np
from ebb.contract.decay import ListRuns, Run, Runs

from workers.context import Context
from workers.core.arrays import Bools, Ints, Vectors
from workers.core.fading import REASONS, Faded, fade, have_ended, newly_stale
from workers.core.fidelity import FINGERPRINT, pool
from workers.core.tiers import Tier
from workers.decay import forecast, forget_limit
from workers.memory.forget import forget_within
from workers.memory.namespace_settings import namespace_rules, rules_in_words, unapplied
from workers.memory.turn_limit import with_turn_limit, write_turn_limit
from workers.storage import due, events, limits, namespaces, runs, vectors
from workers.storage.activity import Activity
from workers.storage.connection import Connection, commit_later, transaction
from workers.storage.due import Work
from workers.storage.runs import Counters, NewPart, Part, State

log = logging.getLogger(__name__)

LOST_AFTER_SECONDS = 150.0
"""Age at which the message of an open part counts as lost; longer than the visibility timeout."""

PartOf = tuple[UUID, int, int]
"""A run, the first segment of a part, and its number among the parts of that segment."""


@dataclass(frozen=True, slots=True)
class Report(State):
    """The state of a run and its counts."""

    counters: Counters = field(default_factory=Counters)


def plan(
    context: Context,
    run: UUID,
    now: datetime,
    *,
    work: Work = "decay",
    asked_by: str = "",
    slot: datetime | None = None,
    dry_run: bool = False,
    force: bool = False,
    namespace: str | None = None,
) -> list[PartOf]:
    """Begin a run and return its open parts, with those of earlier runs whose messages were lost. Idempotent.

    There are no parts if nothing is due or the slot is taken. `namespace` restricts the run.
    """
    if not dry_run:
        forget_limit.check_for_gap(context, everywhere=namespace is None)
    with transaction(context.database_url) as db:
        lost = runs.open_parts(db, LOST_AFTER_SECONDS)
        tenant = namespaces.id_within(db, namespace)
        if tenant == namespaces.UNKNOWN:
            return lost
        if runs.begin(db, run, now, slot, asked_by, work=work, dry_run=dry_run, force=force, namespace=tenant):
            forget_limit.publish(context, db)
            if work == "decay" and not dry_run:
                _apply_changed_rules(context, db, now, tenant)
            if force and not dry_run:
                due.make_held_due(db, tenant)
                namespaces.release(db, tenant)
            # A dry run also takes held facts, and all facts of namespaces that the pass would compute again.
            again = unapplied(context, db, tenant) if work == "decay" and dry_run else []
            taken = due.segments(db, now, work=work, with_held=force and dry_run, namespace=tenant, again=again)
            new = _split(taken, context, context.settings.decay_ratio if work == "decay" else 1.0)
            if work == "decay" and limits.over_capacity(db, context.database_url, tenant, now):
                new.append(NewPart(runs.CROWDED, 0, 1))
            runs.add_parts(db, run, new)
        else:
            runs.check_own(db, run, work, tenant)
        return [*lost, *((run, *part) for part in runs.parts(db, run))]


def _apply_changed_rules(context: Context, db: Connection, now: datetime, tenant: int | None) -> None:
    """Make every fact due if the decay rules were changed, as due times were computed by the old ones.

    A changed setting of a namespace affects only its facts, in a pass that covers it.
    """
    own, stored = rules_in_words(context), due.rules(db)
    if own != stored:
        due.replace_rules(db, own)
    if stored is not None and own != stored:
        log.warning(
            "facts fade by other rules than before: %s, once %s; all are due. If this comes again, "
            "workers have different settings: see `ebb doctor`",
            own,
            stored,
        )
        due.make_facts_due(db, None, now)
    if differing := [one for one in namespaces.with_changed_settings(db) if tenant in (None, one)]:
        due.make_facts_due(db, differing, now)
        namespaces.settle_settings(db, differing)


def _split(due_facts: dict[int, int], context: Context, share: float) -> list[NewPart]:
    """Return the tasks: several for a large segment, and one for several small ones that fill no batch alone."""
    settings = context.settings
    parts: list[NewPart] = []
    for segment, count in sorted(due_facts.items()):
        quota = math.ceil(count * share)
        last = parts[-1] if parts and share == 1 else None
        if last is not None and last.number == 0 and last.quota + quota <= settings.decay_batch:
            parts[-1] = replace(last, quota=last.quota + quota, further=[*last.further, segment])
            continue
        tasks = min(settings.decay_threads, math.ceil(quota / settings.decay_batch))
        parts += [NewPart(segment, number, math.ceil(quota / tasks)) for number in range(tasks)]
    return parts


def apply(context: Context, part_of: PartOf, yield_to_users: Callable[[], None], until: float = math.inf) -> bool:
    """Run one part in batches, each in a transaction that also counts it; return whether it is done.

    From `until` on the monotonic clock no further batch is begun; another call continues.

    If the database server crashes, its last batches are lost together with their counts, and their facts are still due;
    `finish` waits for the disk. `yield_to_users` is called after each batch, outside of transactions.

    The task that ends the last of the other parts then enforces capacities: those parts reduce vectors, and so the
    bytes that count.
    """
    run, segment, _ = part_of
    if segment != runs.CROWDED and not _apply(context, part_of, _batch, yield_to_users, until):
        return False
    with transaction(context.database_url) as db:
        crowded_is_left = runs.crowded_is_left(db, run)
    return not crowded_is_left or _apply(context, (run, runs.CROWDED, 0), _crowded, yield_to_users, until)


def _apply(
    context: Context,
    part_of: PartOf,
    process: Callable[[Context, Connection, PartOf, Part], bool],
    yield_to_users: Callable[[], None],
    until: float,
) -> bool:
    more = True
    while more:
        try:
            with transaction(context.database_url) as db:
                with db.pipeline():
                    commit_later(db)
                    part = runs.lock_part(db, *part_of)
                more = part is not None and process(context, db, part_of, part)
                if not more:
                    runs.finish_part(db, *part_of)
        except forget_limit.ManyEndedError as many:
            forget_limit.find_cutoff(context, part_of[0], many.part, many.tenant)
        yield_to_users()
        if time.monotonic() >= until:
            break
    return not more


def finish(context: Context, run: UUID) -> Report:
    """Finish a run where all its parts are done, and return its counts; a call that finishes it on a shard logs them.

    A run over all namespaces has the same id on every shard, and is finished when it is on all of them. That of one
    group has not begun on the shards of others, such as the current one.
    """
    here = _finish(context, run)
    if context.settings.shards == 1 or (here.begun and not here.finished):
        return here
    every = [one for _ in context.each_shard() if (one := _finish(context, run)).begun]
    counters = reduce(add, (one.counters for one in every), Counters())
    return replace(here, counters=counters, finished=all(one.finished for one in every))


def _finish(context: Context, run: UUID) -> Report:
    with transaction(context.database_url) as db:
        just_finished = runs.finish(db, run)
        report = Report(**asdict(runs.state(db, run)), counters=runs.totals(db, run))
    if just_finished:
        _log(report)
    return report


def _log(report: Report) -> None:
    """Log the counts of a run in the documented format, unless it was a dry run."""
    done = report.counters
    if report.dry_run:
        return
    if report.work in ("decay", "janitor"):
        _log_decay(done)
    elif report.work == "startup prune":
        log.info("startup prune removed %d expired facts", done.forgotten)
    else:
        log.info("periodic prune - %d expired, %d decayed", done.expired, done.decayed)
    if done.held:
        log.warning(
            "FORGET LIMIT MET: %d facts are over but stay visible. `ebb doctor` names their namespaces. List them with "
            "`ebb held -n NAME`, then let them go with `ebb held -n NAME --let-go ID…` or keep them with "
            "`ebb held -n NAME --keep ID…`, or all with `--all` in place of ids.",
            done.held,
        )


def _log_decay(done: Counters) -> None:
    log.info(
        "[decay-2.0] %(changed)d/%(processed)d | tiers: hot=%(hot)d warm=%(warm)d cold=%(cold)d | "
        "compressed=%(compressed)d fingerprinted=%(fingerprinted)d | %(duration_ms).1fms across %(segments)d segments",
        asdict(done),
    )
    if done.forgotten:
        log.info("forgotten: expired=%(expired)d faded=%(faded)d culled=%(culled)d aged=%(aged)d", asdict(done))
    if done.crowded:
        log.info("crowded out: %d", done.crowded)


def _batch(context: Context, db: Connection, part_of: PartOf, part: Part) -> bool:
    """Process the next batch of a part; return whether there may be another."""
    began = time.perf_counter()
    most = min(context.settings.decay_batch, part.quota)
    if most <= 0:
        return False
    now = part.planned_for
    if part.dry_run:
        rows = due.preview(
            db,
            part.segments,
            now,
            most,
            part.place,
            with_held=part.force,
            work=part.work,
            namespace=part.namespace,
            again=unapplied(context, db, part.namespace) if part.work == "decay" else [],
        )
    else:
        rows = due.claim(db, part.segments, now, most, work=part.work, namespace=part.namespace)
    if not rows.ids:
        return False
    own, before = namespace_rules(context, db, rows.namespaces), rows
    rows = with_turn_limit(before, own, now)
    faded = fade(rows.anchors, now.timestamp(), own.rules)
    if part.work == "janitor" or rows.held.any():
        faded = _tidied(context, db, rows, faded, now, held_alone=part.work != "janitor")
    forgotten, held = forget_limit.decide(context, db, part_of[0], part, rows, faded)
    with db.pipeline():
        if not part.dry_run:
            write_turn_limit(db, before, rows)
            _write(db, part_of[0], rows, faded, forgotten, held, now)
        counters = _count(rows, faded, forgotten, held & ~rows.held, now)
        spent = (time.perf_counter() - began) * 1000
        runs.count(db, *part_of, replace(counters, duration_ms=spent))
    return len(rows) < part.quota


def _crowded(context: Context, db: Connection, part_of: PartOf, part: Part) -> bool:
    """Forget the next facts over capacity; return whether there may be more. A dry run counts all of them at once."""
    began = time.perf_counter()
    if part.dry_run:
        gone = forecast.crowded_out(context, db, part)
    else:
        gone = forget_limit.forget_least_valuable(context, db, part_of[0], part)
    spent = (time.perf_counter() - began) * 1000
    runs.count(db, *part_of, Counters(processed=gone, changed=gone, crowded=gone, duration_ms=spent))
    return bool(gone) and not part.dry_run


def _tidied(
    context: Context, db: Connection, rows: Activity, faded: Faded, now: datetime, *, held_alone: bool
) -> Faded:
    """Return the state where facts, or only held ones, that have ended by the janitor's rules are ended too."""
    rules = namespace_rules(context, db, rows.namespaces, janitor=True).rules
    found = fade(rows.anchors, now.timestamp(), rules)
    return faded.replaced(have_ended(found, now.timestamp()) & (rows.held | (not held_alone)), found)


def _write(
    db: Connection, run: UUID, rows: Activity, faded: Faded, forgotten: Bools, held: Bools, now: datetime
) -> None:
    """Write tombstones, reduced vectors, and the new state of the facts."""
    stay = ~forgotten
    waiting = forget_limit.until_requested_end(rows, faded, held, now)
    _shrink(db, rows.only(stay), faded.fidelity[stay])
    due.write_faded(db, rows, waiting, held)
    gone = rows.only(forgotten)
    reasons = [REASONS[code] for code in faded.end_reason[forgotten]]
    silent = rows.only(stay & newly_stale(rows.anchors, faded))
    events.add_all(db, silent.namespaces.tolist(), silent.ids, now, "stale")
    forget_within(db, gone.namespaces.tolist(), gone.ids, reasons, now, run)


def _shrink(db: Connection, rows: Activity, fidelity: Ints) -> None:
    """Pool the vectors of facts whose fidelity decreases, and delete those that keep only their signature."""
    falls = fidelity > rows.anchors.fidelity
    dropped = rows.only(falls & (fidelity == FINGERPRINT))
    vectors.drop(db, dropped.namespaces, dropped.ids)
    pooled = falls & (fidelity < FINGERPRINT)
    shrinking, buckets = rows.only(pooled), fidelity[pooled]
    if len(shrinking):
        _pool(db, shrinking, buckets)


def _pool(db: Connection, rows: Activity, buckets: Ints) -> None:
    """Pool vectors to a dims per bucket; pooling in steps has the same result as pooling at once."""
    had = rows.anchors.fidelity
    order: list[Ints] = []
    pooled: list[Vectors] = []
    for places, stored in vectors.read(db, rows.namespaces, rows.ids).values():
        further = buckets[places] // had[places]
        for times in np.unique(further).tolist():
            chosen = further == times
            order.append(places[chosen])
            pooled.append(pool(stored[chosen], times))
    if order:
        written = np.concatenate(order)
        ids = [rows.ids[place] for place in written]
        vectors.shrink(db, rows.namespaces[written], ids, pooled)


def _count(rows: Activity, faded: Faded, forgotten: Bools, held: Bools, now: datetime) -> Counters:
    expired = rows.anchors.expires_at <= now.timestamp()
    by_reason = {name: int((forgotten & (faded.end_reason == code)).sum()) for code, name in enumerate(REASONS)}
    decayed = ~expired & (faded.halvings > rows.anchors.halvings)
    falls = ~forgotten & (faded.fidelity > rows.anchors.fidelity)
    stale = ~forgotten & newly_stale(rows.anchors, faded)
    changed = forgotten | falls | decayed | stale | (faded.tier != rows.tier)
    by_tier = {tier.name.lower(): int((faded.tier == tier).sum()) for tier in Tier}
    return Counters(
        processed=len(rows),
        changed=int(changed.sum()),
        **by_tier,
        compressed=int((falls & (faded.fidelity < FINGERPRINT)).sum()),
        fingerprinted=int((falls & (faded.fidelity == FINGERPRINT)).sum()),
        **by_reason,
        stale=int(stale.sum()),
        decayed=int(decayed.sum()),
        held=int(held.sum()),
    )


KEPT_RUNS = timedelta(days=30)
"""Retention: passes every five minutes leave millions of rows in a year."""

DROPPED = 1_000
"""Runs deleted in one transaction."""


def latest_runs(context: Context, asked: ListRuns) -> Runs:
    """Return the latest runs that covered a namespace, or with `everything` all runs, newest first.

    A page ends with all runs that began at the same instant, as the next page begins before it.
    """
    found: list[Run] = []
    for _ in context.each_shard() if asked.everything else [0]:
        with transaction(context.database_url) as db:
            found += runs.latest(db, asked.namespace, asked.limit, asked.before, everything=asked.everything)
    latest = sorted(found, key=lambda run: run.started_at, reverse=True)
    last = latest[asked.limit - 1].started_at if len(latest) >= asked.limit else None
    return Runs(runs=[run for run in latest if last is None or run.started_at >= last], next=last)


def drop_old_runs(context: Context) -> int:
    """Delete finished runs older than 30 days; return how many."""
    dropped = 0
    with transaction(context.database_url) as db:
        limits.drop_old_endings(db)
    while True:
        with transaction(context.database_url) as db:
            more = runs.drop_old(db, KEPT_RUNS, DROPPED)
        dropped += more
        if more < DROPPED:
            return dropped
