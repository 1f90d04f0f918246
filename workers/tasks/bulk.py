"""Tasks of the bulk lane: a large batch is processed in slices, and the last slice answers."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from uuid import uuid5

from celery import Task
from celery.signals import task_revoked
from celery.worker import state
from ebb import headers
from ebb.contract.operation import Params, Timed
from ebb.contract.values import Namespace
from pydantic import Field
from redis.exceptions import RedisError

from workers.celery import app
from workers.clock import UNTIL, has_passed
from workers.coordination import bulk, outbox, signals, timings
from workers.coordination.bulk import Batch, Slice
from workers.coordination.redis import RefusedError, explain, insist
from workers.errors import TaskFailedError, UnavailableError
from workers.queues import LSN, SENT_AT
from workers.tasks import callbacks
from workers.tasks.decay import leave_answer_to_others
from workers.tasks.operation import internal
from workers.tasks.task import EbbRequest, EbbTask, context, redis_needed, uuid_of, with_lsn

SLICE = 200
"""Facts in a slice, which takes some tenths of a second."""

SMALL = 20
"""Batches up to this size are processed at once."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """How batches of a task are sliced: the list parameter, the function for a slice, and a hook at the end."""

    items: str
    act: Callable[[Task, Slice], list[Any]]
    done: Callable[[str, dict[str, Any]], None] = lambda _task_id, _answer: None


SLICED: dict[str, Sliced] = {}
"""The tasks with sliced batches, by name."""


class OneSlice(Params):
    """A slice of a batch."""

    namespace: Namespace
    batch: str
    place: Annotated[int, Field(ge=0)]
    slices: Annotated[int, Field(ge=1, le=bulk.MOST_AT_ONCE)] = 1


SLICE_TASK = "memory.slice"
LANE = "ebb_lane"
"""Header of a task that holds a slot of the lane."""


class LaneTask(EbbTask):
    """A task that may take a slot of the lane, which it releases at its end."""

    def after_return(self, status: str, retval: Any, task_id: str, *rest: Any) -> None:
        """Release the slot."""
        super().after_return(status, retval, task_id, *rest)
        release_slot(self.request)


class SliceRequest(EbbRequest):
    """A request for a slice, which is revoked with its batch unless that has begun."""

    def revoked(self) -> bool:
        """Return whether the slice is not to be processed."""
        if not self.kwargs.get("place") and self.kwargs.get("batch") in state.revoked:
            state.revoked.add(self.id)
        return bool(super().revoked())


class SliceTask(EbbTask):
    """A task whose failure is the failure of its batch."""

    Request = SliceRequest

    def on_failure(self, exc: Exception, _task_id: str, _args: Any, _kwargs: Any, _einfo: Any) -> None:
        """Answer the caller of the batch with the failure, and release the lane."""
        part: Slice | None = self.request.get("part")
        if part is not None:
            try:  # the answer first: the state of a batch that is gone without one is `ended`
                callbacks.mark_as_failure(context.redis, part.batch.id, exc)
            finally:
                _give_up(part.batch)
        send_slices()


@task_revoked.connect
def end_revoked(request: Any, expired: bool = False, **_: Any) -> None:
    """Drop what a revoked request was to do: its batch and slot, its accepted write, and the wait for its answer.

    Of a request that has expired another delivery may have begun; only a slot is its own.
    """
    if expired and not request.get(LANE):
        return
    given = request.kwargs or {}
    waits = given.get("batch" if request.task == SLICE_TASK else "asked_by")
    own_id = waits or request.id
    with suppress(RedisError):  # the slot's lease expires
        batch = bulk.find_batch(context.redis, own_id)
        if not expired:
            held = batch and (batch.outbox or batch.namespace)
            namespace = request.get(outbox.HEADER) or held or given.get("namespace", outbox.DEFAULT)
            outbox.remove(context.redis, namespace, own_id)
        if waits:
            signals.drop_done(context.redis, waits)
            callbacks.mark_as_revoked(context.redis, waits)
        if batch:  # after the answer: the state of a batch that is gone without one is `ended`
            _give_up(batch)
            send_slices()
    callbacks.drop(context.redis, own_id)


def release_slot(request: Any) -> None:
    """Release the slot of a request, if it has one."""
    if request.get(LANE):
        callbacks.drop(context.redis, request.id)
        with suppress(RedisError):  # the slot's lease expires
            bulk.drop(context.redis, Batch(request.id, request.task, "", {}))
            send_slices()


def in_slices(task: Task, asked: Timed) -> dict[str, Any]:
    """Process a batch in slices, the first one here if a slot is free; return the answer after the last slice.

    Raises:
        BusyError: the namespace has reached its limit of bytes in batches.
    """
    items = getattr(asked, SLICED[task.name].items)
    batch = _batch(task, asked)
    if len(items) <= SMALL or not batch.id:
        return {"results": _at_once(task, batch, [items])}
    slices = [items[start : start + SLICE] for start in range(0, len(items), SLICE)]
    try:
        part = _first(task, batch, slices)
    except RefusedError:  # with a full Redis, batches are processed without the lane
        return {"results": _at_once(task, batch, slices)}
    if part is None:  # an earlier delivery may have finished it without an answer
        with redis_needed(task):
            finished = bulk.finished(context.redis, batch.id)
    answer = _perform(task, part) if part else {"results": finished[1]} if finished else None
    if answer is None or callbacks.were_sent(context.redis, task):
        leave_answer_to_others(task, f"{len(slices)} slices")
    with redis_needed(task):
        bulk.drop(context.redis, batch)
        send_slices()
    return answer


def _batch(task: Task, asked: Timed) -> Batch:
    items, request = SLICED[task.name].items, task.request
    arguments = asked.model_dump(mode="json", exclude={items}, exclude_unset=True)
    waits = request.get(SENT_AT), request.get(UNTIL), request.get(outbox.HEADER)
    return Batch(request.id or "", task.name, asked.namespace, arguments, *waits, trace=headers.of_trace())


def _at_once(task: Task, batch: Batch, slices: Sequence[list[Any]]) -> list[Any]:
    act = SLICED[batch.task].act
    return [answer for place, items in enumerate(slices) for answer in act(task, Slice(batch, place, items))]


def _first(task: Task, batch: Batch, slices: Sequence[list[Any]]) -> Slice | None:
    """Put a batch into the lane; return its first slice if the batch's own task is to process it."""
    callbacks.keep(context.redis, task)
    try:
        is_new = bulk.join(context.redis, batch, slices, bounded=task.request.get(outbox.HEADER) is None)
        own = send_slices(but=batch.id)
        if own:
            bulk.note_first(context.redis, batch.id)
        elif is_new or not bulk.runs_first(context.redis, batch.id):
            return None
        return bulk.find(context.redis, batch.id, own.place if own else 0, own.slices if own else 1)
    except RefusedError:
        raise
    except RedisError as error:
        raise task.retry(exc=UnavailableError(explain(error)), countdown=1) from None


@internal(SLICE_TASK, OneSlice, base=SliceTask, ignore_result=True)
def slice_of_batch(self: Task, asked: OneSlice) -> None:
    """Process one slice of a batch; the last one answers the caller."""
    with redis_needed(self):
        part = bulk.find(context.redis, asked.batch, asked.place, asked.slices)
        finished = bulk.finished(context.redis, asked.batch) if part is None else None
    if finished is not None:
        _answer(self, finished[0], {"results": finished[1]})
    if part is None or _is_abandoned(part):
        return
    self.request.update({"part": part})
    if part.tries > bulk.MOST_TRIES:
        raise TaskFailedError(f"A slice of {len(part.content)} facts ended {part.tries} workers; send them one by one.")
    answer = _perform(self, part)
    if answer is not None:
        _answer(self, part.batch, answer)


def _answer(task: Task, batch: Batch, answer: dict[str, Any]) -> None:
    """Answer the caller of a finished batch, and drop the batch after that."""
    answer = with_lsn(answer)
    SLICED[batch.task].done(batch.id, answer)
    callbacks.mark_as_done(context.redis, batch.id, answer)
    with suppress(RedisError):  # metrics are optional
        outbox.remove(context.redis, batch.outbox or batch.namespace, batch.id)
        if batch.sent_at is not None:
            timings.observe(context.redis, [(timings.WRITE, context.seconds() - batch.sent_at)])
    with redis_needed(task):
        bulk.drop(context.redis, batch)
        send_slices()


def _perform(task: Task, part: Slice) -> dict[str, Any] | None:
    """Process a slice and send the next ones; return the answer of the batch after its last slice."""
    began = time.monotonic()
    done = SLICED[part.batch.task].act(task, part)
    with redis_needed(task):
        every = insist(partial(bulk.advance, context.redis, part, done, time.monotonic() - began))
        if every is None:
            send_slices()
    return None if every is None else {"results": every}


def take_slot(task: Task, asked: Params, namespace: str) -> None:
    """Take a slot of the lane, or end this task and leave its work to a later message with a slot."""
    if not task.request.id or task.request.get(LANE):
        return
    waits = task.request.get(UNTIL), None, task.request.get(LSN)
    batch = Batch(task.request.id, task.name, namespace, asked.given(), None, *waits, trace=headers.of_trace())
    with suppress(RedisError):  # then it runs without a slot
        callbacks.keep(context.redis, task)
        is_new = bulk.join(context.redis, batch, [], bounded=False)
        if send_slices(but=batch.id):
            bulk.note_first(context.redis, batch.id)
        elif is_new or not bulk.runs_first(context.redis, batch.id):
            leave_answer_to_others(task, "waits for a slot")
        task.request.update({LANE: True})


def send_slices(but: str = "") -> bulk.Claimed | None:
    """Send the slices that have got a slot; return the slice of the batch `but` instead of sending it."""
    own = None
    while claimed := bulk.claim(context.redis, context.seconds()):  # again, as those that are dropped leave theirs
        for one in claimed:
            if one.batch == but:
                own = one
            elif not _send_whole(one.batch):
                own_id = str(uuid5(uuid_of(one.batch), f"slice {one.place}"))
                given = one._asdict()
                app.send_task(SLICE_TASK, headers=given.pop("trace"), kwargs=given, task_id=own_id)
    return own


def _send_whole(id_: str) -> bool:
    """Send a task that is not sliced, unless its caller has given up; return whether `id_` is such a task."""
    part = bulk.find_unsliced(context.redis, id_)
    if part is None:
        return False
    batch = part.batch
    if part.tries > bulk.MOST_TRIES or (batch.until and has_passed(batch.until, app.server_clock)):
        bulk.drop(context.redis, batch)
    else:
        waits = {UNTIL: batch.until, LSN: batch.lsn}
        headers = {LANE: True} | {name: value for name, value in waits.items() if value} | (batch.trace or {})
        following = callbacks.options(context.redis, batch.id)
        app.send_task(batch.task, kwargs=batch.arguments, task_id=batch.id, headers=headers, **following)
    return True


def _is_abandoned(part: Slice) -> bool:
    """Drop a batch that has not begun and whose caller has given up; return whether it was dropped."""
    batch = part.batch
    if part.place or not batch.until or not has_passed(batch.until, app.server_clock):
        return False
    _give_up(batch)
    send_slices()
    return True


def _give_up(batch: Batch) -> None:
    """Remove a batch that is not done, after which the same request works again."""
    signals.drop_done(context.redis, batch.id)
    bulk.drop(context.redis, batch)
