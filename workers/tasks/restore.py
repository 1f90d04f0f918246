"""The tasks by which forgetting is undone: what was forgotten is listed, and brought back by ids or by a selection."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from celery import Task

from workers import validation
from workers.celery import app, settings
from workers.coordination import outbox, signals
from workers.errors import InvalidInputError
from workers.memory import facts as listing
from workers.memory import restore as restoring
from workers.memory.restore import BY_ITSELF, Batch
from workers.storage.facts import WISHED
from workers.storage.tombstones import Cursor, Selection
from workers.tasks import answers
from workers.tasks.decay import answered, leave_answer_to_others, yield_to_users
from workers.tasks.once import OnceTask
from workers.tasks.recall import regenerate
from workers.tasks.task import MOST_FACTS, MOST_RESULTS, WORK_SECONDS, EbbTask, context, write_instant
from workers.validation import cursors, successors

Reasons: TypeAlias = tuple[str, ...]

EVERY_REASON: Reasons = (*BY_ITSELF, *WISHED)
MOST_ERRORS = 20
"""How many refused facts the answer names."""


@app.task(base=EbbTask, name="memory.forgotten")
def forgotten(
    namespace: Any = "default",
    since: Any = None,
    until: Any = None,
    reason: Any = None,
    run: Any = None,
    limit: Any = 100,
    cursor: Any = None,
    asked: bool = True,
) -> dict[str, Any]:
    """Return what was forgotten and can be restored, newest first; without `asked` only what ended by itself."""
    name, most = validation.namespace_name(namespace), validation.whole(limit, "limit", MOST_RESULTS)
    shown = EVERY_REASON if asked else BY_ITSELF
    selection = _selection(since, until, reason, run, shown, shown)
    return answers.forgotten(listing.forgotten(context, name, selection, most, cursors.place(cursor, Cursor)))


@app.task(base=OnceTask, bind=True, name="memory.restore")
def restore(
    self: Task,
    ids: Any = None,
    namespace: Any = "default",
    since: Any = None,
    until: Any = None,
    reason: Any = None,
    run: Any = None,
    dry_run: bool = False,
    now: Any = None,
    after: Any = None,
    so_far: Any = None,
    asked_by: Any = None,
) -> dict[str, Any]:
    """Bring back facts by their ids, or those that a selection matches; return what became of them.

    A selection matches what ended by itself; what was forgotten on request only where `reason` says so. `after`,
    `so_far` and `asked_by` are what a successor goes on from; the last of them answers.
    """
    at = write_instant(self, now)
    name = validation.namespace_name(namespace)
    chosen = any(given is not None for given in (since, until, reason, run))
    if chosen == (ids is not None) or (dry_run and not chosen):
        raise InvalidInputError("ids: give either ids, or any of since, until, reason and run, which may be a dry run.")
    if ids is not None:
        return _restore(name, validation.fact_ids(ids, MOST_FACTS), at)
    selection = _selection(since, until, reason, run, BY_ITSELF, EVERY_REASON)
    if dry_run:
        return {"matching": restoring.selected(context, name, selection)}
    place, waits = cursors.place(after, Cursor), successors.waiting(asked_by)
    before = successors.so_far(so_far, successors.Restored) or _nothing_yet()
    done, rest = _restore_selected(name, selection, at, place, before)
    if rest is not None:
        given = {"namespace": name, "since": since, "until": until, "reason": reason, "run": run, "now": at.isoformat()}
        going_on = {"after": cursors.following(rest), "so_far": done, "asked_by": waits or self.request.id or ""}
        restore.apply_async(kwargs=given | going_on)
        leave_answer_to_others(self, f"{done['restored']} facts so far")
    if waits:
        outbox.remove(context.redis, name, waits)
    return answered(waits, done)


def _restore(name: str, ids: Sequence[UUID], at: datetime) -> dict[str, Any]:
    done = restoring.restore(context, name, ids, at)
    signals.mark_grown(context.redis, name)
    _regenerate(name, done.faded)
    return answers.outcomes(ids, done.outcomes)


def _restore_selected(
    name: str, selection: Selection, at: datetime, place: Cursor | None, done: dict[str, Any]
) -> tuple[dict[str, Any], Cursor | None]:
    """Restore batch by batch for as long as a task works; return what was done in all, and where to continue."""
    deadline = time.monotonic() + WORK_SECONDS
    while True:
        batch = restoring.restore_next(context, name, selection, at, place)
        signals.mark_grown(context.redis, name)
        _regenerate(name, batch.faded)
        done, place = _added(done, batch), batch.behind
        if place is None or time.monotonic() >= deadline:
            return done, place
        yield_to_users()


def _selection(since: Any, until: Any, reason: Any, run: Any, default: Reasons, allowed: Reasons) -> Selection:
    return Selection(
        default if reason is None else (validation.choice(reason, "reason", allowed),),
        None if since is None else validation.instant(since, "since"),
        None if until is None else validation.instant(until, "until"),
        None if run is None else validation.run_id(run),
    )


def _nothing_yet() -> dict[str, Any]:
    return {"restored": 0, "pinned": 0, "unchanged": 0, "refused": 0, "errors": []}


def _added(done: dict[str, Any], batch: Batch) -> dict[str, Any]:
    """Return what was done before and in a batch together, with the first of the errors."""
    outcomes = answers.outcomes(list(batch.outcomes), list(batch.outcomes.values()))["results"]
    errors = [one for one in outcomes if "error" in one]
    actions = [one.get("action") for one in outcomes]
    return {
        "restored": done["restored"] + actions.count("restored"),
        "pinned": done["pinned"] + sum("pinned" in one for one in outcomes),
        "unchanged": done["unchanged"] + actions.count("unchanged"),
        "refused": done["refused"] + len(errors),
        "errors": (done["errors"] + errors)[:MOST_ERRORS],
    }


def _regenerate(namespace: str, ids: list[UUID]) -> None:
    if ids and settings.regeneration_enabled:
        regenerate.apply_async(kwargs={"namespace": namespace, "ids": [str(id_) for id_ in ids]})
