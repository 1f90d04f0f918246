"""Tasks of decay: passes, prunes, the backfill of decay classes, and decisions on held facts."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

from celery import Task
from celery.exceptions import Ignore
from ebb.contract import decay as contract
from ebb.contract.operation import Params
from ebb.contract.values import MOST_RESULTS, Count, Flag, Name
from redis.exceptions import RedisError

from workers.celery import settings
from workers.coordination import outbox, signals
from workers.decay import backfill as backfilling
from workers.decay import endings, forget_limit
from workers.decay import passes as decay
from workers.decay.endings import Notice
from workers.decay.forget_limit import Decided
from workers.memory import embed
from workers.queues import FIRST, FURTHER, MAINTENANCE
from workers.tasks import callbacks
from workers.tasks.operation import Place, Upkeep, going_on, internal, shards_of, task_of, verb_of, walk
from workers.tasks.task import WORK_SECONDS, OnceTask, context, instant, note, use_of, uuid_of, write_instant

DECIDING_SECONDS = 5.0
"""Time limit of one call; the caller repeats it for the rest."""

PASSED = (
    "processed", "changed", "hot", "warm", "cold", "compressed", "fingerprinted", "forgotten", "stale", "held",
    "duration_ms", "segments",
)  # fmt: skip


class Plan(contract.Decay):
    """A pass, possibly sent by beat."""

    scheduled: Flag = False


class PrunePlan(contract.Prune):
    """A prune, possibly sent by beat or a starting worker."""

    scheduled: Flag = False
    startup: Flag = False


class PassPart(Params):
    """A part of a pass, by its first segment.

    It may cover several: workers of earlier versions do only the first unless `grouped` says so.
    """

    run: UUID
    segment: Count
    part: Count
    grouped: Flag = True


class NoticesPart(Upkeep):
    """Notices of endings, of every namespace or the rest of them."""

    after: Place | None = None
    shard: Count = 0


class BackfillPart(contract.Backfill):
    """A backfill, or the rest of one."""

    after: Place | None = None
    shard: Count = 0
    so_far: contract.Backfilled | None = None
    asked_by: Name | None = None


@task_of(contract.DECAY, Plan)
def plan(self: Task, asked: Plan) -> dict[str, Any]:
    """Send the tasks of a pass; the last of them answers with the run's counters."""
    at = instant(self, asked, writes=not asked.dry_run)
    if asked.scheduled and not signals.may_start_pass(context.redis):
        return {"skipped": "users wait for answers, or the last pass was less than a minute ago"}
    return _pass(self, asked, at, force=asked.force)


@task_of(contract.PRUNE, PrunePlan)
def prune(self: Task, asked: PrunePlan) -> dict[str, Any]:
    """Forget expired facts (hard), and halve or forget those near their expiry (soft); return the counts."""
    at = instant(self, asked, writes=not asked.dry_run)
    if asked.startup and not signals.first_of(context.redis, "start", self.request.id or "", signals.STARTED_SECONDS):
        return {"skipped": "another worker has just started, and prunes"}
    wanted = "prune" if asked.hard and asked.soft else "hard prune" if asked.hard else "soft prune"
    return _pass(self, asked, at, work="startup prune" if asked.startup else wanted)


@internal("decay.apply", PassPart, ignore_result=True)
def apply(self: Task, part: PassPart) -> None:
    """Process one part of a pass, and finish the run after the last one; a successor continues after 30 seconds."""
    until = time.monotonic() + WORK_SECONDS
    if not decay.apply(context, (part.run, part.segment, part.part), yield_to_users, until):
        apply.apply_async(kwargs=part.given(), priority=self.request.delivery_info.get("priority"))
        return
    report = decay.finish(context, part.run)
    if report.finished and report.asked_by:
        callbacks.mark_as_done(context.redis, report.asked_by, _passed(report))


@task_of(contract.BACKFILL, BackfillPart, base=OnceTask)
def backfill(self: Task, asked: BackfillPart) -> dict[str, Any]:
    """Classify facts without an explicit decay class again; the last successor answers."""
    until = time.monotonic() + WORK_SECONDS
    at = instant(self, asked, writes=not asked.dry_run)
    done = _so_far(asked.so_far)

    def step(place: embed.Position) -> embed.Position | None:
        nonlocal done
        rest, more = backfilling.backfill(context, asked.scope, place, at, dry_run=asked.dry_run, prune=asked.prune)
        done += more
        return rest

    rest = walk(asked, step, until, everywhere=asked.everywhere, start=embed.START)
    changes = [{"from": was, "to": now, "facts": facts} for (was, now), facts in sorted(done.changes.items())]
    answer = {"examined": done.examined, "changes": changes, "overdue": done.overdue}
    if rest is not None:
        going = going_on(rest) | {"so_far": answer, "now": at.isoformat()}
        hand_over(self, asked, going, f"{done.examined} facts so far")
    return answered(asked, answer)


runs = verb_of(contract.RUNS, decay.latest_runs)
held = verb_of(contract.HELD, forget_limit.held_facts)


@task_of(contract.LET_GO, contract.LetGo, base=OnceTask, grows=True)
def let_go(self: Task, asked: contract.LetGo) -> dict[str, Any]:
    """Forget the given held facts, or with `everything` all; return how many, and how many are left."""
    return _decide(self, asked, partial(forget_limit.let_go, use=use_of(self)))


@task_of(contract.KEEP, contract.Keep, base=OnceTask)
def keep(self: Task, asked: contract.Keep) -> dict[str, Any]:
    """Keep the given held facts, or with `everything` all; return how many, and how many are left."""
    return _decide(self, asked, partial(forget_limit.keep, use=use_of(self)))


@internal("memory.notify_endings", NoticesPart, ignore_result=True)
def notify_endings(self: Task, asked: NoticesPart) -> None:
    """Send notices of facts that end soon, to the webhook and as the Celery event `memory-ending`.

    A successor continues with further namespaces after 30 seconds. A concurrent task ends at once: a webhook that does
    not answer may take longer than until beat sends the next.
    """
    at, until = write_instant(self, asked.now), time.monotonic() + WORK_SECONDS

    def announce(notice: Notice) -> None:
        with self.app.events.default_dispatcher() as dispatcher:
            dispatcher.send("memory-ending", **notice.document)

    def step(place: embed.Position) -> embed.Position | None:
        return endings.notify(context, place, at, until, announce)

    with signals.try_lock(context.redis, "notices", WORK_SECONDS * 2, task_id=self.request.id) as alone:
        rest = walk(asked, step, until, everywhere=True, start=embed.START, own=True) if alone else None
    if rest is not None:
        notify_endings.apply_async(kwargs=going_on(rest) | {"now": at.isoformat()})


def _decide(task: Task, asked: contract.Decide, decide: Callable[..., Decided]) -> dict[str, Any]:
    """Forget or keep held facts for up to `DECIDING_SECONDS`."""
    at = write_instant(task, asked.now)
    done = decide(context, asked.namespace, asked.ids, at, time.monotonic() + DECIDING_SECONDS)
    return {"decided": len(done.ids), "ids": [str(id_) for id_ in done.ids[:MOST_RESULTS]], "left": done.left}


def _pass(task: Task, asked: Plan | PrunePlan, at: datetime, **options: Any) -> dict[str, Any]:
    """Begin a pass and send its parts; return its counters if there are none, else the last part answers."""
    asked_by = task.request.id or ""
    run, slot = uuid_of(asked_by), at.replace(second=0, microsecond=0) if asked.scheduled else None
    options |= {"dry_run": asked.dry_run, "namespace": asked.scope}
    parts = [
        (place, *part)
        for place in shards_of(asked)
        for part in decay.plan(context, run, at, asked_by=asked_by, slot=slot, **options)
    ]
    was_sent = run in {part_run for _, part_run, _, _ in parts}
    if was_sent:
        callbacks.keep(context.redis, task)
    for place, part_run, segment, part in parts:
        with context.at(place):
            given = {"run": str(part_run), "segment": segment, "part": part, "grouped": True}
            apply.apply_async(kwargs=given, priority=FIRST if asked.dry_run and part_run == run else FURTHER)
    report = decay.finish(context, run)
    if was_sent and (not report.finished or callbacks.were_sent(context.redis, task)):
        leave_answer_to_others(task, f"{len(parts)} parts sent")
    # A run over an unknown namespace never began.
    return _passed(replace(report, work=options.get("work", "decay"), dry_run=asked.dry_run))


def _passed(report: decay.Report) -> dict[str, Any]:
    """Return the counters that belong to the kind of a pass."""
    done = report.counters
    duration_ms = round(done.duration_ms, 1)
    if report.work == "decay":
        return {name: getattr(done, name) for name in PASSED} | {"duration_ms": duration_ms}
    return {
        "expired": done.expired,
        "decayed": done.decayed,
        "deleted": done.faded + done.culled + done.aged,
        "held": done.held,
        "dry_run": report.dry_run,
        "duration_ms": duration_ms,
        "segments": done.segments,
    }


def _so_far(done: contract.Backfilled | None) -> backfilling.Backfilled:
    """Return the counts of earlier parts of a backfill."""
    if done is None:
        return backfilling.Backfilled()
    changes = Counter({(change.was, change.to): change.facts for change in done.changes})
    return backfilling.Backfilled(done.examined, changes, done.overdue)


def hand_over(task: Task, asked: Any, rest: dict[str, Any], said: str, countdown: float | None = None) -> NoReturn:
    """Send a successor with the same parameters and `rest`, which answers in place of this task, and end this task.

    It begins after `countdown` seconds, if given, and runs in the maintenance queue, so that no child that recalls is
    kept busy.
    """
    callbacks.keep(context.redis, task)
    given = asked.given() | rest | {"asked_by": asked.asked_by or task.request.id or ""}
    priority = FIRST if getattr(asked, "dry_run", False) else FURTHER
    task.apply_async(kwargs=given, queue=MAINTENANCE, routing_key=MAINTENANCE, priority=priority, countdown=countdown)
    leave_answer_to_others(task, said)


def leave_answer_to_others(task: Task, said: str) -> NoReturn:
    """End a task that a later one answers; Flower shows it as succeeded."""
    task.send_event("task-succeeded", result=said, runtime=0.0)
    raise Ignore


def answered(asked: Any, answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer, and store it as the result of the task that waits for it, which then leaves the outbox."""
    if waits := asked.asked_by:
        note(waits, answer)
        callbacks.mark_as_done(context.redis, waits, answer)
        with suppress(RedisError):  # then a late delivery removes it
            outbox.remove(context.redis, asked.namespace, waits)
    return answer


def yield_to_users() -> None:
    """Pause between two batches while users wait for answers."""
    if signals.users_wait(context.redis):
        time.sleep(settings.decay_sleep_ms / 1000)
