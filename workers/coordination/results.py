"""Result backends on Redis that store a result in one round trip; Celery's own read the earlier result first.

As in Celery, the result of a success is not replaced: a task that was lost and runs again does not change the answer.
"""

import math
from typing import Any

from celery.backends import redis
from celery.states import FAILURE

STORE = """
    local known = redis.call('get', KEYS[1])
    if known and string.sub(known, 1, #ARGV[3]) == ARGV[3] then return end
    redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
    redis.call('publish', KEYS[1], ARGV[1])
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
        self.ensure(self.client.eval, (STORE, 1, self.get_key_for_task(task_id), stored, seconds, SUCCESS))
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
