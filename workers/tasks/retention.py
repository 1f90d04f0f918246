"""Tasks of retention: reinforce, used, forget, restore, pin, edit and history."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from celery import Task
from ebb.contract import facts
from ebb.contract import retention as contract
from ebb.contract.operation import Params
from ebb.contract.retention import Outcome
from ebb.contract.values import REQUESTED, Flag, Name, Text
from ebb.contract.values import Cursor as CursorText
from pydantic import Field

from workers.coordination import outbox, signals
from workers.errors import InvalidInputError, NotFoundError
from workers.memory import edit as editing
from workers.memory import facts as listing
from workers.memory import forget as forgetting
from workers.memory import history as past
from workers.memory import pin as pinning
from workers.memory import restore as restoring
from workers.memory import touch as touching
from workers.memory.restore import BY_DECAY, Batch
from workers.storage.tombstones import Cursor, Selection
from workers.tasks.decay import answered, hand_over, yield_to_users
from workers.tasks.operation import plain, task_of, verb_of
from workers.tasks.recall import regenerate_soon, regenerate_used
from workers.tasks.task import WORK_SECONDS, OnceTask, context, instant, use_of, uuid_of, write_instant
from workers.validation import cursors

Reasons: TypeAlias = tuple[str, ...]
Total = Annotated[int, Field(ge=0, lt=2**63)]

EVERY_REASON: Reasons = (*BY_DECAY, *REQUESTED)
FORGET_SECONDS = 15.0
"""Time limit of a successor that forgets by subject; a caller who waits repeats the request for the rest."""

SHORT_SECONDS = 2.0
"""Time after which forgetting by subject, or a restore of many facts, hands over to a successor.

That one runs in the maintenance queue, so that no child is kept from recalls.
"""

MOST_ERRORS = 20
"""Maximum number of errors in the answer."""


class Forget(contract.Forget):
    """A request to forget, or the rest of one; no caller asks again for the rest of an `accepted` one."""

    run: UUID | None = None
    so_far: contract.Forgot | None = None
    accepted: Flag = False
    asked_by: Name | None = None


class SoFar(Params):
    """The counts of a restore of many facts, and the first errors."""

    restored: Total = 0
    pinned: Total = 0
    unchanged: Total = 0
    refused: Total = 0
    errors: tuple[dict[str, Text], ...] = ()

    def and_then(self, batch: Batch) -> "SoFar":
        """Return the sum of these counts and a batch's."""
        outcomes = _results(list(batch.outcomes), list(batch.outcomes.values()))["results"]
        errors = [one for one in outcomes if "error" in one]
        actions = [one.get("action") for one in outcomes]
        return SoFar(
            restored=self.restored + actions.count("restored"),
            pinned=self.pinned + sum("pinned" in one for one in outcomes),
            unchanged=self.unchanged + actions.count("unchanged"),
            refused=self.refused + len(errors),
            errors=(*self.errors, *errors)[:MOST_ERRORS],
        )


class Restore(contract.Restore):
    """A restore, or the rest of one."""

    after: CursorText | None = None
    so_far: SoFar | None = None
    asked_by: Name | None = None


@task_of(contract.REINFORCE, contract.Reinforce)
def reinforce(self: Task, asked: contract.Reinforce) -> dict[str, Any]:
    """Strengthen one fact and confirm it, once for each task id; return its salience."""
    at = write_instant(self, asked.now)
    done = touching.reinforce(context, asked.namespace, asked.id, asked.boost, at, use_of(self))
    if done is None:
        raise NotFoundError(
            f"id: no live fact {asked.id} is in namespace {asked.namespace!r}; look for it with `recall`."
        )
    regenerate_used(asked.namespace, [asked.id] if done.faded else [])
    return {"id": str(asked.id), "salience": round(done.salience, 6)}


@task_of(contract.USED, contract.Use, base=OnceTask)
def used(self: Task, asked: contract.Use) -> contract.Used:
    """Record that an agent used facts, once for each task id; return the known and unknown ids."""
    answer, faded = touching.used(context, asked, write_instant(self, asked.now), use_of(self))
    regenerate_used(asked.namespace, faded)
    return answer


@task_of(contract.FORGET, Forget, base=OnceTask)
def forget(self: Task, asked: Forget) -> dict[str, Any]:
    """Forget facts, or erase them at once; return the outcomes in order."""
    at, own_id = instant(self, asked, writes=not asked.dry_run), uuid_of(self.request.id or "")
    if asked.ids is None:
        return _forget_subject(self, asked, at, own_id)
    done = forgetting.forget(context, asked.namespace, asked.ids, at, purge=asked.purge, run=own_id)
    signals.mark_grown(context.redis, asked.namespace)
    return _results(asked.ids, done) | ({} if asked.purge else {"run": str(own_id)})


def _forget_subject(task: Task, asked: Forget, at: datetime, own_id: UUID) -> dict[str, Any]:
    """Forget by subject; a successor goes on, until its time is over or, for an accepted request, to the end."""
    until = time.monotonic() + (FORGET_SECONDS if asked.asked_by else SHORT_SECONDS)
    run, accepted = asked.run or own_id, asked.accepted or task.request.get(outbox.HEADER) is not None
    to_the_end = accepted and not asked.dry_run  # a count begins again in each part
    done = forgetting.forget_subject(context, asked, at, run, until, part=own_id, so_far=asked.so_far)
    answer = plain(done)
    if not asked.dry_run:
        signals.mark_grown(context.redis, asked.namespace)
    if done.left and (to_the_end or not asked.asked_by):
        going = {"run": str(run), "now": at.isoformat(), "accepted": accepted}
        going |= {} if asked.dry_run else {"so_far": answer}
        hand_over(task, asked, going, f"{done.done} facts so far")
    return answered(asked, answer)


@task_of(contract.PIN, contract.Pin, base=OnceTask)
def pin(self: Task, asked: contract.Pin) -> contract.Pinned:
    """Pin a fact without end or until an instant, and restore its full vector; or end its pin."""
    at = write_instant(self, asked.now)
    if asked.off:
        return pinning.unpin(context, asked.namespace, asked.id, at)
    done, faded = pinning.pin(context, asked.namespace, asked.id, asked.until, at)
    regenerate_soon(asked.namespace, [asked.id] if faded else [])
    return done


edit = verb_of(facts.EDIT, editing.edit, base=OnceTask, grows=True)
history = verb_of(contract.HISTORY, past.history)


@task_of(contract.FORGOTTEN, contract.ListForgotten, from_replica=True)
def forgotten(_: Task, asked: contract.ListForgotten) -> contract.Forgotten:
    """Return restorable facts, newest first; without `asked` only those forgotten by decay."""
    shown = EVERY_REASON if asked.asked else BY_DECAY
    selection, place = _selection(asked, shown, shown), cursors.place(asked.cursor, Cursor)
    return listing.forgotten(context, asked.namespace, selection, asked.limit, place)


@task_of(contract.RESTORE, Restore, base=OnceTask)
def restore(self: Task, asked: Restore) -> dict[str, Any]:
    """Restore facts by ids or by a selection; return the outcomes."""
    at = write_instant(self, asked.now)
    if asked.ids is not None:
        restored = restoring.restore(context, asked.namespace, asked.ids, at)
        signals.mark_grown(context.redis, asked.namespace)
        regenerate_soon(asked.namespace, restored.faded)
        return _results(asked.ids, [restored.outcomes[id_] for id_ in asked.ids])
    selection = _selection(asked, BY_DECAY, EVERY_REASON)
    if asked.dry_run:
        return {"matching": restoring.selected(context, asked.namespace, selection)}
    done, rest = _restore_selected(asked, selection, at, uuid_of(self.request.id or ""))
    answer = done.model_dump(mode="json")
    if rest is not None:
        going = {"now": at.isoformat(), "after": cursors.following(rest), "so_far": answer}
        hand_over(self, asked, going, f"{done.restored} facts so far")
    return answered(asked, answer)


def _restore_selected(asked: Restore, selection: Selection, at: datetime, own_id: UUID) -> tuple[SoFar, Cursor | None]:
    """Restore in batches; return the counts, with an earlier delivery's, and the position to continue from, if any.

    The first task, which keeps a child from recalls, ends soon; its successors do not.
    """
    deadline = time.monotonic() + (WORK_SECONDS if asked.asked_by else SHORT_SECONDS)
    done, place = asked.so_far or SoFar(), cursors.place(asked.after, Cursor)
    before = restoring.restored_before(context, asked.namespace, at, own_id)
    done = done.model_copy(update={"restored": max(done.restored, len(before.outcomes))})
    for begin in range(0, len(before.faded), restoring.AT_ONCE):
        regenerate_soon(asked.namespace, before.faded[begin : begin + restoring.AT_ONCE])
    while True:
        batch = restoring.restore_next(context, asked.namespace, selection, at, place)
        signals.mark_grown(context.redis, asked.namespace)
        regenerate_soon(asked.namespace, batch.faded)
        done, place = done.and_then(batch), batch.behind
        if place is None or time.monotonic() >= deadline:
            return _with_others(asked, done, at), place
        yield_to_users()


def _with_others(asked: Restore, done: SoFar, at: datetime) -> SoFar:
    """Return the counts with those of another successor: a part that was killed once it had sent one sends another."""
    if asked.so_far is None:
        return done
    every = restoring.count_restored(context, asked.namespace, at)
    return done.model_copy(update={"restored": max(done.restored, every)})


def _selection(asked: contract.Selection, default: Reasons, allowed: Reasons) -> Selection:
    if asked.reason is not None and asked.reason not in allowed:
        raise InvalidInputError(f"reason: {asked.reason!r} is not allowed; give one of {', '.join(allowed)}.")
    return Selection(default if asked.reason is None else (asked.reason,), asked.since, asked.until, asked.run)


def _results(ids: Sequence[UUID], outcomes: Sequence[Outcome | InvalidInputError]) -> dict[str, Any]:
    shown = [
        forgetting.refused(id_, one) if isinstance(one, InvalidInputError) else one
        for id_, one in zip(ids, outcomes, strict=True)
    ]
    return {"results": [one.model_dump(mode="json", exclude_defaults=True) for one in shown]}
