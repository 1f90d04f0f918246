"""The tasks by which owners decide what stays: forget, pin, edit, history and purge."""

import time
from datetime import datetime
from typing import Any
from uuid import UUID

from celery import Task

from workers import validation
from workers.admin import purge as purging
from workers.admin import purge as scrubbing
from workers.celery import app, settings
from workers.coordination import signals
from workers.decay import forget_limit, runs
from workers.errors import InvalidInputError
from workers.memory import edit as editing
from workers.memory import forget as forgetting
from workers.memory import history as telling
from workers.memory import pin as pinning
from workers.memory import touch as touching
from workers.tasks import answers
from workers.tasks.once import OnceTask
from workers.tasks.recall import regenerate
from workers.tasks.task import MOST_FACTS, WORK_SECONDS, EbbTask, context, instant, scope, write_instant
from workers.validation import cursors
from workers.validation.edits import fact_edit

CLEAN_SECONDS = 7_200.0
"""The longest that cleaning may take, after which another one may begin."""


@app.task(base=OnceTask, bind=True, name="memory.forget")
def forget(self: Task, ids: Any, namespace: Any = "default", purge: bool = False, now: Any = None) -> dict[str, Any]:
    """Forget facts, or erase them at once; return what became of each, in order."""
    at = write_instant(self, now)
    name, facts = validation.namespace_name(namespace), validation.fact_ids(ids, MOST_FACTS)
    outcomes = forgetting.forget(context, name, facts, at, purge=purge)
    signals.mark_grown(context.redis, name)
    return answers.outcomes(facts, outcomes)


@app.task(base=OnceTask, bind=True, name="memory.pin")
def pin(
    self: Task,
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    until: Any = None,
    off: bool = False,
    now: Any = None,
) -> dict[str, Any]:
    """Pin a fact for good or until an instant, and have its full vector restored; or end its pin."""
    at = write_instant(self, now)
    fact, name = validation.fact_id(id), validation.namespace_name(namespace)
    if off and until is not None:
        raise InvalidInputError("until: cannot be given together with `off`, which ends the pin now.")
    if off:
        return answers.pinned(pinning.unpin(context, name, fact, at))
    done = pinning.pin(context, name, fact, None if until is None else validation.instant(until, "until"), at)
    _regenerate(name, [fact] if done.faded else [])
    return answers.pinned(done)


@app.task(base=OnceTask, bind=True, name="memory.edit")
def edit(
    self: Task,
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    now: Any = None,
    **changes: Any,
) -> dict[str, Any]:
    """Change what a fact says beside its text; return which fields changed, and how long it lives since."""
    at = write_instant(self, now)
    fact, name = validation.fact_id(id), validation.namespace_name(namespace)
    done = editing.edit(context, name, fact, fact_edit(changes), at)
    signals.mark_grown(context.redis, name)
    return answers.edited(done)


@app.task(base=EbbTask, name="memory.history")
def history(
    id: Any,  # noqa: A002 - the contract's name
    namespace: Any = "default",
    limit: Any = None,
    cursor: Any = None,
    links: bool = True,
    now: Any = None,
) -> dict[str, Any]:
    """Return a fact and everything that happened to it, oldest first; with `limit` in pages, without links if told."""
    name, most = (
        validation.namespace_name(namespace),
        None if limit is None else validation.whole(limit, "limit", MOST_FACTS),
    )
    place = cursors.place(cursor, telling.Cursor)
    fact, at = validation.fact_id(id), instant(now)
    return answers.history(telling.history(context, name, fact, at, most, place, with_links=links))


@app.task(base=EbbTask, bind=True, name="memory.purge")
def purge(
    self: Task,
    namespace: Any = "default",
    now: Any = None,
    dry_run: bool = False,
    scheduled: bool = False,
    everywhere: bool = False,
) -> dict[str, Any]:
    """Erase what was forgotten long ago, in a namespace or with `everywhere` in all, for 30 seconds at most.

    Return how much is left.

    A scheduled one hands over what is left to its successor; who asks for one, asks again.
    """
    name = scope(namespace, everywhere=everywhere)
    at = instant(now) if dry_run else write_instant(self, now)
    if not scheduled:
        return _purge(name, at, dry_run=dry_run)
    forget_limit.check(context, everywhere=False)
    with signals.only_one(context.redis, "purge", WORK_SECONDS * 2) as alone:
        done = _purge(name, at, dry_run=dry_run, in_gaps=False) if alone else {"skipped": "another purge is at work"}
    if done.get("purged") and done["left"]:
        purge.apply_async(kwargs={"namespace": namespace, "everywhere": everywhere, "scheduled": True})
    return done


@app.task(base=EbbTask, name="memory.clean", ignore_result=True, soft_time_limit=7_000, time_limit=7_200)
def clean() -> None:
    """Take what was erased out of the servers' pages and indexes, and old notes of uses, one task at a time."""
    with signals.only_one(context.redis, "clean", CLEAN_SECONDS) as alone:
        if alone:
            touching.drop_old_uses(context)
            scrubbing.clean(context, context.now())


def _purge(name: str | None, at: datetime, *, dry_run: bool, in_gaps: bool = True) -> dict[str, Any]:
    until, erased = time.monotonic() + WORK_SECONDS, 0
    if not dry_run and name is None:
        runs.drop_old(context)
    while not dry_run and time.monotonic() < until:
        batch = purging.purge_batch(context, at, name, in_gaps=in_gaps)
        for grown in batch.namespaces:
            signals.mark_grown(context.redis, grown)
        erased += batch.facts
        if not batch.facts:
            break
    return {
        "purged": erased,
        "left": purging.waiting(context, at, name),
        "forgotten_before": answers.shown(purging.before(context, at)),
    }


def _regenerate(namespace: str, ids: list[UUID]) -> None:
    if ids and settings.regeneration_enabled:
        regenerate.apply_async(kwargs={"namespace": namespace, "ids": [str(id_) for id_ in ids]})
