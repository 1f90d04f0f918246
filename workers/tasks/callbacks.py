"""Callbacks, chains and chords of tasks that other tasks answer: Celery continues only with those that return."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from celery import Task, current_task
from celery.app.task import Context
from redis import Redis
from redis.exceptions import RedisError

from workers.celery import app
from workers.coordination import signals
from workers.coordination.redis import RefusedError, insist

FOLLOWING = ("callbacks", "errbacks", "chain", "chord")
"""What a request has if anything follows its task."""

OPTIONS = {
    "callbacks": "link", "errbacks": "link_error", "chain": "chain", "chord": "chord",
    "group": "group_id", "group_index": "group_index", "root_id": "root_id", "parent_id": "parent_id",
}  # fmt: skip
"""What a request has of all this, and the options with which a message is sent to have it."""


def is_followed(task: Task) -> bool:
    """Return whether anything follows a task."""
    return bool(task.request.id) and any(task.request.get(name) for name in FOLLOWING)


def keep(redis: Redis, task: Task) -> None:
    """Record what follows a task, if anything, before another task can answer it."""
    if is_followed(task):
        kept = {name: value for name in OPTIONS if (value := task.request.get(name)) is not None}
        with suppress(RefusedError):  # with a full Redis, the task is answered and nothing follows
            insist(partial(signals.note_following, redis, task.request.id, kept))


def were_sent(redis: Redis, task: Task) -> bool:
    """Return whether another task has sent what follows this one, which must not return then."""
    if not is_followed(task):
        return False
    if not _take(redis, task.request.id):
        return True
    drop(redis, task.request.id)
    return False


def options(redis: Redis, task_id: str) -> dict[str, Any]:
    """Return the options with which a task that is sent again keeps what follows it."""
    return {OPTIONS[name]: value for name, value in signals.following(redis, task_id).items()}


def mark_as_done(redis: Redis, task_id: str, answer: Mapping[str, Any]) -> None:
    """Answer another task, and send what follows it."""
    request = Context(kept := _take(redis, task_id), id=task_id)
    for callback in request.callbacks or ():
        _send(request, callback, answer)
    if request.chain:
        *rest, following = request.chain
        _send(request, following, answer, chain=rest)
    app.backend.mark_as_done(task_id, answer, request)
    if kept:
        drop(redis, task_id)


def mark_as_failure(redis: Redis, task_id: str, error: Exception) -> None:
    """Answer another task with an error, and send what follows that."""
    request = Context(kept := _take(redis, task_id), id=task_id, delivery_info={})
    app.backend.mark_as_failure(task_id, error, request=request)
    if kept:
        drop(redis, task_id)


def mark_as_revoked(redis: Redis, task_id: str) -> None:
    """Answer another task that it was revoked, as Celery does; of what follows it only a chord fails."""
    request = Context(kept := _take(redis, task_id), id=task_id)
    app.backend.mark_as_revoked(task_id, "revoked", request)
    if kept:
        drop(redis, task_id)


def drop(redis: Redis, task_id: str) -> None:
    """Delete what was recorded of a task."""
    with suppress(RedisError):  # it then expires
        signals.drop_following(redis, task_id)


def _take(redis: Redis, task_id: str) -> dict[str, Any]:
    """Return what follows a task; nothing if another task than this takes it too."""
    own_id = (current_task and current_task.request.id) or ""
    return insist(partial(signals.take_following, redis, task_id, own_id))


def _send(request: Context, signature: Any, answer: Mapping[str, Any], **named: Any) -> None:
    named |= {"parent_id": request.id, "root_id": request.root_id}
    request.children.append(app.signature(signature).apply_async((answer,), **named))
