"""Results on Redis: backends that store one in one round trip, and a wait for one in two.

As in Celery, the result of a success is not replaced: a task that was lost and runs again does not change the answer.
Celery's own backends read the earlier result first, and its clients subscribe to each result before they send its task.
Ebb's clients wait for a mark in a list instead; the result is published as well, for other Celery programs.
"""

import math
import time
from typing import Any

from celery.backends import redis
from celery.states import FAILURE, READY_STATES

READY = "ebb:ready:"
"""Beginning of the key of a list, by task id, that gets an element when the result is there."""

LOOK_SECONDS = 1.0
"""Time after which a result is looked for without its mark, which a worker of an earlier version does not set."""

LEAST_SECONDS = 0.01
"""Redis would wait without end for a time that it rounds to none."""

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
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        wait = max(min(left, LOOK_SECONDS), LEAST_SECONDS)
        backend.ensure(backend.client.blpop, (READY + task_id, wait))
        stored = backend.ensure(backend.client.getdel, (backend.get_key_for_task(task_id),))
        if stored is None:
            continue
        found: dict[str, Any] = backend.decode(stored)
        if found["status"] in READY_STATES:
            return found
    return None
