"""Results in Redis: backends that store one in one round trip, and how a client waits for one.

As in Celery, the result of a success is not replaced: a task that was lost and runs again does not change the answer.
Celery's own backends read the earlier result first, and its clients subscribe to each result before they send its task.
Ebb's clients wait for a mark in a list instead; the result is published as well, for other Celery programs.
"""

import math
import time
from contextlib import suppress
from typing import Any

from celery.backends import redis
from celery.states import FAILURE, READY_STATES
from redis.exceptions import RedisError, ResponseError

READY = "ebb:ready:"
"""Beginning of the key of a list, by task id, that gets an element when the result is there."""

LOOK_SECONDS = 1.0
"""Time after which a client looks for a result without a mark: workers of earlier versions set none."""

LEAST_SECONDS = 0.01
"""Redis would wait forever for a time that it rounds to 0."""

STORE = """
    local known = redis.call('get', KEYS[1])
    if known and string.sub(known, 1, #ARGV[3]) == ARGV[3] then return end
    redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
    redis.call('publish', KEYS[1], ARGV[1])
    if ARGV[4] == '1' then
        redis.call('rpush', KEYS[2], 1)
        redis.call('expire', KEYS[2], ARGV[2])
    end
"""

SUCCESS = '{"status": "SUCCESS"'
"""Beginning of the result of a task that succeeded, in JSON as kombu writes it."""


class _InOneTrip:
    """Stores results by a script."""

    def _store_result(
        self: Any, task_id: str, result: Any, state: str, traceback: Any = None, request: Any = None, **_: Any
    ) -> Any:
        """Store and publish a result, unless the task succeeded before."""
        meta = self._get_result_meta(result=result, state=state, traceback=traceback, request=request)
        seconds = math.ceil(self.failure_expires if state == FAILURE else self.expires)
        stored = self.encode(meta | {"task_id": task_id})
        keys, is_ready = (self.get_key_for_task(task_id), READY + task_id), int(state in READY_STATES)
        self.ensure(self.client.eval, (STORE, len(keys), *keys, stored, seconds, SUCCESS, is_ready))
        return result


class Backend(_InOneTrip, redis.RedisBackend):  # type: ignore[misc]  # Celery comes without types
    """Results in one Redis."""


class SentinelBackend(_InOneTrip, redis.SentinelBackend):  # type: ignore[misc]  # Celery comes without types
    """Results in a Redis found through Sentinels."""


BACKENDS = {
    "redis": f"{__name__}:Backend",
    "rediss": f"{__name__}:Backend",
    "sentinel": f"{__name__}:SentinelBackend",
}
"""Backends by the scheme of a URL, in place of Celery's."""


def take(backend: Any, task_id: str, seconds: float) -> dict[str, Any] | None:
    """Wait for the result of a task, remove it and return it, decoded; None if it does not come within `seconds`."""
    deadline, keys = time.monotonic() + seconds, (backend.get_key_for_task(task_id), READY + task_id)
    while (left := deadline - time.monotonic()) > 0:
        is_ready = _await_mark(backend, keys[1], max(min(left, LOOK_SECONDS), LEAST_SECONDS))
        stored = backend.ensure(backend.client.get, keys[:1])
        found: dict[str, Any] = {} if stored is None else backend.decode(stored)
        if found.get("status") in READY_STATES:
            with suppress(RedisError):  # it then expires
                backend.client.delete(*keys)
            return found
        if is_ready and stored is None:  # an erasure dropped it
            return None
    return None


def _await_mark(backend: Any, mark: str, seconds: float) -> bool:
    try:
        return backend.ensure(backend.client.blpop, (mark, seconds)) is not None
    except ResponseError as error:
        if not str(error).startswith("UNBLOCKED"):
            raise
        return False  # the server is a replica now
