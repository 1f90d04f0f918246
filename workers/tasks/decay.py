"""The tasks by which facts fade and end: plan, prune, apply, and the backfill of decay classes."""

import time
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

from celery import Task
from celery.exceptions import Ignore

from workers import validation
from workers.celery import app, settings
from workers.coordination import signals
from workers.decay import backfill as backfilling
from workers.decay import passes as decay
from workers.decay import runs as passes
from workers.errors import InvalidInputError
from workers.memory import embed
from workers.tasks import answers
from workers.tasks.once import note
from workers.tasks.task import MOST_RESULTS, WORK_SECONDS, EbbTask, context, instant, scope, uuid_of, write_instant
from workers.validation import successors


@app.task(base=EbbTask, bind=True, name="decay.plan")
def plan(
    self: Task,
    now: Any = None,
    dry_run: bool = False,
    force: bool = False,
    scheduled: bool = False,
    namespace: Any = "default",
    everywhere: bool = False,
) -> dict[str, Any]:
    """Send one task for each segment with facts due; the last of them answers for this one with the run's counters.

    The pass takes the facts of one namespace, or with `everywhere` those of all.
    """
    name = scope(namespace, everywhere=everywhere)
    at = instant(now) if dry_run else write_instant(self, now)
    if scheduled and not signals.may_pass(context.redis, context.seconds()):
        return {"skipped": "users wait for answers, or the last pass was less than a minute ago"}
    return _pass(self, at, scheduled=scheduled, dry_run=dry_run, force=force, namespace=name)


@app.task(base=EbbTask, bind=True, name="decay.prune")
def prune(
    self: Task,
    now: Any = None,
    hard: bool = True,
    soft: bool = True,
    dry_run: bool = False,
    scheduled: bool = False,
    startup: bool = False,
    namespace: Any = "default",
    everywhere: bool = False,
) -> dict[str, Any]:
    """Forget what has expired (hard), and halve or remove what nears its expiry (soft); return how many.

    It takes the facts of one namespace, or with `everywhere` those of all.
    """
    name = scope(namespace, everywhere=everywhere)
    at = instant(now) if dry_run else write_instant(self, now)
    if startup and not signals.starts_first(context.redis, self.request.id or ""):
        return {"skipped": "another worker has just started, and prunes"}
    if not hard and not soft:
        raise InvalidInputError("hard, soft: both are false; a prune that shall do nothing is none.")
    asked = "prune" if hard and soft else "hard prune" if hard else "soft prune"
    work = "startup prune" if startup else asked
    return _pass(self, at, work=work, scheduled=scheduled, dry_run=dry_run, namespace=name)


@app.task(base=EbbTask, name="decay.runs")
def runs(namespace: Any = "default", limit: Any = 20, before: Any = None, everything: bool = False) -> dict[str, Any]:
    """Return the latest passes, the newest first; with `everything` those of all namespaces, and all that they did."""
    name, most = validation.namespace_name(namespace), validation.whole(limit, "limit", MOST_RESULTS)
    earlier = None if before is None else validation.instant(before, "before")
    return answers.runs(passes.latest(context, name, most, earlier, everything=everything), most)


@app.task(base=EbbTask, name="decay.apply", ignore_result=True)
def apply(run: str, segment: int, part: int) -> None:
    """Decay what is due in one segment, and close the run if this was its last part."""
    own_run = validation.fact_id(run)
    decay.apply(context, (own_run, segment, part), yield_to_users)
    report = decay.finish(context, own_run)
    if report.finished and report.asked_by:
        app.backend.mark_as_done(report.asked_by, answers.passed(report))


@app.task(base=EbbTask, bind=True, name="decay.backfill")
def backfill(
    self: Task,
    namespace: Any = "default",
    dry_run: bool = False,
    prune: bool = False,
    everywhere: bool = False,
    now: Any = None,
    after: Any = None,
    so_far: Any = None,
    asked_by: Any = None,
) -> dict[str, Any]:
    """Classify again the facts of a namespace, or with `everywhere` of all, whose class was not chosen explicitly.

    The last successor answers; `after`, `so_far` and `asked_by` are what a successor goes on from.
    """
    name, until = scope(namespace, everywhere=everywhere), time.monotonic() + WORK_SECONDS
    at = instant(now) if dry_run else write_instant(self, now)
    place: embed.Position | None = successors.fact_place(after, embed.START)
    done = answers.backfilled_so_far(successors.so_far(so_far, successors.Backfilled))
    waits = successors.waiting(asked_by)
    while place is not None and time.monotonic() < until:
        place, more = backfilling.backfill(context, name, place, at, dry_run=dry_run, prune=prune)
        done += more
    answer = answers.backfilled(done)
    waiting = waits or self.request.id or ""
    if place is not None:
        given = {"namespace": namespace, "everywhere": everywhere, "dry_run": dry_run, "prune": prune}
        going_on = {"after": [place[0], str(place[1])], "so_far": answer, "asked_by": waiting, "now": at.isoformat()}
        backfill.apply_async(kwargs=given | going_on)
        leave_answer_to_others(self, f"{done.examined} facts so far")
    return answered(waits, answer)


def _pass(task: Task, at: datetime, *, scheduled: bool, **options: Any) -> dict[str, Any]:
    """Begin a pass and send its parts; return its counters if nothing is left to do, or else leave that to the last."""
    asked_by = task.request.id or ""
    run, slot = uuid_of(asked_by), at.replace(second=0, microsecond=0) if scheduled else None
    parts = decay.plan(context, run, at, asked_by=asked_by, slot=slot, **options)
    for part_run, segment, part in parts:
        apply.apply_async(kwargs={"run": str(part_run), "segment": segment, "part": part})
    report = decay.finish(context, run)
    if not report.finished and any(part_run == run for part_run, _, _ in parts):
        leave_answer_to_others(task, f"{len(parts)} parts sent")
    # A run over a namespace that does not exist never began.
    return answers.passed(replace(report, work=options.get("work", "decay"), dry_run=options["dry_run"]))


def leave_answer_to_others(task: Task, said: str) -> NoReturn:
    """End a task whose answer comes from a later one; Flower is told that it went well."""
    task.send_event("task-succeeded", result=said, runtime=0.0)
    raise Ignore


def answered(waits: str | None, answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer, after giving it to the task that waits for it as well."""
    if waits:
        note(waits, answer)
        app.backend.mark_as_done(waits, answer)
    return answer


def yield_to_users() -> None:
    """Pause between two batches while users wait for answers (C-O18)."""
    if signals.users_wait(context.redis, context.seconds()):
        time.sleep(settings.decay_sleep_ms / 1000)
